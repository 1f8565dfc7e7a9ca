//! The `belljar` program, where it is what is measured: its cold starts, its server, its resumption.

use std::{env, path::PathBuf};

use anyhow::{Context as _, bail};

/// The program that was built beside this one.
pub(crate) fn belljar() -> anyhow::Result<PathBuf> {
    let this = env::current_exe().context("could not find out where this program is")?;
    let path = this.with_file_name("belljar");
    if !path.is_file() {
        bail!(
            "there is no {}, which is to be measured too; build it first: \
             cargo build --release -p belljar",
            path.display()
        );
    }
    Ok(path)
}
