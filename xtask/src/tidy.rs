//! Sizes, headers, names, crate arrows, `unsafe`, unfinished work: checked, not remembered.
//!
//! Each rule has a list of excused cases that only shrinks.

mod comments;
mod names;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

use names::DeclaredTypes;

/// No production file is longer.
const MAX_FILE_LINES: usize = 500;
/// Files over the limit that are excused, with the reason.
const EXCUSED_SIZES: &[(&str, &str)] = &[];
/// No crate has more lines of Rust in `src`, tests apart.
const MAX_CRATE_LINES: usize = 12_000;
/// Crates over the limit that are excused, with the reason.
const EXCUSED_CRATES: &[(&str, &str)] = &[];
/// A page that is to be read in one go has no more lines.
const MAX_PAGE_LINES: &[(&str, usize)] = &[("ARCHITECTURE.md", 200)];
/// The one crate that may hold `unsafe`.
const UNSAFE_CRATE: &str = "crates/belljar-jail/";

/// Which crates a crate may depend on: arrows never point up.
const ARROWS: &[(&str, &[&str])] = &[
    ("belljar-contract", &[]),
    ("belljar-net", &[]),
    ("belljar-paths", &[]),
    ("belljar-jail", &[]),
    ("belljar-wire", &["belljar-contract"]),
    ("belljar-worker", &["belljar-contract", "belljar-jail", "belljar-wire"]),
    (
        "belljar-runtime",
        &["belljar-contract", "belljar-jail", "belljar-net", "belljar-paths", "belljar-wire"],
    ),
    ("belljar-testing", &[]),
    ("belljar-policy", &["belljar-contract", "belljar-paths", "belljar-wire"]),
    ("belljar-catalogue", &["belljar-contract", "belljar-policy", "belljar-wire"]),
    ("belljar-search", &[]),
    ("belljar-store", &["belljar-contract"]),
    (
        "belljar-tools",
        &[
            "belljar-catalogue",
            "belljar-contract",
            "belljar-jail",
            "belljar-policy",
            "belljar-search",
            "belljar-store",
            "belljar-wire",
        ],
    ),
    (
        "belljar-config",
        &[
            "belljar-contract",
            "belljar-net",
            "belljar-paths",
            "belljar-runtime",
            "belljar-store",
            "belljar-tools",
            "belljar-workflow-formats",
        ],
    ),
    ("belljar-workflow", &["belljar-contract", "belljar-store"]),
    ("belljar-workflow-formats", &["belljar-contract", "belljar-workflow"]),
    ("belljar-server", &["belljar-contract", "belljar-paths", "belljar-wire"]),
    (
        "belljar-project",
        &[
            "belljar-config",
            "belljar-contract",
            "belljar-jail",
            "belljar-net",
            "belljar-paths",
            "belljar-runtime",
            "belljar-server",
            "belljar-store",
            "belljar-tools",
            "belljar-wire",
            "belljar-worker",
            "belljar-workflow",
            "belljar-workflow-formats",
        ],
    ),
    (
        "belljar",
        &[
            "belljar-contract",
            "belljar-paths",
            "belljar-project",
            "belljar-runtime",
            "belljar-server",
            "belljar-store",
            "belljar-tools",
            "belljar-wire",
            "belljar-workflow",
            "belljar-workflow-formats",
        ],
    ),
    (
        "belljar-bench",
        &[
            "belljar-contract",
            "belljar-project",
            "belljar-search",
            "belljar-store",
            "belljar-tools",
            "belljar-workflow",
            "belljar-workflow-formats",
        ],
    ),
];

/// Checks the tree below `root` and lists every fault.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let mut faults = Vec::new();
    let mut files = Vec::new();
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    let mut declared = DeclaredTypes::default();
    for top in ["bench", "crates", "xtask"] {
        collect(&root.join(top), &mut files)?;
    }
    for file in &files {
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
        let text = fs::read_to_string(file).with_context(|| name.clone())?;
        if is_test(&name) {
            DeclaredTypes::check_test(&name, &text, &mut faults);
        }
        check_file(&name, &text, &mut faults);
        if let Some(owner) = owner_of(&name) {
            *sizes.entry(owner.to_owned()).or_default() += text.lines().count();
            declared.check_file(owner, &name, &text, &mut faults);
        }
    }
    declared.check_shared(&mut faults);
    check_crate_sizes(&sizes, &mut faults);
    check_arrows(root, &mut faults)?;
    check_pages(root, &mut faults)?;
    comments::check(root, &mut faults)?;
    if !faults.is_empty() {
        bail!("{} faults:\n{}", faults.len(), faults.join("\n"));
    }
    #[expect(clippy::print_stdout, reason = "a chore says what it did")]
    {
        println!("tidy: {} files, no faults", files.len());
    }
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "js" || kind == "py")
        {
            files.push(path);
        }
    }
    Ok(())
}

fn check_file(name: &str, text: &str, faults: &mut Vec<String>) {
    let lines = text.lines().count();
    let excused = EXCUSED_SIZES.iter().any(|(file, _)| *file == name);
    if lines > MAX_FILE_LINES && !excused && !is_test(name) {
        faults.push(format!("{name}: {lines} lines, at most {MAX_FILE_LINES}"));
    }
    if name.ends_with(".py") {
        return;
    }
    let header = if name.ends_with(".rs") { "//!" } else { "//" };
    if !text.starts_with(header) {
        faults.push(format!("{name}: does not open with a `{header}` comment saying what it owns"));
    }
    if name.ends_with("/mod.rs") {
        faults.push(format!("{name}: `foo.rs` beside `foo/`, never `mod.rs`"));
    }
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let at = format!("{name}:{}", number + 1);
        if code.starts_with("//") || name == "xtask/src/tidy.rs" {
            continue;
        }
        let opens_unsafe =
            ["unsafe {", "unsafe fn", "unsafe impl"].iter().any(|word| code.contains(word));
        if opens_unsafe && !name.starts_with(UNSAFE_CRATE) {
            faults.push(format!("{at}: unsafe outside {UNSAFE_CRATE}"));
        }
        if code.contains("todo!(") || code.contains("unimplemented!(") {
            faults.push(format!("{at}: unfinished"));
        }
        if code.starts_with("#[ignore") {
            faults.push(format!("{at}: an ignored test proves nothing"));
        }
    }
}

/// The directory of the crate whose production code a file is. What guests are given in their own
/// language does not count.
fn owner_of(name: &str) -> Option<&str> {
    let (owner, _) = name.split_once("/src/")?;
    let is_production = name.ends_with(".rs") && !is_test(name);
    is_production.then(|| owner.rsplit('/').next().unwrap_or(owner))
}

fn check_crate_sizes(sizes: &BTreeMap<String, usize>, faults: &mut Vec<String>) {
    for (name, lines) in sizes {
        let excused = EXCUSED_CRATES.iter().any(|(known, _)| known == name);
        match *lines > MAX_CRATE_LINES {
            true if !excused => {
                faults.push(format!("{name}: {lines} lines in src, at most {MAX_CRATE_LINES}"));
            }
            false if excused => {
                faults
                    .push(format!("{name}: {lines} lines in src, so it needs no excuse any more"));
            }
            true | false => {}
        }
    }
}

fn check_pages(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    for (name, most) in MAX_PAGE_LINES {
        let lines = fs::read_to_string(root.join(name)).context(*name)?.lines().count();
        if lines > *most {
            faults.push(format!("{name}: {lines} lines, at most {most}"));
        }
    }
    Ok(())
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs")
}

fn check_arrows(root: &Path, faults: &mut Vec<String>) -> anyhow::Result<()> {
    let mut directories = vec![root.join("bench")];
    for entry in fs::read_dir(root.join("crates"))? {
        directories.push(entry?.path());
    }
    for path in directories {
        let manifest = fs::read_to_string(path.join("Cargo.toml"))?;
        let name = section(&manifest, "[package]")
            .find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
            .unwrap_or_default();
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            faults.push(format!("crates/{name}: say in xtask/src/tidy.rs what it may depend on"));
            continue;
        };
        for line in section(&manifest, "[dependencies]") {
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if dependency.starts_with("belljar") && !allowed.contains(&dependency) {
                faults.push(format!("crates/{name}: must not depend on {dependency}"));
            }
        }
    }
    Ok(())
}

fn section<'a>(manifest: &'a str, title: &str) -> impl Iterator<Item = &'a str> {
    let after = manifest.lines().skip_while(move |line| *line != title).skip(1);
    after.take_while(|line| !line.starts_with('['))
}

#[cfg(test)]
mod tests;
