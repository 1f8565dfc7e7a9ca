//! Names of files that the host, or a tool of its user, executes by itself.
//!
//! [`EXECUTED`] is the only list of such names. A name is on it if a tool executes the content of
//! such a file or directory, or obeys settings there that name programs, when its user only
//! *looks*: asks git for the status, enters the directory, opens it in an editor, starts an agent
//! in it, logs in. Files that are executed when a user builds, tests or runs the project
//! (`Makefile`, `package.json`, `.npmrc`, `.cargo`, `conftest.py`) are not on it: they are the code
//! itself. Nor are files that other machines execute (`.github`), or that only name or describe
//! (`.gitmodules`, whose commands git refuses to run; `.gitattributes`; `.env`; `AGENTS.md`).
//!
//! Some file systems see one name in several spellings. Here all of them are that name: upper and
//! lower case (APFS, NTFS, ext4 with case folding), code points HFS+ ignores, compatibility forms
//! (NFKC), letters that are two in the other case (`ß`), and of NTFS trailing dots and spaces,
//! streams and short names. A name that is wrongly taken for another costs its owner a flag; the
//! other way round it is an attack (CVE-2014-9390).

use std::{
    borrow::Cow,
    ffi::OsStr,
    iter,
    path::{Component, Path},
};

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::{CodePointSetData, props::DefaultIgnorableCodePoint};

/// Names that the host would execute, by the tool that executes them. Names in lower case, sorted
/// within a line; one that begins with `*` stands for all names that end so.
pub const EXECUTED: &[(&str, &[&str])] = &[
    ("version control", &[".bzr", ".git", ".hg", ".jj", ".sl", "_darcs"]),
    (
        "hooks of version control",
        &[
            ".githooks",
            ".husky",
            ".huskyrc",
            ".lefthook",
            ".lefthook-local.json",
            ".lefthook-local.toml",
            ".lefthook-local.yaml",
            ".lefthook-local.yml",
            ".lefthook.json",
            ".lefthook.toml",
            ".lefthook.yaml",
            ".lefthook.yml",
            ".overcommit.yml",
            ".pre-commit-config.yaml",
            "lefthook-local.json",
            "lefthook-local.toml",
            "lefthook-local.yaml",
            "lefthook-local.yml",
            "lefthook.json",
            "lefthook.toml",
            "lefthook.yaml",
            "lefthook.yml",
        ],
    ),
    (
        "shells that enter a directory",
        &[
            ".envrc",
            ".mise",
            ".mise.local.toml",
            ".mise.toml",
            "mise",
            "mise.local.toml",
            "mise.toml",
        ],
    ),
    (
        "editors",
        &[
            "*.code-workspace",
            ".devcontainer",
            ".devcontainer.json",
            ".dir-locals.el",
            ".emacs.d",
            ".exrc",
            ".fleet",
            ".helix",
            ".idea",
            ".lvimrc",
            ".nvim.lua",
            ".nvimrc",
            ".vim",
            ".vimrc",
            ".vs",
            ".vscode",
            ".zed",
        ],
    ),
    (
        "agents",
        &[
            ".agents",
            ".aider.conf.yml",
            ".amazonq",
            ".claude",
            ".cline",
            ".codex",
            ".continue",
            ".crush.json",
            ".cursor",
            ".gemini",
            ".goose",
            ".junie",
            ".kilocode",
            ".kiro",
            ".opencode",
            ".qwen",
            ".roo",
            ".trae",
            ".windsurf",
            "crush.json",
            "opencode.json",
            "opencode.jsonc",
        ],
    ),
    (
        "logins and shells",
        &[
            ".bash_aliases",
            ".bash_login",
            ".bash_logout",
            ".bash_profile",
            ".bashrc",
            ".cshrc",
            ".gitconfig",
            ".hgrc",
            ".kshrc",
            ".login",
            ".pam_environment",
            ".profile",
            ".ssh",
            ".tcshrc",
            ".tmux.conf",
            ".xinitrc",
            ".xprofile",
            ".xsession",
            ".xsessionrc",
            ".zlogin",
            ".zlogout",
            ".zprofile",
            ".zshenv",
            ".zshrc",
        ],
    ),
];

/// The name git gives a repository; a bare one, whatever its name, is released with it.
pub const GIT: &str = ".git";
/// The entries by which git recognizes a repository, if a directory has all of one line.
/// `commondir` names another directory, which then has the objects, the refs and the settings.
const REPOSITORY: [&[&str]; 2] = [&["HEAD", "commondir"], &["HEAD", "objects", "refs"]];
/// Files of a repository that count as [`GIT`] wherever they are: one makes a directory with a
/// `HEAD` a repository, the other has settings that name programs. In lower case.
const OF_REPOSITORY: [&str; 2] = ["commondir", "config.worktree"];

/// The first of these names that is not spelt as the list has it: its author meant another name.
pub fn first_unlisted(names: &[String]) -> Option<&str> {
    let is_listed = |name: &&String| all_executed().any(|listed| listed == name.as_str());
    names.iter().find(|name| !is_listed(name)).map(String::as_str)
}

/// All names of [`EXECUTED`].
pub fn all_executed() -> impl Iterator<Item = &'static str> {
    EXECUTED.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Which name of the list this one is to some file system.
pub fn executed(name: &OsStr) -> Option<&'static str> {
    let shape = FoldedName::of(name);
    let of_repository = || OF_REPOSITORY.iter().any(|listed| shape.is(listed)).then_some(GIT);
    shape.listed().or_else(of_repository)
}

/// The name of the list that this one is a spelling of. Unlike [`executed`] it does not take a file
/// of a repository for the whole of it.
pub fn listed(name: &OsStr) -> Option<&'static str> {
    FoldedName::of(name).listed()
}

/// Whether git takes a directory for a repository, whatever its name is. `has` tells whether there
/// is an entry of that name, in upper or lower case.
pub fn is_repository(has: &dyn Fn(&str) -> bool) -> bool {
    REPOSITORY.iter().any(|entries| entries.iter().all(|entry| has(entry)))
}

/// The first part of a path that is on the list, as the list has it.
pub fn executed_in(path: &Path) -> Option<&'static str> {
    path.components().find_map(|part| match part {
        Component::Normal(name) => executed(name),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    })
}

/// Whether two names are one to some file system. `listed` is in lower case.
pub fn is_same(name: &OsStr, listed: &str) -> bool {
    FoldedName::of(name).is(listed)
}

/// A name as the most permissive file system would compare it.
struct FoldedName<'a> {
    folded: Cow<'a, str>,
}

impl<'a> FoldedName<'a> {
    fn of(name: &'a OsStr) -> Self {
        let text = name.to_string_lossy();
        if !text.is_ascii() {
            return Self { folded: Cow::Owned(end_cut(&fold(&text)).to_owned()) };
        }
        // Nearly all names: nothing to do but to ignore case when comparing.
        let folded = match text {
            Cow::Borrowed(text) => Cow::Borrowed(end_cut(text)),
            Cow::Owned(text) => Cow::Owned(end_cut(&text).to_owned()),
        };
        Self { folded }
    }

    fn listed(&self) -> Option<&'static str> {
        all_executed().find(|listed| self.is(listed))
    }

    fn is(&self, listed: &str) -> bool {
        match listed.strip_prefix('*') {
            Some(end) => self.ends_with(end),
            None => self.folded.eq_ignore_ascii_case(listed) || self.is_short_name_of(listed),
        }
    }

    fn ends_with(&self, end: &str) -> bool {
        let start = self.folded.len().checked_sub(end.len());
        let found = start.and_then(|start| self.folded.get(start..));
        found.is_some_and(|found| found.eq_ignore_ascii_case(end))
    }

    /// `GIT~1` for `.git`: the first six characters that NTFS lets a short name have, and a number.
    fn is_short_name_of(&self, listed: &str) -> bool {
        let Some((stem, rest)) = self.folded.split_once('~') else { return false };
        let number = rest.split('.').next().unwrap_or_default();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let long = listed.trim_start_matches('.');
        let long = long.split('.').next().unwrap_or_default();
        let long = long.get(..long.len().min(6)).unwrap_or_default();
        is_number && stem.eq_ignore_ascii_case(long)
    }
}

/// A name without the end that NTFS ignores: dots, spaces, and the name of a stream.
fn end_cut(name: &str) -> &str {
    let name = name.split([':', '\\']).next().unwrap_or_default();
    name.trim_end_matches(['.', ' '])
}

/// Without code points that are ignored, in the compatibility form, in lower case, with the one
/// letter that is two plain ones in the other case (`ß`) spelt as those.
fn fold(name: &str) -> String {
    let ignored = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let is_seen = |character: &char| !ignored.contains(*character) && *character != '\u{fffd}';
    let normalizer = ComposingNormalizerBorrowed::new_nfkc();
    let lower = normalizer.normalize_iter(name.chars().filter(is_seen));
    let lower = lower.flat_map(char::to_lowercase).flat_map(|character| {
        let is_sharp = character == 'ß';
        let first = if is_sharp { 's' } else { character };
        iter::once(first).chain(is_sharp.then_some('s'))
    });
    normalizer.normalize_iter(lower).filter(is_seen).collect()
}

#[cfg(test)]
mod tests;
