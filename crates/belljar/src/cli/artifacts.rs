//! `--artifacts DIR`: writes the files that a run returned.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use belljar_contract::Artifact;

/// Leaves room for a number in front of the name.
const MAX_NAME_BYTES: usize = 200;

/// Checks that files can be written to the directory before anything runs, and leaves no trace: the
/// code may create a directory of the same path in its workspace.
pub(crate) fn check(directory: &Path) -> anyhow::Result<()> {
    let missing: Vec<&Path> = directory
        .ancestors()
        .filter(|path| !path.as_os_str().is_empty())
        .take_while(|path| matches!(path.try_exists(), Ok(false)))
        .collect();
    let made = fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()));
    let written = made.and_then(|()| {
        tempfile::Builder::new()
            .prefix(".belljar-")
            .tempfile_in(directory)
            .with_context(|| format!("cannot write to {}", directory.display()))
            .map(drop)
    });
    for path in missing {
        // A directory that could not be created, or that another process uses already.
        let _ = fs::remove_dir(path);
    }
    written
}

/// Writes artifacts into the directory. Their names come from guest code: paths are flattened so
/// that none leads elsewhere, and existing files are never replaced.
pub(crate) fn save(artifacts: &[Artifact], directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    for artifact in artifacts {
        let data = BASE64.decode(&artifact.data).context("an artifact is not base64")?;
        let (mut file, path) = create(directory, &file_name(&artifact.path))?;
        file.write_all(&data).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Creates a new file; if the name is taken, a number is put in front.
fn create(directory: &Path, name: &str) -> anyhow::Result<(File, PathBuf)> {
    for number in 1..1000 {
        let path = match number {
            1 => directory.join(name),
            _ => directory.join(format!("{number}-{name}")),
        };
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                let made = made.with_context(|| format!("cannot create {}", path.display()))?;
                return Ok((made, path));
            }
        }
    }
    bail!("{}: too many files with this name", directory.join(name).display())
}

/// A plain file name for a path of the workspace: `out/plots/a.png` becomes `plots-a.png`.
fn file_name(path: &str) -> String {
    let inner = path.strip_prefix("out/").unwrap_or(path);
    let plain = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = inner.chars().map(plain).collect();
    let name = name.trim_start_matches(['.', '-']);
    let (name, _) = name.split_at(name.floor_char_boundary(MAX_NAME_BYTES));
    if name.is_empty() { "artifact".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere() {
        for (path, expected) in [
            ("out/plot.png", "plot.png"),
            ("out/a/b.csv", "a-b.csv"),
            ("data.json", "data.json"),
            ("../../etc/passwd", "etc-passwd"),
            ("out/../x", "x"),
            ("/", "artifact"),
            ("out/.bashrc", "bashrc"),
            ("a\nb\u{1b}[0m", "a-b--0m"),
        ] {
            assert_eq!(file_name(path), expected, "{path:?}");
        }
        assert_eq!(file_name(&"ä".repeat(300)).len(), MAX_NAME_BYTES);
    }

    #[test]
    fn a_check_leaves_no_trace() {
        let place = tempfile::tempdir().unwrap();
        check(&place.path().join("a/b")).unwrap();
        check(place.path()).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        fs::write(place.path().join("file"), "").unwrap();
        assert!(check(&place.path().join("file")).is_err());
        assert!(check(&place.path().join("file/below")).is_err());
        assert!(check(Path::new("/proc")).is_err());
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let directory = tempfile::tempdir().unwrap();
        let artifact = |path: &str, data: &str| Artifact {
            path: path.to_owned(),
            media_type: "text/plain".into(),
            bytes: 1,
            data: BASE64.encode(data),
            handle: None,
        };
        let artifacts =
            [artifact("out/a-b", "1"), artifact("out/a/b", "2"), artifact("out/z", "3")];
        save(&artifacts, directory.path()).unwrap();
        save(&artifacts[2..], directory.path()).unwrap();
        for (name, content) in [("a-b", "1"), ("2-a-b", "2"), ("z", "3"), ("2-z", "3")] {
            assert_eq!(fs::read_to_string(directory.path().join(name)).unwrap(), content, "{name}");
        }
    }
}
