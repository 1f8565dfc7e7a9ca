//! From the flags of `belljar run` to what a run is granted.

use std::{
    env,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context as _, bail};
use belljar::{CommitExecutable, Grants, Workspace};

use super::arguments::GrantArguments;

/// What the flags grant.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) grants: Grants,
    pub(crate) workspace: Option<Workspace>,
}

/// Reads the flags; paths become absolute, and variables without a value get the one they have here.
///
/// `executable` is what a file names beside the flags that a commit brings although the host would
/// execute it.
pub(crate) fn granted(
    arguments: &GrantArguments,
    executable: &[String],
) -> anyhow::Result<Granted> {
    let here = env::current_dir().context("where is this?")?;
    let absolute = |paths: &[PathBuf]| paths.iter().map(|path| resolve(&here, path)).collect();
    let names = arguments.commit_executable.iter().chain(executable).cloned().collect();
    let workspace = arguments.workspace.as_ref().map(|path| Workspace {
        path: resolve(&here, path),
        commit: arguments.commit,
        executable: CommitExecutable::Names(names),
    });
    let grants = Grants {
        read: absolute(&arguments.read),
        write: absolute(&arguments.write),
        env: arguments.env.iter().map(|given| variable(given)).collect::<anyhow::Result<_>>()?,
        modules: arguments.module.clone(),
        commands: arguments.command.clone(),
        permissive: arguments.permissive,
    };
    Ok(Granted { grants, workspace })
}

pub(crate) fn variable(given: &str) -> anyhow::Result<(String, String)> {
    if let Some((name, value)) = given.split_once('=') {
        return Ok((name.to_owned(), value.to_owned()));
    }
    match env::var(given) {
        Ok(value) => Ok((given.to_owned(), value)),
        Err(env::VarError::NotPresent) => {
            bail!("--env {given}: there is no such variable here; give it a value: {given}=VALUE")
        }
        Err(env::VarError::NotUnicode(_)) => bail!("--env {given}: its value is not UTF-8 text"),
    }
}

/// The path from the root, `..` taken out as one types it.
pub(crate) fn resolve(here: &Path, path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in here.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => resolved.push(part),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_from_here() {
        let resolved = |path: &str| resolve(Path::new("/home/me"), Path::new(path));
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
