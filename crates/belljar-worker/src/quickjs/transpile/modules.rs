//! There are next to no modules here: `export` loses its meaning, `import` of the few that exist
//! becomes a declaration, and any other is refused.

use belljar_contract::ErrorCode;
use oxc::{
    allocator::{Allocator, TakeIn},
    ast::{
        ast::{ImportDeclaration, Program, Statement, TSModuleReference},
        builder::AstBuilder,
    },
    ast_visit::VisitMut,
    span::{GetSpan, SourceType, Span},
};

use super::{IMPORT_PARAMETER, SourceCode, TranspileError, parse, syntax::error_at};
use crate::quickjs::hints;

/// Modules that guest/on-demand.js has, apart from the `node:` before them.
const MODULES: [&str; 3] = ["fs", "fs/promises", "path"];

/// Strips what only concerns types, unwraps exported declarations, binds what is imported from
/// modules there are, refuses the rest.
pub(super) fn settle<'a>(
    program: &mut Program<'a>,
    source: &SourceCode,
    allocator: &'a Allocator,
    builder: &AstBuilder<'a>,
) -> Result<(), TranspileError> {
    for statement in &mut program.body {
        if let Some(settled) = settle_statement(statement, source, allocator, builder)? {
            *statement = settled;
        }
    }
    Ok(())
}

/// The statement to put in place of this one; `None` leaves it alone.
#[expect(clippy::wildcard_enum_match_arm, reason = "only modules are settled here")]
fn settle_statement<'a>(
    statement: &mut Statement<'a>,
    source: &SourceCode,
    allocator: &'a Allocator,
    builder: &AstBuilder<'a>,
) -> Result<Option<Statement<'a>>, TranspileError> {
    let span = statement.span();
    let nothing = || Statement::new_empty_statement(span, builder);
    match statement {
        Statement::ImportDeclaration(import) => match concerns_types_only(import) {
            true => Ok(Some(nothing())),
            false if exists(&import.source.value) => {
                Ok(Some(declare(&bindings(import), span, allocator).unwrap_or_else(nothing)))
            }
            false => Err(refused(source, &import.source.value, span)),
        },
        Statement::TSImportEqualsDeclaration(import) => match &import.module_reference {
            TSModuleReference::ExternalModuleReference(module) if !import.import_kind.is_type() => {
                let name = &module.expression.value;
                if !exists(name) {
                    return Err(refused(source, name, span));
                }
                let binding = format!("{} = {}.default", import.id.name, module_now(name));
                Ok(Some(declare(&[binding], span, allocator).unwrap_or_else(nothing)))
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

fn exists(module: &str) -> bool {
    MODULES.contains(&module.strip_prefix("node:").unwrap_or(module))
}

/// The module, in the script.
fn module_now(module: &str) -> String {
    format!("{IMPORT_PARAMETER}.now({module:?})")
}

/// The names that an import binds, as declarators.
fn bindings(import: &ImportDeclaration<'_>) -> Vec<String> {
    use oxc::ast::ast::ImportDeclarationSpecifier as Specifier;
    let module = module_now(&import.source.value);
    let specifiers = import.specifiers.iter().flatten();
    let bound = specifiers.filter_map(|specifier| match specifier {
        Specifier::ImportSpecifier(named) if named.import_kind.is_type() => None,
        Specifier::ImportSpecifier(named) => {
            let (name, local) = (named.imported.name(), &named.local.name);
            Some(format!("{{ {name:?}: {local} }} = {module}"))
        }
        Specifier::ImportDefaultSpecifier(default) => {
            Some(format!("{} = {module}.default", default.local.name))
        }
        Specifier::ImportNamespaceSpecifier(all) => Some(format!("{} = {module}", all.local.name)),
    });
    bound.collect()
}

/// A declaration with these declarators, at the place of the import; `None` without any.
fn declare<'a>(bindings: &[String], span: Span, allocator: &'a Allocator) -> Option<Statement<'a>> {
    statement_at(&format!("const {};", bindings.join(", ")), span, allocator)
}

/// A statement that did not stand in the source, as if it stood there.
pub(super) fn statement_at<'a>(
    text: &str,
    span: Span,
    allocator: &'a Allocator,
) -> Option<Statement<'a>> {
    let text = allocator.alloc_str(text);
    let mut statement = parse(allocator, text, SourceType::mjs()).program.body.pop()?;
    MoveTo(span).visit_statement(&mut statement);
    Some(statement)
}

/// Gives every node the same place.
struct MoveTo(Span);

impl VisitMut<'_> for MoveTo {
    fn visit_span(&mut self, span: &mut Span) {
        *span = self.0;
    }
}

fn refused(source: &SourceCode, module: &str, span: Span) -> TranspileError {
    let message = format!("PermissionError: {}", hints::module_refused(module));
    let error = error_at(source, ErrorCode::PermissionModule, message, span.start);
    let error = Box::new(error.with_hint(hints::MODULE));
    TranspileError { error, attempt: Some(format!("import {module:?}")) }
}

fn nobody_imports(source: &SourceCode, span: Span) -> TranspileError {
    let message = "SyntaxError: nothing can import from this code, so it cannot export a value";
    error_at(source, ErrorCode::SyntaxUnsupported, message, span.start)
        .with_hint("Use `return value` to give the value back.")
        .into()
}
