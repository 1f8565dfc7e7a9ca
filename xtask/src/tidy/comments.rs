//! Comments that name the thing: "The hosts that a run may reach", and not "What a run may reach".
//!
//! Questions may begin with these words. Migrations of the store are never edited, so they are not read.

use std::{fs, path::Path};

use anyhow::Context as _;

/// Words with which no comment line begins: a reader has to guess the noun.
const PRONOUNS: [&str; 2] = ["What", "Who"];
/// Directories with source.
const TOPS: [&str; 5] = ["bench", "crates", "examples", "scripts", "xtask"];
/// Directories of generated files.
const SKIPPED: [&str; 2] = ["node_modules", "target"];

/// Checks the comments of all source below `root`.
pub(super) fn check(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    for top in TOPS.iter().map(|top| root.join(top)).filter(|top| top.is_dir()) {
        check_directory(root, &top, faults)?;
    }
    Ok(())
}

fn check_directory(root: &Path, directory: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !SKIPPED.contains(&&*name) {
                check_directory(root, &path, faults)?;
            }
        } else if let Some(markers) = markers_of(&name) {
            let place = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            // A picture or a damaged fixture has no comments.
            let Ok(text) = fs::read_to_string(&path) else { continue };
            check_text(&place, &text, markers, faults);
        }
    }
    Ok(())
}

/// The openings of comments in a file; `None` if it is no source. Scripts have no extension.
fn markers_of(name: &str) -> Option<&'static [&'static str]> {
    match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("rs" | "js" | "mjs" | "ts") => Some(&["///", "//!", "//", "/**", "/*", "*"]),
        Some("py" | "sh" | "toml") | None => Some(&["#"]),
        Some(_) => None,
    }
}

fn check_text(place: &str, text: &str, markers: &[&str], faults: &mut Vec<String>) {
    for (number, line) in text.lines().enumerate() {
        let comment = markers.iter().find_map(|marker| line.trim_start().strip_prefix(marker));
        let Some(comment) = comment.map(str::trim_start) else { continue };
        let word = comment.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if PRONOUNS.contains(&word) && !comment.contains('?') {
            let at = format!("{place}:{}", number + 1);
            faults.push(format!("{at}: a comment begins with `{word}`; name the thing"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{check_text, markers_of};

    #[test]
    fn comments_without_a_noun_are_found_in_each_language() {
        for (name, line, is_fault) in [
            ("a.rs", "/// What a run may reach.", true),
            ("a.rs", "    //! Who waits is told.", true),
            ("a.rs", "// What's left.", true),
            ("a.rs", "// What could go wrong?", false),
            ("a.rs", "/// Whatever it is.", false),
            ("a.rs", "let text = \"// What\";", false),
            ("a.js", "  /** What is at a path. */", true),
            ("a.py", "# What a shell says.", true),
            ("script", "# Who runs it.", true),
            ("a.md", "# What it is", false),
        ] {
            let mut faults = Vec::new();
            if let Some(markers) = markers_of(name) {
                check_text(name, line, markers, &mut faults);
            }
            assert_eq!(!faults.is_empty(), is_fault, "{name}: {line}");
        }
    }
}
