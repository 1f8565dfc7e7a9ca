//! Compares names that are not spelt exactly, and finds similar ones.
//!
//! Folding drops case and everything that is not a letter or digit, so `readFile`, `read_file` and
//! `read-file` are one; it is used only after the exact spelling has found nothing.

/// Longer names are compared by their beginning only: distance costs the product of lengths.
const COMPARED: usize = 64;

/// The name without case and separators.
pub fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words of a name, split at separators and at humps: `getHTTPStatus` is get, HTTP, Status.
pub(crate) fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for (index, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            continue;
        }
        let before = index.checked_sub(1).and_then(|at| characters.get(at));
        let after = characters.get(index + 1);
        let hump = character.is_uppercase()
            && (before.is_some_and(|c| c.is_lowercase() || c.is_ascii_digit())
                || (before.is_some_and(|c| c.is_uppercase())
                    && after.is_some_and(|c| c.is_lowercase())));
        if hump && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.push(character);
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// How many insertions, removals, replacements and swaps of neighbours lead from one to the other.
pub(crate) fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(COMPARED).collect();
    let right: Vec<char> = right.chars().take(COMPARED).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut current = Vec::with_capacity(right.len() + 1);
        current.push(row + 1);
        for (column, b) in right.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(COMPARED);
            let replaced = at(&last, column) + usize::from(a != b);
            let mut best = replaced.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            let swapped = row > 0
                && column > 0
                && left.get(row - 1) == Some(b)
                && right.get(column - 1) == Some(a);
            if swapped {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}

/// The names most like `wanted`, best first, at most `most`; none if nothing is like it.
pub fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<String> {
    let folded = fold(wanted);
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| likeness(&folded, &fold(name)).map(|score| (score, name)))
        .collect();
    scored.sort_unstable();
    scored.dedup();
    scored.into_iter().take(most).map(|(_, name)| name.to_owned()).collect()
}

/// How far a name is from the wanted one, in tenths of an edit, or nothing if it is too far.
fn likeness(wanted: &str, name: &str) -> Option<usize> {
    if wanted.is_empty() || name.is_empty() {
        return None;
    }
    let length = wanted.chars().count().min(COMPARED);
    let edits = distance(wanted, name);
    let close = edits <= (length / 3).max(1);
    // A part of a name is often what was meant by it: `read` for `read_file`.
    let contained = length >= 3 && (name.contains(wanted) || wanted.contains(name));
    match (close, contained) {
        (true, _) => Some(edits * 10),
        (false, true) => Some(edits * 2 + 15),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests;
