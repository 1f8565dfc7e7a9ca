//! Names in `snake_case` and `camelCase`: requests and files are written in both.

/// Whether two names differ only in case, underscores and hyphens: `timeout_ms` and `timeoutMS` do.
pub fn is_spelled_alike(left: &str, right: &str) -> bool {
    letters(left).eq(letters(right))
}

/// A name in `camelCase`: `timeoutMs` for `timeout_ms`. A name that has no underscore stays as it is.
pub fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase)
}
