//! The project of the current directory. The library opens it; this module prints a warning if its
//! store was empty.

use std::io::{self, Write as _};

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

fn warn_if_empty(store: &Store) -> io::Result<()> {
    if store.prior_file() == PriorFile::EmptyFile {
        let path = store.path().display();
        writeln!(io::stderr(), "warning: {path} was empty; a new store was created there")?;
    }
    Ok(())
}
