//! There are a few modules here: `import` of one becomes a declaration, and of any other is
//! refused, unless the code never uses what it imports. What `export` becomes is in [`exports`].
//!
//! [`exports`]: super::exports

use std::collections::HashMap;

use belljar_contract::{ErrorCode, Language};
use oxc::{
    allocator::{Allocator, TakeIn},
    ast::{
        ast::{
            ImportDeclaration, ImportDeclarationSpecifier, Program, Statement, TSModuleReference,
        },
        builder::AstBuilder,
    },
    ast_visit::VisitMut,
    span::{GetSpan, SourceType, Span},
};

use super::{
    IMPORT_PARAMETER, NameScope, SourceCode, TranspileError,
    exports::{DefaultExport, ExportSettler},
    mentions, parse,
    syntax::error_at,
};
use crate::quickjs::{hints, node_modules};

/// Strips what only concerns types, unwraps exported declarations, binds what is imported from
/// modules there are, refuses the rest. Gives what the code exports as its default.
pub(super) fn settle<'a>(
    program: &mut Program<'a>,
    source: &SourceCode,
    allocator: &'a Allocator,
    builder: &AstBuilder<'a>,
) -> Result<DefaultExport, TranspileError> {
    let mut settler = Settler {
        source,
        allocator,
        builder,
        exports: ExportSettler::new(program),
        mentions: used_names(program, source),
    };
    for statement in &mut program.body {
        if let Some(settled) = settler.settle(statement)? {
            *statement = settled;
        }
    }
    Ok(settler.exports.default.unwrap_or(DefaultExport::None))
}

/// The names a TypeScript program uses, if it imports any. Compilers drop imports that are never
/// used; those of a session may be used by a later run, and JavaScript means what it says.
fn used_names(program: &Program<'_>, source: &SourceCode) -> Option<HashMap<String, usize>> {
    let drops = source.language == Language::TypeScript && source.scope == NameScope::Run;
    let imports = |statement: &Statement<'_>| matches!(statement, Statement::ImportDeclaration(_));
    (drops && program.body.iter().any(imports)).then(|| mentions::count(program))
}

struct Settler<'a, 'b> {
    source: &'b SourceCode,
    allocator: &'a Allocator,
    builder: &'b AstBuilder<'a>,
    exports: ExportSettler,
    mentions: Option<HashMap<String, usize>>,
}

impl<'a> Settler<'a, '_> {
    /// The statement to put in place of this one; `None` leaves it alone.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only modules are settled here")]
    fn settle(
        &mut self,
        statement: &mut Statement<'a>,
    ) -> Result<Option<Statement<'a>>, TranspileError> {
        let span = statement.span();
        let (allocator, builder) = (self.allocator, self.builder);
        let nothing = || Statement::new_empty_statement(span, builder);
        let settled = match statement {
            Statement::ImportDeclaration(import) => self.settle_import(import, span)?,
            Statement::TSImportEqualsDeclaration(import) => match &import.module_reference {
                TSModuleReference::ExternalModuleReference(module)
                    if !import.import_kind.is_type() =>
                {
                    let name = &module.expression.value;
                    self.require_module(name, span)?;
                    let binding = format!("{} = {}.default", import.id.name, module_now(name));
                    declare(&[binding], span, allocator).unwrap_or_else(nothing)
                }
                _ => return Ok(None),
            },
            Statement::ExportDeclaration(export) => {
                Statement::from(export.declaration.take_in(builder))
            }
            Statement::ExportFromDeclaration(export) => {
                if !export.export_kind.is_type() {
                    self.require_module(&export.source.value, span)?;
                }
                nothing()
            }
            Statement::ExportAllDeclaration(export) => {
                if !export.export_kind.is_type() {
                    self.require_module(&export.source.value, span)?;
                }
                nothing()
            }
            Statement::ExportNamedDeclaration(export) => {
                let mut names = export.specifiers.iter();
                let default = names.find(|one| one.exported.name() == "default");
                match default.map(|one| one.local.name().to_string()) {
                    Some(name) if !export.export_kind.is_type() => self.settle_named(&name, span),
                    _ => nothing(),
                }
            }
            Statement::ExportDefaultDeclaration(export) => {
                self.exports.settle_default(&mut export.declaration, span, allocator, builder)
            }
            Statement::TSExportAssignment(export) => {
                let value = export.expression.take_in(builder);
                self.exports.settle_value(value, span, allocator, builder)
            }
            Statement::TSNamespaceExportDeclaration(_) => nothing(),
            _ => return Ok(None),
        };
        Ok(Some(settled))
    }

    fn settle_named(&mut self, name: &str, span: Span) -> Statement<'a> {
        use oxc::ast::ast::Expression;
        let name = self.allocator.alloc_str(name);
        let value = Expression::new_identifier(span, name, self.builder);
        self.exports.settle_value(value, span, self.allocator, self.builder)
    }

    fn settle_import(
        &self,
        import: &ImportDeclaration<'a>,
        span: Span,
    ) -> Result<Statement<'a>, TranspileError> {
        let nothing = || Statement::new_empty_statement(span, self.builder);
        if concerns_types_only(import) || self.is_unused(import) {
            return Ok(nothing());
        }
        self.require_module(&import.source.value, span)?;
        let bindings = bindings(import);
        if bindings.is_empty() {
            return Ok(nothing());
        }
        Ok(declare(&bindings, span, self.allocator).unwrap_or_else(nothing))
    }

    /// Whether the code uses nothing of what it imports from a module that is not here. `import "m"`
    /// is there for its effects.
    fn is_unused(&self, import: &ImportDeclaration<'_>) -> bool {
        let (Some(mentions), Some(specifiers)) = (&self.mentions, &import.specifiers) else {
            return false;
        };
        if node_modules::file_of(&import.source.value).is_some() {
            return false;
        }
        let is_used =
            |one: &ImportDeclarationSpecifier<'_>| mentions.contains_key(one.local().name.as_str());
        !specifiers.iter().any(is_used)
    }

    fn require_module(&self, module: &str, span: Span) -> Result<(), TranspileError> {
        match node_modules::file_of(module) {
            Some(_) => Ok(()),
            None => Err(refused(self.source, module, span)),
        }
    }
}

fn concerns_types_only(import: &ImportDeclaration<'_>) -> bool {
    use ImportDeclarationSpecifier as Specifier;
    let is_type = |specifier: &Specifier<'_>| match specifier {
        Specifier::ImportSpecifier(named) => named.import_kind.is_type(),
        Specifier::ImportDefaultSpecifier(_) | Specifier::ImportNamespaceSpecifier(_) => false,
    };
    import.import_kind.is_type()
        || import.specifiers.as_ref().is_some_and(|all| !all.is_empty() && all.iter().all(is_type))
}

/// The module, in the script.
fn module_now(module: &str) -> String {
    format!("{IMPORT_PARAMETER}.now({module:?})")
}

/// The same, of which this name is wanted.
fn module_with(module: &str, name: &str) -> String {
    format!("{IMPORT_PARAMETER}.now({module:?}, {name:?})")
}

/// The names that an import binds, as declarators.
fn bindings(import: &ImportDeclaration<'_>) -> Vec<String> {
    use ImportDeclarationSpecifier as Specifier;
    let module = module_now(&import.source.value);
    let specifiers = import.specifiers.iter().flatten();
    let bound = specifiers.filter_map(|specifier| match specifier {
        Specifier::ImportSpecifier(named) if named.import_kind.is_type() => None,
        Specifier::ImportSpecifier(named) => {
            let (name, local) = (named.imported.name(), &named.local.name);
            let module = module_with(&import.source.value, &name);
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
    let error = Box::new(error.with_hint(node_modules::hint_for(module)));
    TranspileError { error, attempt: Some(format!("import {module:?}")) }
}
