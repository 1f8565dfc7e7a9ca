//! Whether a path that was asked for is one that the operator allows.

use std::path::{Component, Path, PathBuf};

/// The path, if it is one of the allowed ones or below one, and nothing in it leads upwards.
pub fn contained(asked: &str, allowed: &[PathBuf]) -> Option<PathBuf> {
    let path = Path::new(asked);
    let leads_up = path.components().any(|part| part == Component::ParentDir);
    let is_allowed = !leads_up && allowed.iter().any(|root| path.starts_with(root));
    is_allowed.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_a_path_is_contained_or_not() {
        let allowed = [PathBuf::from("/data"), PathBuf::from("/home/me/a.txt")];
        for (asked, is_contained) in [
            ("/data", true),
            ("/data/x/y", true),
            ("/home/me/a.txt", true),
            ("/database", false),
            ("/data/../etc", false),
            ("data", false),
            ("/", false),
            ("", false),
        ] {
            assert_eq!(contained(asked, &allowed).is_some(), is_contained, "{asked}");
        }
    }
}
