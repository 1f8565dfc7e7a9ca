//! The last pass: inlines definitions, or keeps their names, and removes empty recursion.

use std::collections::HashSet;

use super::{Definition, Schema, Type, simplify::union};

/// How deep definitions are written within each other before they keep their names.
const MAX_INLINED: usize = 6;

/// Inlines definitions that are small or used once, breaks those made of nothing but themselves, and
/// drops those that are not used.
pub(super) fn tidy(mut schema: Schema) -> Schema {
    let hollow: Vec<bool> =
        (0..schema.definitions.len()).map(|index| is_hollow(&schema.definitions, index)).collect();
    for (definition, hollow) in schema.definitions.iter_mut().zip(hollow) {
        if hollow {
            definition.kind = Type::Unknown;
        }
    }
    let keep = kept(&schema);
    let inlined = |kind: Type| inline(kind, &schema.definitions, &keep, 0);
    let root = inlined(schema.root.clone());
    let definitions = schema.definitions.iter().map(|definition| Definition {
        name: definition.name.clone(),
        kind: inlined(definition.kind.clone()),
    });
    used_only(root, definitions.collect())
}

/// Whether a definition leads back to itself without an object or an array on the way, so that it
/// says nothing.
fn is_hollow(definitions: &[Definition], index: usize) -> bool {
    let mut seen = HashSet::new();
    let mut open: Vec<&Type> =
        definitions.get(index).map(|first| &first.kind).into_iter().collect();
    while let Some(kind) = open.pop() {
        if let Type::Union(types) | Type::Both(types) = kind {
            open.extend(types);
        } else if let Type::Named(name) = kind {
            if *name == index {
                return true;
            }
            let new = seen.insert(*name);
            open.extend(definitions.get(*name).filter(|_| new).map(|named| &named.kind));
        }
    }
    false
}

/// Which definitions keep their names: those used twice or more and not small, and those that lead
/// back to themselves.
fn kept(schema: &Schema) -> Vec<bool> {
    let mut uses = vec![0_usize; schema.definitions.len()];
    let mut within: Vec<Vec<usize>> = Vec::new();
    for definition in &schema.definitions {
        within.push(names_in(&definition.kind));
    }
    for name in within.iter().flatten().chain(&names_in(&schema.root)) {
        if let Some(count) = uses.get_mut(*name) {
            *count += 1;
        }
    }
    (0..schema.definitions.len())
        .map(|index| {
            let kind = schema.definitions.get(index).map(|definition| &definition.kind);
            let small = kind.is_none_or(is_small);
            let often = uses.get(index).is_some_and(|count| *count > 1);
            (often && !small) || leads_to(&within, index)
        })
        .collect()
}

fn is_small(kind: &Type) -> bool {
    if let Type::Array(items) = kind {
        return items.is_plain();
    }
    if let Type::Union(types) = kind {
        return types.len() <= 3 && types.iter().all(Type::is_plain);
    }
    kind.is_plain()
}

fn names_in(kind: &Type) -> Vec<usize> {
    if let Type::Named(name) = kind {
        return vec![*name];
    }
    kind.inner().into_iter().flat_map(names_in).collect()
}

fn leads_to(within: &[Vec<usize>], index: usize) -> bool {
    let mut seen = HashSet::new();
    let mut open = within.get(index).cloned().unwrap_or_default();
    while let Some(name) = open.pop() {
        if name == index {
            return true;
        }
        if seen.insert(name) {
            open.extend(within.get(name).into_iter().flatten());
        }
    }
    false
}

fn inline(kind: Type, definitions: &[Definition], keep: &[bool], depth: usize) -> Type {
    if let Type::Named(name) = kind {
        return match (keep.get(name), definitions.get(name)) {
            (Some(false), Some(definition)) if depth < MAX_INLINED => {
                inline(definition.kind.clone(), definitions, keep, depth + 1)
            }
            _ => kind,
        };
    }
    if let Type::Union(types) = kind {
        // A name may have become a union itself, or anything at all.
        let types = types.into_iter().map(|inner| inline(inner, definitions, keep, depth));
        return union(types.collect());
    }
    kind.map(|inner| inline(inner, definitions, keep, depth))
}

/// The schema with only the definitions the root leads to, numbered anew.
fn used_only(root: Type, definitions: Vec<Definition>) -> Schema {
    let mut order: Vec<usize> = Vec::new();
    let mut open = names_in(&root);
    open.reverse();
    while let Some(name) = open.pop() {
        if order.contains(&name) {
            continue;
        }
        order.push(name);
        if let Some(definition) = definitions.get(name) {
            open.extend(names_in(&definition.kind).into_iter().rev());
        }
    }
    let place = |name: usize| order.iter().position(|other| *other == name);
    let kept = order.iter().filter_map(|name| definitions.get(*name));
    let definitions = kept
        .map(|definition| Definition {
            name: definition.name.clone(),
            kind: renumbered(definition.kind.clone(), &place),
        })
        .collect();
    Schema { root: renumbered(root, &place), definitions }
}

fn renumbered(kind: Type, place: &dyn Fn(usize) -> Option<usize>) -> Type {
    if let Type::Named(name) = kind {
        return place(name).map_or(Type::Unknown, Type::Named);
    }
    kind.map(|inner| renumbered(inner, place))
}
