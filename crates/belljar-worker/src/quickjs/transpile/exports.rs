//! Nothing imports from guest code, so what it exports is its value, or nothing.
//!
//! `export default` is the value of code that returns nothing else. A function is no value: one
//! that the code itself never mentions again was written to be called, so it is called, with
//! `context`; any other is left alone. Other exports lose their meaning.

use std::collections::HashMap;

use oxc::{
    allocator::{Allocator, TakeIn},
    ast::{
        ast::{
            ClassType, Declaration, ExportDefaultDeclarationKind, Expression, FunctionType,
            Program, Statement, VariableDeclaration,
        },
        builder::AstBuilder,
    },
    span::{GetSpan, Span},
};

use super::{mentions, modules::statement_at};

/// The variable that holds a default export until the code has ended.
const DEFAULT: &str = "$belljarDefault";

/// The default export of the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DefaultExport {
    /// A value.
    Value,
    /// A function of this name that nothing has called.
    Function(String),
    /// There is none, or it cannot be a value.
    None,
}

impl DefaultExport {
    /// The last statement of code that returns nothing else.
    pub(super) fn into_statement<'a>(
        self,
        span: Span,
        allocator: &'a Allocator,
    ) -> Option<Statement<'a>> {
        let value = match self {
            Self::Value => DEFAULT.to_owned(),
            Self::Function(name) => format!("{name}(context)"),
            Self::None => return None,
        };
        statement_at(&format!("return {value};"), span, allocator)
    }
}

/// Names of functions and classes at the top level; none of them is a value.
#[derive(Debug, Default)]
pub(super) struct ExportSettler {
    functions: Vec<String>,
    classes: Vec<String>,
    mentions: HashMap<String, usize>,
    pub(super) default: Option<DefaultExport>,
}

impl ExportSettler {
    /// Looks at the top level, if there is a default export at all.
    pub(super) fn new(program: &Program<'_>) -> Self {
        let mut settler = Self::default();
        if !program.body.iter().any(exports_default) {
            return settler;
        }
        settler.mentions = mentions::count(program);
        for statement in &program.body {
            settler.note(statement);
        }
        settler
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only functions and classes are noted")]
    fn note(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::FunctionDeclaration(function) => {
                self.functions.extend(function.id.as_ref().map(|name| name.name.to_string()));
            }
            Statement::ClassDeclaration(class) => {
                self.classes.extend(class.id.as_ref().map(|name| name.name.to_string()));
            }
            Statement::VariableDeclaration(variables) => self.note_variables(variables),
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::FunctionDeclaration(function) => {
                    self.functions.extend(function.id.as_ref().map(|name| name.name.to_string()));
                }
                Declaration::ClassDeclaration(class) => {
                    self.classes.extend(class.id.as_ref().map(|name| name.name.to_string()));
                }
                Declaration::VariableDeclaration(variables) => self.note_variables(variables),
                _ => {}
            },
            _ => {}
        }
    }

    fn note_variables(&mut self, variables: &VariableDeclaration<'_>) {
        for variable in &variables.declarations {
            let is_function = variable.init.as_ref().is_some_and(is_function);
            if let Some(name) = variable.id.get_identifier_name().filter(|_| is_function) {
                self.functions.push(name.to_string());
            }
        }
    }

    /// The statement in place of `export default …`.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are expressions")]
    pub(super) fn settle_default<'a>(
        &mut self,
        exported: &mut ExportDefaultDeclarationKind<'a>,
        span: Span,
        allocator: &'a Allocator,
        builder: &AstBuilder<'a>,
    ) -> Statement<'a> {
        match exported {
            ExportDefaultDeclarationKind::FunctionDeclaration(function)
                if function.id.is_some() =>
            {
                let name = function.id.as_ref().map(|id| id.name.to_string()).unwrap_or_default();
                let is_called = self.mentioned(&name) > 0;
                self.default = (!is_called && function.body.is_some())
                    .then_some(DefaultExport::Function(name));
                Statement::FunctionDeclaration(function.take_in_box(builder))
            }
            ExportDefaultDeclarationKind::ClassDeclaration(class) if class.id.is_some() => {
                Statement::ClassDeclaration(class.take_in_box(builder))
            }
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => {
                Statement::new_empty_statement(span, builder)
            }
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                function.r#type = FunctionType::FunctionExpression;
                let function = Expression::FunctionExpression(function.take_in_box(builder));
                self.settle_value(function, span, allocator, builder)
            }
            ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                class.r#type = ClassType::ClassExpression;
                let class = Expression::ClassExpression(class.take_in_box(builder));
                Statement::new_expression_statement(span, class, builder)
            }
            other => match other.as_expression_mut() {
                Some(value) => {
                    let value = value.take_in(builder);
                    self.settle_value(value, span, allocator, builder)
                }
                None => Statement::new_empty_statement(span, builder),
            },
        }
    }

    /// The statement in place of the export of an expression.
    pub(super) fn settle_value<'a>(
        &mut self,
        value: Expression<'a>,
        span: Span,
        allocator: &'a Allocator,
        builder: &AstBuilder<'a>,
    ) -> Statement<'a> {
        let nothing = || Statement::new_empty_statement(span, builder);
        if let Expression::Identifier(name) = &value
            && self.settle_name(name.name.as_str())
        {
            return nothing();
        }
        self.default = Some(match is_function(&value) {
            true => DefaultExport::Function(DEFAULT.to_owned()),
            false => DefaultExport::Value,
        });
        let text = format!("var {DEFAULT} = 0;");
        let Some(mut statement) = statement_at(&text, value.span(), allocator) else {
            return nothing();
        };
        if let Statement::VariableDeclaration(variables) = &mut statement
            && let Some(variable) = variables.declarations.first_mut()
        {
            variable.init = Some(value);
        }
        statement
    }

    /// Settles the export of a function or class by its name; false for any other name.
    pub(super) fn settle_name(&mut self, name: &str) -> bool {
        let is_class = self.classes.iter().any(|class| class == name);
        let is_function = self.functions.iter().any(|function| function == name);
        // The export itself mentions it.
        if is_function && self.mentioned(name) <= 1 {
            self.default = Some(DefaultExport::Function(name.to_owned()));
        }
        is_class || is_function
    }

    fn mentioned(&self, name: &str) -> usize {
        self.mentions.get(name).copied().unwrap_or_default()
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others export no default")]
fn exports_default(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ExportDefaultDeclaration(_) | Statement::TSExportAssignment(_) => true,
        Statement::ExportNamedDeclaration(export) => {
            export.specifiers.iter().any(|one| one.exported.name() == "default")
        }
        _ => false,
    }
}

fn is_function(value: &Expression<'_>) -> bool {
    matches!(value, Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_))
}
