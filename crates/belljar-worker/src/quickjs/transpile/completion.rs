//! The value of code without a `return`: its last expression, as in a console.

use oxc::{
    allocator::{ArenaBox, ArenaVec, TakeIn},
    ast::{
        ast::{Expression, Program, Statement},
        builder::AstBuilder,
    },
    span::GetSpan,
};

/// Puts a `return` before the last expression, wherever control may end.
///
/// Looks into blocks, `if` and `try`; not into loops, whose last round is not the last thing the
/// code means to say.
pub(super) fn return_last_expression<'a>(program: &mut Program<'a>, builder: &AstBuilder<'a>) {
    if program.body.is_empty() {
        // Code that is one string literal parses as a directive.
        if let Some(directive) = program.directives.pop() {
            let span = directive.span;
            let value = Expression::StringLiteral(ArenaBox::new_in(directive.expression, builder));
            program.body.push(Statement::new_return_statement(span, Some(value), builder));
        }
        return;
    }
    complete_last(&mut program.body, builder);
}

fn complete_last<'a>(body: &mut ArenaVec<'a, Statement<'a>>, builder: &AstBuilder<'a>) {
    // Function declarations are hoisted, so declarations after the `return` are not lost.
    let is_inert = |statement: &Statement<'a>| {
        matches!(statement, Statement::FunctionDeclaration(_) | Statement::EmptyStatement(_))
    };
    if let Some(last) = body.iter_mut().rev().find(|statement| !is_inert(statement)) {
        complete(last, builder);
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others have no value")]
fn complete<'a>(statement: &mut Statement<'a>, builder: &AstBuilder<'a>) {
    match statement {
        Statement::ExpressionStatement(last) => {
            let span = last.span();
            let value = last.expression.take_in(builder);
            *statement = Statement::new_return_statement(span, Some(value), builder);
        }
        Statement::BlockStatement(block) => complete_last(&mut block.body, builder),
        Statement::IfStatement(branch) => {
            complete(&mut branch.consequent, builder);
            if let Some(alternate) = &mut branch.alternate {
                complete(alternate, builder);
            }
        }
        Statement::TryStatement(attempt) => {
            complete_last(&mut attempt.block.body, builder);
            if let Some(handler) = &mut attempt.handler {
                complete_last(&mut handler.body.body, builder);
            }
        }
        _ => {}
    }
}
