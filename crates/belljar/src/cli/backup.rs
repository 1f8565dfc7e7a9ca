//! `belljar backup`: a consistent copy of the store.
//!
//! The copy is created beside its target and renamed when it is complete and on disk, so an
//! interrupted backup never looks like a complete one.

use std::{
    fs,
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use belljar_project::{Project, config::quantity::round_size};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{
    arguments::BackupArguments, project::existing_store, runtime, terminal::visible::visible,
};

/// Runs `belljar backup`: copies the store to one file, also while a host writes to it.
pub(crate) fn backup(arguments: &BackupArguments, project: &Project) -> anyhow::Result<ExitCode> {
    let Some(store) = existing_store(project)? else {
        bail!("this project has no store yet: there is nothing to back up");
    };
    let target = &arguments.file;
    if !arguments.force && fs::symlink_metadata(target).is_ok() {
        bail!(exists(target));
    }
    check_replaceable(target, store.path())?;
    let partial = PartialCopy::beside(target)?;
    runtime()?.block_on(store.copy_to(&partial.path))?;
    let bytes = partial.put_in_place(target, arguments.force)?;
    let shown = visible(&target.display().to_string()).into_owned();
    writeln!(io::stderr(), "wrote {shown}, {}", round_size(bytes))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a target among the store's own files, and an existing file that is not a backup.
fn check_replaceable(target: &Path, store: &Path) -> anyhow::Result<()> {
    let shown = visible(&target.display().to_string()).into_owned();
    let directory = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        fs::metadata(parent.unwrap_or(Path::new("."))).ok().map(|found| (found.dev(), found.ino()))
    };
    if directory(target).is_some_and(|found| directory(store) == Some(found)) {
        bail!("{shown} is in the directory of the store itself: choose another directory");
    }
    if fs::symlink_metadata(target).is_ok() && kind_of_file(target) != kind_of_file(store) {
        bail!("{shown} exists and is not a backup: choose another name");
    }
    Ok(())
}

/// The parts of SQLite's file header that identify the format and the program.
fn kind_of_file(path: &Path) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut header = [0; 72];
    fs::File::open(path).ok()?.read_exact(&mut header).ok()?;
    Some((header.get(..16)?.to_owned(), header.get(68..)?.to_owned()))
}

fn exists(target: &Path) -> String {
    format!("{} exists: choose another name, or use --force", target.display())
}

/// An incomplete copy; it is removed unless it is renamed.
struct PartialCopy {
    path: PathBuf,
}

impl PartialCopy {
    /// Creates an empty file that only its owner may read.
    fn beside(target: &Path) -> anyhow::Result<Self> {
        let mut name = target.file_name().context("the backup path has no file name")?.to_owned();
        name.push(format!(".partial-{}", std::process::id()));
        let path = target.with_file_name(name);
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path })
    }

    /// Renames the copy to its target; returns its size.
    fn put_in_place(self, target: &Path, force: bool) -> anyhow::Result<u64> {
        let failed = || format!("cannot write {}", target.display());
        let file = fs::File::open(&self.path).with_context(failed)?;
        file.sync_all().with_context(failed)?;
        let bytes = file.metadata().with_context(failed)?.len();
        let flags = if force { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, &self.path, CWD, target, flags).map_err(io::Error::from) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(exists(target)),
            renamed => renamed.with_context(failed)?,
        }
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        fs::File::open(parent.unwrap_or(Path::new(".")))
            .and_then(|directory| directory.sync_all())
            .with_context(failed)?;
        Ok(bytes)
    }
}

impl Drop for PartialCopy {
    fn drop(&mut self) {
        // Fails if it was renamed.
        let _ = fs::remove_file(&self.path);
    }
}
