//! There are no modules here: `export` loses its meaning, `import` is refused.

use belljar_wire::ErrorCode;
use oxc::{
    allocator::TakeIn,
    ast::{
        ast::{ImportDeclaration, Program, Statement, TSModuleReference},
        builder::AstBuilder,
    },
    span::{GetSpan, Span},
};

use super::{Refusal, Source, syntax::error_at};
use crate::quickjs::hints;

/// Strips what only concerns types, unwraps exported declarations, refuses the rest.
pub(super) fn settle<'a>(
    program: &mut Program<'a>,
    source: &Source,
    builder: &AstBuilder<'a>,
) -> Result<(), Refusal> {
    for statement in &mut program.body {
        if let Some(settled) = settle_statement(statement, source, builder)? {
            *statement = settled;
        }
    }
    Ok(())
}

/// The statement to put in place of this one; `None` leaves it alone.
#[expect(clippy::wildcard_enum_match_arm, reason = "only modules are settled here")]
fn settle_statement<'a>(
    statement: &mut Statement<'a>,
    source: &Source,
    builder: &AstBuilder<'a>,
) -> Result<Option<Statement<'a>>, Refusal> {
    let span = statement.span();
    let nothing = || Statement::new_empty_statement(span, builder);
    match statement {
        Statement::ImportDeclaration(import) => match concerns_types_only(import) {
            true => Ok(Some(nothing())),
            false => Err(refused(source, &import.source.value, span)),
        },
        Statement::TSImportEqualsDeclaration(import) => match &import.module_reference {
            TSModuleReference::ExternalModuleReference(module) if !import.import_kind.is_type() => {
                Err(refused(source, &module.expression.value, span))
            }
            _ => Ok(None),
        },
        Statement::ExportDeclaration(export) => {
            Ok(Some(Statement::from(export.declaration.take_in(builder))))
        }
        Statement::ExportNamedDeclaration(export)
            if export.export_kind.is_type() || export.specifiers.is_empty() =>
        {
            Ok(Some(nothing()))
        }
        Statement::ExportFromDeclaration(export) => match export.export_kind.is_type() {
            true => Ok(Some(nothing())),
            false => Err(refused(source, &export.source.value, span)),
        },
        Statement::ExportAllDeclaration(export) => match export.export_kind.is_type() {
            true => Ok(Some(nothing())),
            false => Err(refused(source, &export.source.value, span)),
        },
        Statement::ExportNamedDeclaration(_)
        | Statement::ExportDefaultDeclaration(_)
        | Statement::TSExportAssignment(_)
        | Statement::TSNamespaceExportDeclaration(_) => Err(nobody_imports(source, span)),
        _ => Ok(None),
    }
}

fn concerns_types_only(import: &ImportDeclaration<'_>) -> bool {
    use oxc::ast::ast::ImportDeclarationSpecifier as Specifier;
    let is_type = |specifier: &Specifier<'_>| match specifier {
        Specifier::ImportSpecifier(named) => named.import_kind.is_type(),
        Specifier::ImportDefaultSpecifier(_) | Specifier::ImportNamespaceSpecifier(_) => false,
    };
    import.import_kind.is_type()
        || import.specifiers.as_ref().is_some_and(|all| !all.is_empty() && all.iter().all(is_type))
}

fn refused(source: &Source, module: &str, span: Span) -> Refusal {
    let message = format!("PermissionError: {}", hints::module_refused(module));
    let error = error_at(source, ErrorCode::PermissionModule, message, span.start);
    Refusal { error: error.with_hint(hints::MODULE), attempt: Some(format!("import {module:?}")) }
}

fn nobody_imports(source: &Source, span: Span) -> Refusal {
    let message = "SyntaxError: nothing can import from this code, so it cannot export a value";
    error_at(source, ErrorCode::SyntaxUnsupported, message, span.start)
        .with_hint("Use `return value` to give the value back.")
        .into()
}
