//! Idioms of Node for code that does not know whether it is a program or a module: it asks
//! whether it is the program (it is), where it stands, and exports in case it is a module.
//!
//! `module` and `exports` are not variables here: libraries that are pasted in front of code ask for
//! them by `typeof`, and would export to them instead of making their names global.

use oxc::{
    allocator::TakeIn,
    ast::{
        ast::{
            AssignmentOperator, AssignmentTarget, BinaryOperator, Expression, IdentifierName,
            Program, Statement, UnaryOperator,
        },
        builder::AstBuilder,
    },
    span::GetSpan,
};

use super::IMPORT_PARAMETER;

/// Answers `require.main === module` and `import.meta`.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other expressions stay")]
pub(super) fn settle<'a>(expression: &mut Expression<'a>, builder: &AstBuilder<'a>) {
    let span = expression.span();
    match expression {
        Expression::BinaryExpression(binary) => {
            let is_equality = matches!(
                binary.operator,
                BinaryOperator::StrictEquality | BinaryOperator::Equality
            );
            let asks = |one, other| is_member(one, "require", "main") && is_name(other, "module");
            if is_equality
                && (asks(&binary.left, &binary.right) || asks(&binary.right, &binary.left))
            {
                *expression = Expression::new_boolean_literal(span, true, builder);
            }
        }
        Expression::ImportMeta(_) => {
            let object = Expression::new_identifier(span, IMPORT_PARAMETER, builder);
            let name = IdentifierName::new(span, "meta", builder);
            *expression =
                Expression::new_static_member_expression(span, object, name, false, builder);
        }
        _ => {}
    }
}

/// Drops the exporting of `module.exports = value` and `exports.name = value` at the top level: the
/// value is still made, and is not the value of the run.
pub(super) fn drop_exports<'a>(program: &mut Program<'a>, builder: &AstBuilder<'a>) {
    if program.body.iter().any(declares) {
        return;
    }
    for statement in &mut program.body {
        let Statement::ExpressionStatement(statement) = statement else { continue };
        let span = statement.span;
        if let Expression::AssignmentExpression(assignment) = &mut statement.expression
            && assignment.operator == AssignmentOperator::Assign
            && is_exported(&assignment.left)
        {
            let mut value = assignment.right.take_in(builder);
            // exports = module.exports = value
            if let Expression::AssignmentExpression(inner) = &mut value
                && is_exported(&inner.left)
            {
                value = inner.right.take_in(builder);
            }
            statement.expression =
                Expression::new_unary_expression(span, UnaryOperator::Void, value, builder);
        }
    }
}

/// Whether the code has variables of these names itself.
fn declares(statement: &Statement<'_>) -> bool {
    let Statement::VariableDeclaration(variables) = statement else { return false };
    let names = variables.declarations.iter().filter_map(|one| one.id.get_identifier_name());
    names.into_iter().any(|name| name == "module" || name == "exports")
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all other targets are ordinary")]
fn is_exported(target: &AssignmentTarget<'_>) -> bool {
    match target {
        AssignmentTarget::StaticMemberExpression(member) => {
            let is_whole = is_name(&member.object, "module") && member.property.name == "exports";
            let is_part = is_name(&member.object, "exports");
            is_whole || is_part || is_member(&member.object, "module", "exports")
        }
        AssignmentTarget::AssignmentTargetIdentifier(name) => name.name == "exports",
        _ => false,
    }
}

fn is_name(expression: &Expression<'_>, name: &str) -> bool {
    matches!(expression, Expression::Identifier(one) if one.name == name)
}

fn is_member(expression: &Expression<'_>, object: &str, name: &str) -> bool {
    matches!(expression, Expression::StaticMemberExpression(member)
        if is_name(&member.object, object) && member.property.name == name)
}
