//! Translates the flags for files, variables and commands to grants.

use std::{
    borrow::Cow,
    env,
    ffi::OsStr,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use belljar_contract::{
    CommitExecutable, ErrorCode, GrantKind, GrantValue, Grants, RunError, Workspace, resolved_path,
};
use belljar_paths::names;
use belljar_project::Project;
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2},
    io::Errno,
};

use super::arguments::{GrantArguments, OfRun, WorkspaceArguments};

/// The workspace that the flags request. `executable` are listed names that a commit writes although the
/// host would execute them: from the flags ([`commit_names`]) and from the user's file.
pub(crate) fn requested_workspace(
    arguments: &WorkspaceArguments<OfRun>,
    executable: Vec<String>,
) -> anyhow::Result<Option<Workspace>> {
    let Some(path) = &arguments.workspace else { return Ok(None) };
    Ok(Some(Workspace {
        path: resolved_path(&here()?, path),
        commit: arguments.commit,
        executable: CommitExecutable::Names(executable),
    }))
}

/// The grants that the flags request. Paths become absolute, and variables without a value get their
/// current one.
pub(crate) fn requested_grants<C>(arguments: &GrantArguments<C>) -> anyhow::Result<Grants> {
    let here = here()?;
    let mut grants = Grants::default();
    for (grant, values) in arguments.given() {
        let texts = || values.iter().map(|value| value.to_string_lossy());
        let value = if grant.kind() == GrantKind::Paths {
            GrantValue::Paths(
                values.iter().map(|path| resolved_path(&here, Path::new(path))).collect(),
            )
        } else if grant.kind() == GrantKind::Variables {
            GrantValue::Variables(texts().map(|given| variable(&given)).collect::<Result<_, _>>()?)
        } else {
            grant.kind().value_of(texts().map(Cow::into_owned).collect())
        };
        grants.give(*grant, value);
    }
    Ok(grants)
}

fn here() -> anyhow::Result<PathBuf> {
    env::current_dir().context("cannot read the current directory")
}

fn variable(given: &str) -> anyhow::Result<(String, String)> {
    if let Some((name, value)) = given.split_once('=') {
        return Ok((name.to_owned(), value.to_owned()));
    }
    match env::var(given) {
        Ok(value) => Ok((given.to_owned(), value)),
        Err(env::VarError::NotPresent) => {
            bail!("--env {given}: the variable is not set; give it a value: {given}=VALUE")
        }
        Err(env::VarError::NotUnicode(_)) => bail!("--env {given}: its value is not UTF-8 text"),
    }
}

/// The names of `--commit-executable` in the spelling of the list, matched as a commit matches
/// them.
pub(crate) fn commit_names(given: &[String]) -> Result<Vec<String>, RunError> {
    given.iter().map(|name| commit_name(name).map(str::to_owned)).collect()
}

fn commit_name(given: &str) -> Result<&'static str, RunError> {
    let name = OsStr::new(given.trim_end_matches('/'));
    let refused = |why: &str, hint: &str| {
        Err(invalid(format!("--commit-executable {given}: {why}")).with_hint(hint))
    };
    if Project::RESERVED_NAMES.iter().any(|reserved| names::is_same(name, reserved)) {
        let why = "a commit never writes this file, because Belljar obeys it";
        return refused(why, "omit the name, and change the file yourself");
    }
    if let Some(listed) = names::listed(name) {
        return Ok(listed);
    }
    match names::executed_in(Path::new(name)) {
        Some(listed) => {
            let hint = format!("use --commit-executable {listed}, which includes it");
            refused(&format!("this is part of {listed}"), &hint)
        }
        None => refused(
            "a commit writes this name anyway",
            "omit it; docs/files.md lists the names that are withheld, such as .git and .envrc",
        ),
    }
}

/// An absolute path for `--read` or `--write` of `serve`, if a run could be granted it.
pub(crate) fn existing(here: &Path, flag: &str, path: &Path) -> Result<PathBuf, RunError> {
    let path = resolved_path(here, path);
    let refused =
        |why: &dyn std::fmt::Display| invalid(format!("{flag} {}: {why}", path.display()));
    let (flags, how) = (OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS);
    let opened = match openat2(CWD, &path, flags, Mode::empty(), how) {
        Err(Errno::NOSYS) => openat(CWD, &path, flags | OFlags::NOFOLLOW, Mode::empty()),
        other => other,
    };
    let found = match opened {
        Err(Errno::LOOP) => {
            return Err(refused(&"a symbolic link leads there")
                .with_hint("grant the path it leads to: links are not followed"));
        }
        Err(errno) => Err(io::Error::from(errno)),
        Ok(handle) => File::from(handle).metadata(),
    };
    let found = found.map_err(|error| refused(&error))?;
    match found.is_dir() || found.is_file() {
        true => Ok(path),
        false => Err(refused(&"neither a file nor a directory")),
    }
}

fn invalid(message: String) -> RunError {
    RunError::new(ErrorCode::RequestInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_names_are_matched_as_a_commit_matches_them() {
        for (given, expected) in [
            (".git", ".git"),
            (".git/", ".git"),
            (".Envrc", ".envrc"),
            ("a.code-workspace", "*.code-workspace"),
            ("*.code-workspace", "*.code-workspace"),
        ] {
            assert_eq!(commit_name(given).ok(), Some(expected), "{given}");
        }
        for (given, why) in [
            ("belljar.toml", "a commit never writes this file, because Belljar obeys it"),
            (".MCP.json", "a commit never writes this file, because Belljar obeys it"),
            (".belljar", "a commit never writes this file, because Belljar obeys it"),
            (".git/hooks", "this is part of .git"),
            ("commondir", "this is part of .git"),
            ("foo", "a commit writes this name anyway"),
            ("", "a commit writes this name anyway"),
        ] {
            let refused = commit_name(given).unwrap_err();
            assert_eq!(refused.message, format!("--commit-executable {given}: {why}"));
        }
    }

    #[test]
    fn paths_are_taken_from_here() {
        let resolved = |path: &str| resolved_path(Path::new("/home/me"), Path::new(path));
        for (given, expected) in [
            ("a", "/home/me/a"),
            ("./a/", "/home/me/a"),
            ("../you", "/home/you"),
            ("/etc/hosts", "/etc/hosts"),
            (".", "/home/me"),
            ("../../../x", "/x"),
        ] {
            assert_eq!(resolved(given), Path::new(expected), "{given}");
        }
    }

    #[test]
    fn variables_have_values() {
        assert_eq!(variable("A=b=c").unwrap(), ("A".to_owned(), "b=c".to_owned()));
        assert_eq!(variable("A=").unwrap(), ("A".to_owned(), String::new()));
        assert!(variable("BELLJAR_NO_SUCH_VARIABLE").is_err());
    }
}
