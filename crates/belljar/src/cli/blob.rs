//! `belljar blob`: prints a value that was too large for a result.

use std::{
    fs,
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, bail};

use belljar_project::Project;

use super::{
    arguments::BlobArguments,
    project::existing_store,
    runtime,
    terminal::{style::TextStyle, visible::visible},
};

/// Runs `belljar blob`: prints a stored value byte for byte.
pub(crate) fn blob(arguments: &BlobArguments, project: &Project) -> anyhow::Result<ExitCode> {
    let id = &arguments.id;
    let store = existing_store(project)?;
    let bytes = match &store {
        Some(store) => runtime()?.block_on(store.blob(id))?,
        None => None,
    };
    let Some(bytes) = bytes else {
        writeln!(io::stderr(), "there is no value {id} in this project")?;
        return Ok(ExitCode::FAILURE);
    };
    if let Some(path) = &arguments.output {
        fs::write(path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut stdout = io::stdout().lock();
    if TextStyle::of_stdout().is_terminal() {
        let Ok(text) = std::str::from_utf8(&bytes) else {
            bail!("{id} is not text: use --output FILE or a pipe");
        };
        writeln!(stdout, "{}", visible(text))?;
    } else {
        stdout.write_all(&bytes)?;
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
