//! Suggests the command or flag that a misspelt one was meant to be.
//!
//! Only names at a small distance are suggested. Among equally distant names, the more common one comes
//! first.

use std::{env, ffi::OsString};

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Commands from the most to the least common.
const BY_USE: [&str; 12] = [
    "run",
    "serve",
    "tools",
    "approvals",
    "workflow",
    "session",
    "doctor",
    "resume",
    "list",
    "show",
    "approve",
    "call",
];

/// Replaces the suggestions of an error by the parser.
pub(crate) fn improve(error: &mut Error, mut root: Command) {
    // Only a command that is built knows its whole name.
    root.build();
    let arguments: Vec<String> =
        env::args_os().skip(1).map(OsString::into_string).filter_map(Result::ok).collect();
    let is_command = error.kind() == ErrorKind::InvalidSubcommand;
    if !is_command && error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let (wrong, suggested) = if is_command {
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand)
    } else {
        (ContextKind::InvalidArg, ContextKind::SuggestedArg)
    };
    let Some(given) = text(error, wrong) else { return };
    let of = command_of(&root, &arguments, &given);
    let names: Vec<String> = if is_command {
        let shown = of.get_subcommands().filter(|command| !command.is_hide_set());
        shown.map(|command| command.get_name().to_owned()).collect()
    } else {
        flags(of).chain(flags(&root)).collect()
    };
    // The usage that the parser shows has the flag that it would suggest.
    error.insert(ContextKind::Usage, ContextValue::StyledStr(of.clone().render_usage()));
    let mut near = nearest(&given, &names);
    error.remove(suggested);
    if near.is_empty() {
        return;
    }
    let value = if is_command {
        ContextValue::Strings(near)
    } else {
        ContextValue::String(near.swap_remove(0))
    };
    error.insert(suggested, value);
    // The advice to pass it on to the code would compete.
    error.remove(ContextKind::Suggested);
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    if let ContextValue::String(text) = error.get(kind)? { Some(text.clone()) } else { None }
}

fn flags(command: &Command) -> impl Iterator<Item = String> + '_ {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    shown.filter_map(|argument| argument.get_long()).map(|long| format!("--{long}"))
}

/// The innermost command that is named before the wrong word.
fn command_of<'a>(root: &'a Command, arguments: &[String], wrong: &str) -> &'a Command {
    let before = arguments.iter().take_while(|argument| *argument != wrong);
    before.fold(root, |command, word| command.find_subcommand(word).unwrap_or(command))
}

/// The names at the smallest distance, if it is small for a name of this length.
fn nearest(given: &str, names: &[String]) -> Vec<String> {
    let letters = given.trim_start_matches('-').chars().count();
    let most = (letters / 3).clamp(1, 3);
    let all = names.iter().map(|name| (distance(given, name), name));
    let mut near: Vec<_> = all.filter(|(far, _)| *far <= most).collect();
    let rank = |name: &str| BY_USE.iter().position(|known| *known == name).unwrap_or(BY_USE.len());
    near.sort_by_key(|(far, name)| (*far, rank(name), (*name).clone()));
    let closest = near.first().map(|(far, _)| *far);
    near.into_iter()
        .filter(|(far, _)| Some(*far) == closest)
        .map(|(_, name)| name.clone())
        .take(2)
        .collect()
}

/// The number of letters to insert, remove, replace or swap with a neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let at =
                |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&last, column) + usize::from(a != b);
            let shifted = at(&last, column + 1).min(at(&next, column)) + 1;
            let is_swap = row > 0
                && column > 0
                && left.get(row - 1) == Some(b)
                && right.get(column - 1) == Some(a);
            let swapped = if is_swap { at(&before, column - 1) + 1 } else { usize::MAX / 2 };
            next.push(replaced.min(shifted).min(swapped));
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_common_names_come_first() {
        let commands = ["run", "runs", "serve", "session", "gc", "demo"].map(str::to_owned);
        assert_eq!(nearest("rnu", &commands), ["run"]);
        assert_eq!(nearest("rin", &commands), ["run"]);
        assert_eq!(nearest("serv", &commands), ["serve"]);
        assert_eq!(nearest("xyz", &commands), Vec::<String>::new());
        let flags = ["--tool", "--json", "--timeout"].map(str::to_owned);
        assert_eq!(nearest("--foo", &flags), Vec::<String>::new());
        assert_eq!(nearest("--jsn", &flags), ["--json"]);
        assert_eq!(nearest("--timout", &flags), ["--timeout"]);
    }
}
