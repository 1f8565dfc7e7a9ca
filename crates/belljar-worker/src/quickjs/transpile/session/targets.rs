//! Turns the pattern of a declaration into the target of an assignment: `{ a, b: [c = 1] }` either
//! way.

use std::collections::BTreeSet;

use oxc::{
    allocator::{ArenaBox, ArenaVec},
    ast::{
        ast::{
            ArrayPattern, AssignmentTarget, AssignmentTargetMaybeDefault, AssignmentTargetProperty,
            AssignmentTargetRest, BindingPattern, BindingRestElement, ObjectPattern,
        },
        builder::AstBuilder,
    },
};

/// Adds the names a pattern binds.
pub(super) fn bound_names(pattern: &BindingPattern<'_>, names: &mut BTreeSet<String>) {
    names.extend(pattern.get_binding_identifiers().iter().map(|bound| bound.name.to_string()));
}

/// The assignment target with the same names.
pub(super) fn target<'a>(
    pattern: BindingPattern<'a>,
    builder: &AstBuilder<'a>,
) -> AssignmentTarget<'a> {
    match pattern {
        BindingPattern::BindingIdentifier(name) => {
            AssignmentTarget::new_assignment_target_identifier(name.span, name.name, builder)
        }
        BindingPattern::ObjectPattern(object) => of_object(object.unbox(), builder),
        BindingPattern::ArrayPattern(array) => of_array(array.unbox(), builder),
        // Only parts of patterns have a default.
        BindingPattern::AssignmentPattern(part) => target(part.unbox().left, builder),
    }
}

fn of_object<'a>(object: ObjectPattern<'a>, builder: &AstBuilder<'a>) -> AssignmentTarget<'a> {
    let ObjectPattern { span, properties, rest, .. } = object;
    let mut parts = ArenaVec::new_in(builder);
    for property in properties {
        let value = part(property.value, builder);
        parts.push(AssignmentTargetProperty::new_assignment_target_property_property(
            property.span,
            property.key,
            value,
            property.computed,
            builder,
        ));
    }
    AssignmentTarget::new_object_assignment_target(span, parts, of_rest(rest, builder), builder)
}

fn of_array<'a>(array: ArrayPattern<'a>, builder: &AstBuilder<'a>) -> AssignmentTarget<'a> {
    let ArrayPattern { span, elements, rest, .. } = array;
    let mut parts = ArenaVec::new_in(builder);
    for element in elements {
        parts.push(element.map(|element| part(element, builder)));
    }
    AssignmentTarget::new_array_assignment_target(span, parts, of_rest(rest, builder), builder)
}

fn of_rest<'a>(
    rest: Option<ArenaBox<'a, BindingRestElement<'a>>>,
    builder: &AstBuilder<'a>,
) -> Option<ArenaBox<'a, AssignmentTargetRest<'a>>> {
    let BindingRestElement { span, argument, .. } = rest?.unbox();
    Some(AssignmentTargetRest::boxed(span, target(argument, builder), builder))
}

fn part<'a>(
    pattern: BindingPattern<'a>,
    builder: &AstBuilder<'a>,
) -> AssignmentTargetMaybeDefault<'a> {
    match pattern {
        BindingPattern::AssignmentPattern(part) => {
            let part = part.unbox();
            let binding = target(part.left, builder);
            AssignmentTargetMaybeDefault::new_assignment_target_with_default(
                part.span, binding, part.right, builder,
            )
        }
        BindingPattern::BindingIdentifier(_)
        | BindingPattern::ObjectPattern(_)
        | BindingPattern::ArrayPattern(_) => target(pattern, builder).into(),
    }
}
