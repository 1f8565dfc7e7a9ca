//! Finds the `belljar` program for the benchmarks of cold starts, of the server and of resuming.

use std::{env, path::PathBuf};

use anyhow::{Context as _, bail};

/// The `belljar` executable in the directory of this one.
pub(crate) fn belljar() -> anyhow::Result<PathBuf> {
    let this = env::current_exe().context("cannot find the path of this program")?;
    let path = this.with_file_name("belljar");
    if !path.is_file() {
        bail!(
            "cannot find {}, which this benchmark measures; \
             build it first: cargo build --release -p belljar",
            path.display()
        );
    }
    Ok(path)
}
