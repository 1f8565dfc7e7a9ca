//! Names that are data: ids, dates, addresses, paths. An object with such keys is a map.

/// With fewer keys nothing can be said.
const FEWEST: usize = 3;
/// No field is called by a longer name.
const LONGEST: usize = 64;

/// Whether these keys of one kind of object are data rather than names of fields.
pub(super) fn are_data(names: &[&str]) -> bool {
    let data = names.iter().filter(|name| is_data(name)).count();
    // One name too long for a field is kept out of a shape whatever stands beside it.
    let too_long = names.iter().any(|name| name.chars().count() > LONGEST);
    too_long || (names.len() >= FEWEST && data == names.len())
}

fn is_data(name: &str) -> bool {
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let hexadecimal = name.len() >= 8
        && digits > 0
        && name.chars().all(|character| character.is_ascii_hexdigit() || character == '-');
    let numeric = digits > 0
        && name
            .chars()
            .all(|character| character.is_ascii_digit() || "-.:_TZ+ ".contains(character));
    hexadecimal || numeric || name.contains(['/', '@', '\\'])
}
