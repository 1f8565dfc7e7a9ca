//! `--artifacts DIR`: the files a run gave back, on disk.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use belljar::Artifact;

/// Writes them beneath the directory. Their names come from guest code: they are flattened, so that
/// none leads anywhere else, and a file that is there already is never replaced.
pub(crate) fn save(artifacts: &[Artifact], directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("could not make {}", directory.display()))?;
    for artifact in artifacts {
        let path = directory.join(file_name(&artifact.path));
        let data = BASE64.decode(&artifact.data).context("an artifact is not base64")?;
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = file.with_context(|| format!("could not make {}", path.display()))?;
        file.write_all(&data).with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}

/// One plain name for a path of the workspace: `out/plots/a.png` is `plots-a.png`.
fn file_name(path: &str) -> String {
    let inner = path.strip_prefix("out/").unwrap_or(path);
    let plain = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = inner.chars().map(plain).take(100).collect();
    let name = name.trim_start_matches(['.', '-']);
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
    }
}
