//! Artifacts: the files a run hands back beside its value.
//!
//! They are the files it named, and all regular files beneath `out/`. Files that cannot be handed
//! back are reported with the reason.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{fs::fstat, io::Errno, process::geteuid};

use super::{
    attributes::{Mark, mark},
    beneath::{RootedTree, look, names},
    change::{EntryKind, size_of},
    media::media_type,
    protected::ProtectedPaths,
    upper::Upper,
};

/// Where guest code sees its workspace.
const WORKSPACE: &str = "/work";
/// The directory whose files are all artifacts.
pub(super) const OUTPUT: &str = "out";
/// The most entries beneath it that are read.
const MAX_ENTRIES: usize = 10_000;
/// The most skipped artifacts that are reported.
const MAX_REASONS: usize = 100;

/// How much a run may hand back.
#[derive(Debug, Clone)]
pub struct ArtifactCaps {
    /// The most files in all.
    pub count: usize,
    /// The most bytes of one file.
    pub bytes_each: u64,
    /// The most bytes of all files together.
    pub bytes_total: u64,
    /// Paths that are never handed back.
    pub protected: ProtectedPaths,
}

impl Default for ArtifactCaps {
    fn default() -> Self {
        let protected = ProtectedPaths::default();
        Self { count: 100, bytes_each: 16 << 20, bytes_total: 64 << 20, protected }
    }
}

/// The files that a run returned.
#[derive(Debug, Default)]
pub struct Artifacts {
    /// The named ones in the order they were named, then those of `out/` by path.
    pub list: Vec<ArtifactFile>,
    /// The files that were left out, up to a hundred.
    pub skipped: Vec<SkippedArtifact>,
}

/// One artifact, with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactFile {
    /// Relative to the workspace; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The length of `data`.
    pub bytes: u64,
    /// The type of its content, guessed from the first bytes and the name.
    pub media_type: &'static str,
    /// The whole content, as bytes.
    pub data: Vec<u8>,
}

/// An artifact that is not handed back.
#[derive(Debug)]
pub struct SkippedArtifact {
    /// The path as the code named it, or where the file is.
    pub path: String,
    /// For the log of the run.
    pub reason: LeftOut,
}

/// Why a file is not handed back.
#[derive(Debug, thiserror::Error)]
pub enum LeftOut {
    /// An absolute path outside of the workspace, or one with `..`.
    #[error("not a path in the workspace")]
    OutsideWorkspace,
    /// One of [`ArtifactCaps::protected`], or beneath one.
    #[error("protected: guest code may not read it")]
    Protected,
    /// There is no file at this path.
    #[error("no such file")]
    Missing,
    /// A directory, link, device, fifo or socket, or a path through a link.
    #[error("not a regular file, or reached through a link")]
    NotAFile,
    /// Over [`ArtifactCaps::bytes_each`], or past what is left of [`ArtifactCaps::bytes_total`].
    #[error("too large: {bytes} bytes, {allowed} allowed")]
    TooLarge {
        /// The size of the file.
        bytes: u64,
        /// The largest size that would have been accepted.
        allowed: u64,
    },
    /// Past [`ArtifactCaps::count`], or too many entries beneath `out/`.
    #[error("too many files")]
    TooMany,
    /// The operating system refused to open or read it.
    #[error("{0}")]
    Refused(io::Error),
}

impl From<io::Error> for LeftOut {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT) => Self::Missing,
            // The errors for a link, a socket, a device, or a path beneath a file.
            Some(Errno::LOOP | Errno::NXIO | Errno::NODEV | Errno::NOTDIR | Errno::XDEV) => {
                Self::NotAFile
            }
            Some(Errno::INVAL | Errno::NAMETOOLONG) => Self::OutsideWorkspace,
            _ => Self::Refused(error),
        }
    }
}

/// Reads the named files and all those beneath `out/`.
///
/// `work` is the upper directory of an overlay or a whole workspace. `lower` is the original, for
/// named files that the run did not touch. The cell must be dead.
pub fn collect(
    work: BorrowedFd<'_>,
    lower: Option<BorrowedFd<'_>>,
    named: &[String],
    caps: &ArtifactCaps,
) -> Artifacts {
    let work = Upper::new(work);
    let lower = lower.map(RootedTree::new);
    let mut collection = Collection {
        work: &work,
        lower: lower.as_ref(),
        caps,
        bytes_left: caps.bytes_total,
        seen: BTreeSet::new(),
        artifacts: Artifacts::default(),
    };
    for name in named {
        collection.add_named(name);
    }
    collection.add_output();
    collection.artifacts
}

struct Collection<'a> {
    work: &'a Upper<'a>,
    lower: Option<&'a RootedTree<'a>>,
    caps: &'a ArtifactCaps,
    bytes_left: u64,
    seen: BTreeSet<PathBuf>,
    artifacts: Artifacts,
}

impl Collection<'_> {
    fn add_named(&mut self, name: &str) {
        let Some(path) = in_workspace(name) else {
            return self.skip(name.to_owned(), LeftOut::OutsideWorkspace);
        };
        if self.caps.protected.holds(&path) {
            return self.skip(name.to_owned(), LeftOut::Protected);
        }
        let opened = match self.work.file(&path) {
            Err(error) if is_missing(&error) => self.open_original(&path),
            other => other.map_err(LeftOut::from),
        };
        self.add(path, opened);
    }

    /// A file that the run did not touch, unless it has hidden it.
    fn open_original(&self, path: &Path) -> Result<OwnedFd, LeftOut> {
        let lower = self.lower.ok_or(LeftOut::Missing)?;
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            match self.work.listing(above) {
                Ok(directory) if mark(&directory) == Ok(Mark::None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(_) | Err(_) => return Err(LeftOut::Missing),
            }
        }
        let file = lower.file(path)?;
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        let mut closed = Self::is_roots_alone(lower, &file, 0o004)?;
        for directory in above {
            closed |= Self::is_roots_alone(lower, lower.directory(directory)?, 0o001)?;
        }
        if closed {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied).into());
        }
        Ok(file)
    }

    /// Whether root could pass where the workspace's owner cannot. The guest named the file and may
    /// not have had a way to read it itself.
    fn is_roots_alone(lower: &RootedTree<'_>, entry: impl AsFd, needed: u32) -> io::Result<bool> {
        let (entry, root) = (fstat(entry)?, fstat(lower.directory(Path::new(""))?)?);
        Ok(geteuid().is_root() && entry.st_uid != root.st_uid && entry.st_mode & needed == 0)
    }

    /// All regular files beneath `out/`, one directory at a time.
    fn add_output(&mut self) {
        let mut left = MAX_ENTRIES;
        let (mut files, mut pending) = (Vec::new(), vec![PathBuf::from(OUTPUT)]);
        while let Some(directory) = pending.pop() {
            match self.list(&directory, left) {
                Ok(Some(entries)) => {
                    left -= entries.len();
                    for (path, kind) in entries {
                        match kind {
                            EntryKind::Directory => pending.push(path),
                            EntryKind::File => files.push(path),
                            EntryKind::Link | EntryKind::Other => self.skip_file(&path),
                        }
                    }
                }
                Ok(None) => self.skip(shown(&directory), LeftOut::TooMany),
                Err(error) if is_missing(&error) && directory == Path::new(OUTPUT) => {}
                Err(error) => self.skip(shown(&directory), error.into()),
            }
        }
        files.sort_unstable();
        for path in files {
            if self.caps.protected.holds(&path) {
                self.skip(shown(&path), LeftOut::Protected);
                continue;
            }
            let opened = self.work.file(&path).map_err(LeftOut::from);
            self.add(path, opened);
        }
    }

    fn list(&self, path: &Path, most: usize) -> io::Result<Option<Vec<(PathBuf, EntryKind)>>> {
        let directory = self.work.listing(path)?;
        let Some(names) = names(&directory, most)? else { return Ok(None) };
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            if let Some(stat) = look(&directory, &name)? {
                entries.push((path.join(name), EntryKind::of(&stat)));
            }
        }
        Ok(Some(entries))
    }

    fn add(&mut self, path: PathBuf, opened: Result<OwnedFd, LeftOut>) {
        let name = shown(&path);
        if !self.seen.insert(path) {
            return;
        }
        match opened.and_then(|file| self.read(file)) {
            Ok(data) => {
                let bytes = data.len() as u64;
                self.bytes_left -= bytes;
                let media_type = media_type(&name, &data);
                self.artifacts.list.push(ArtifactFile { path: name, bytes, media_type, data });
            }
            Err(reason) => self.skip(name, reason),
        }
    }

    fn read(&self, file: OwnedFd) -> Result<Vec<u8>, LeftOut> {
        let stat = fstat(&file).map_err(io::Error::from)?;
        // A file that the overlay marked has its content elsewhere.
        let marked = self.lower.is_some() && mark(&file) != Ok(Mark::None);
        if EntryKind::of(&stat) != EntryKind::File || marked {
            return Err(LeftOut::NotAFile);
        }
        if self.artifacts.list.len() >= self.caps.count {
            return Err(LeftOut::TooMany);
        }
        let (bytes, allowed) = (size_of(&stat), self.caps.bytes_each.min(self.bytes_left));
        if bytes > allowed {
            return Err(LeftOut::TooLarge { bytes, allowed });
        }
        let mut data = Vec::new();
        File::from(file).take(bytes).read_to_end(&mut data)?;
        Ok(data)
    }

    fn skip_file(&mut self, path: &Path) {
        if !self.seen.contains(path) {
            self.skip(shown(path), LeftOut::NotAFile);
        }
    }

    fn skip(&mut self, path: String, reason: LeftOut) {
        if self.artifacts.skipped.len() < MAX_REASONS {
            self.artifacts.skipped.push(SkippedArtifact { path, reason });
        }
    }
}

/// A path the guest named, relative to its workspace and of plain names only.
fn in_workspace(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    let path = if path.is_absolute() { path.strip_prefix(WORKSPACE).ok()? } else { path };
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
