//! One pass over the whole tree: finds a top-level `return` and the parts that must be rewritten.

use belljar_contract::ErrorCode;
use belljar_wire::GuestError;
use oxc::{
    allocator::{ArenaVec, TakeIn},
    ast::{
        ast::{
            AccessorProperty, Argument, ArrowFunctionExpression, Decorator, Expression, Function,
            Program, ReturnStatement,
        },
        builder::AstBuilder,
    },
    ast_visit::{VisitMut, walk_mut},
    semantic::ScopeFlags,
    span::Span,
};

use super::{IMPORT_PARAMETER, SourceCode, common_js, syntax::error_at};

/// Whether the code states its value with a `return`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Returns {
    /// Some `return` stands outside every function.
    TopLevel,
    /// No `return` stands outside every function.
    None,
}

/// Turns `import()` into a call that refuses, and refuses syntax QuickJS does not know.
pub(super) fn survey<'a>(
    program: &mut Program<'a>,
    source: &SourceCode,
    builder: &AstBuilder<'a>,
) -> Result<Returns, GuestError> {
    let mut visitor = Visitor { builder, functions: 0, returns: Returns::None, unsupported: None };
    visitor.visit_program(program);
    match visitor.unsupported {
        Some((what, span)) => {
            let message = format!("SyntaxError: {what} are not supported");
            let error = error_at(source, ErrorCode::SyntaxUnsupported, message, span.start);
            Err(error.with_hint("Write the same thing with plain functions or methods."))
        }
        None => Ok(visitor.returns),
    }
}

struct Visitor<'a, 'b> {
    builder: &'b AstBuilder<'a>,
    functions: u32,
    returns: Returns,
    unsupported: Option<(&'static str, Span)>,
}

impl<'a> VisitMut<'a> for Visitor<'a, '_> {
    fn visit_function(&mut self, function: &mut Function<'a>, flags: ScopeFlags) {
        self.functions += 1;
        walk_mut::walk_function(self, function, flags);
        self.functions -= 1;
    }

    fn visit_arrow_function_expression(&mut self, arrow: &mut ArrowFunctionExpression<'a>) {
        self.functions += 1;
        walk_mut::walk_arrow_function_expression(self, arrow);
        self.functions -= 1;
    }

    fn visit_return_statement(&mut self, statement: &mut ReturnStatement<'a>) {
        if self.functions == 0 {
            self.returns = Returns::TopLevel;
        }
        walk_mut::walk_return_statement(self, statement);
    }

    fn visit_decorator(&mut self, decorator: &mut Decorator<'a>) {
        self.unsupported.get_or_insert(("decorators", decorator.span));
    }

    fn visit_accessor_property(&mut self, property: &mut AccessorProperty<'a>) {
        self.unsupported.get_or_insert(("`accessor` fields", property.span));
    }

    fn visit_expression(&mut self, expression: &mut Expression<'a>) {
        common_js::settle(expression, self.builder);
        walk_mut::walk_expression(self, expression);
        if let Expression::ImportExpression(import) = expression {
            let span = import.span;
            let module = Argument::from(import.source.take_in(self.builder));
            let callee = Expression::new_identifier(span, IMPORT_PARAMETER, self.builder);
            let arguments = ArenaVec::from_array_in([module], self.builder);
            *expression =
                Expression::new_call_expression(span, callee, None, arguments, false, self.builder);
        }
    }
}
