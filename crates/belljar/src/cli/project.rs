//! The project of the current directory. The library opens it; this module prints a warning if its
//! store was empty.

use std::io::{self, Write as _};

use belljar_contract::shell_word;
use belljar_project::{Executor, Project, Sandbox};
use belljar_store::{PriorFile, Store};

/// Opens the project's store, which is created if it is missing.
pub(crate) fn open_store(project: &Project) -> anyhow::Result<Store> {
    let store = project.open_store()?;
    warn_if_empty(&store)?;
    Ok(store)
}

/// Opens the project's store if there is one.
pub(crate) fn existing_store(project: &Project) -> anyhow::Result<Option<Store>> {
    let store = project.existing_store()?;
    store.as_ref().map_or(Ok(()), warn_if_empty)?;
    Ok(store)
}

/// An executor with everything the project has.
pub(crate) fn executor(project: &Project, sandbox: Sandbox) -> anyhow::Result<Executor> {
    let executor = project.executor(sandbox)?;
    executor.store().map_or(Ok(()), warn_if_empty)?;
    Ok(executor)
}

/// How another terminal calls this program for the same project: `cd DIR && belljar`.
pub(crate) fn command_in(project: &Project) -> String {
    let root = shell_word(&project.root().display().to_string());
    match project.chosen_state() {
        None => format!("cd {root} && belljar"),
        Some(state) => {
            let state = shell_word(&state.display().to_string());
            format!("cd {root} && belljar --state-dir {state}")
        }
    }
}

fn warn_if_empty(store: &Store) -> io::Result<()> {
    if store.prior_file() == PriorFile::EmptyFile {
        let path = store.path().display();
        writeln!(io::stderr(), "warning: {path} was empty; a new store was created there")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn words_are_quoted_if_needed() {
        for (word, quoted) in [
            ("/srv/a-b_c.d", "/srv/a-b_c.d"),
            ("/my files", "'/my files'"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
