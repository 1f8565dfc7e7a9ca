//! The change list as a value: the paths that differ, how, and which of them a commit would leave
//! alone.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rustix::fs::{FileType, Stat};

use super::protected::ProtectedPaths;

/// The bounds of a change list. The default suits a cell with 50,000 inodes.
#[derive(Debug, Clone)]
pub struct ChangeCaps {
    /// The most entries of the upper directory that are compared; past it the list is cut.
    pub entries: usize,
    /// Entries beneath removed directories that are remembered, so that a commit removes these
    /// and no others. A directory past it is listed and withheld.
    pub removed: usize,
    /// Bytes read to tell whether copied-up files differ at all. Past it, a file that was copied up
    /// counts as modified.
    pub compared_bytes: u64,
    /// When the run was admitted. Originals whose inode changed later are withheld as
    /// [`WithheldReason::ChangedMeanwhile`]: the cell may not have seen what is there now.
    pub began: Option<SystemTime>,
    /// Paths and names whose changes are withheld as [`WithheldReason::Protected`] or
    /// [`WithheldReason::Executed`].
    pub protected: ProtectedPaths,
}

impl Default for ChangeCaps {
    fn default() -> Self {
        let protected = ProtectedPaths::default();
        Self { entries: 50_000, removed: 200_000, compared_bytes: 1 << 30, began: None, protected }
    }
}

/// The changes of a run to its workspace, sorted by path, parents before their content.
#[derive(Debug, Clone, Default)]
pub struct ChangeList {
    /// One for each path that differs.
    pub list: Vec<PathChange>,
    /// Whether a cap cut the list short. A cut list cannot be committed.
    pub cut: bool,
}

/// One path that differs between the original directory and the run's view of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// Relative to the workspace. May be any bytes; see [`shown_path`](Self::shown_path).
    pub path: PathBuf,
    /// How it changed.
    pub kind: ChangeKind,
    /// The kind of entry now; for a deletion, the kind before.
    pub entry: EntryKind,
    /// Size of the new content (for a link, of its target); zero for directories and deletions.
    pub bytes: u64,
    /// Why a commit will leave it alone; `None` if it will be committed.
    pub withheld: Option<WithheldReason>,
    /// Permissions of the new entry, of which only `rwx` are ever committed.
    pub(super) mode: u32,
    /// The entry of the original directory when the list was made.
    pub(super) before: Option<OriginalEntry>,
}

/// How a path changed. The contract has a type of the same name for results; this crate is confined code
/// that is audited alone, so it depends on no other crate of Belljar, and `belljar-runtime` converts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// There was nothing before.
    Added,
    /// Content, permissions, target or kind of entry differ.
    Modified,
    /// The path was deleted. A directory is listed once, without its content.
    Deleted,
}

/// Kinds of entries, as far as a commit distinguishes them. Apart from the contract's for the reason that
/// [`ChangeKind`] gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A regular file, with or without content.
    File,
    /// A directory, with or without content.
    Directory,
    /// A symbolic link; its target is its content.
    Link,
    /// A device, fifo or socket.
    Other,
}

/// Why a change is listed but not committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WithheldReason {
    /// A device, fifo or socket.
    #[error("devices, fifos and sockets are not committed")]
    Special,
    /// A link to an absolute path, or one that leaves the workspace through `..` or another link.
    #[error("the link leads out of the workspace")]
    LinkLeadsOutside,
    /// Resolving the link takes more steps than are allowed.
    #[error("the link passes through too many others to check where it leads")]
    LinkTooTangled,
    /// An overlay attribute that a cell's overlay never sets.
    #[error("unexpected overlay attribute {0}")]
    OverlayAttribute(String),
    /// Too many levels down, or too long a path. What lies beneath is not listed.
    #[error("nested too deeply")]
    TooDeep,
    /// A removed directory holds more than is remembered.
    #[error("the removed directory holds too many entries")]
    TooManyRemoved,
    /// The original was changed by someone else during the run.
    #[error("the original changed during the run")]
    ChangedMeanwhile,
    /// A [protected](ChangeCaps::protected) path, or an entry beneath it, or a directory above it
    /// that would no longer be one. What lies beneath is not listed.
    #[error("protected: guest code may not change it")]
    Protected,
    /// A tool of the host would execute it, or what is beneath it: see
    /// [`NameUse::Executed`](super::NameUse). Holds the name as it is listed.
    #[error(
        "the host would execute this; --commit-executable {0} commits it, or `commit_executable` of a request"
    )]
    Executed(&'static str),
    /// The entry or its original could not be examined.
    #[error("{0}")]
    Unreadable(String),
    /// The only difference are set-user-ID, set-group-ID or sticky bits.
    #[error("set-ID and sticky bits are not committed")]
    SpecialBits,
}

impl PathChange {
    /// The path as text, with replacement characters for bytes that are not UTF-8.
    pub fn shown_path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// A remark about this entry for readers of the list.
    pub fn note(&self) -> Option<String> {
        if let Some(withheld) = &self.withheld {
            return Some(format!("will not be committed: {withheld}"));
        }
        if self.mode & 0o7000 != 0 && self.entry == EntryKind::File {
            return Some("set-ID and sticky bits will be dropped".to_owned());
        }
        self.path.to_str().is_none().then(|| "the name is not UTF-8 and shown inexactly".to_owned())
    }
}

impl EntryKind {
    pub(super) fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Other,
        }
    }
}

/// An entry of the original directory, and, if it is a directory that is to be removed, all it
/// holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OriginalEntry {
    pub(super) seen: InodeSnapshot,
    /// Paths relative to the workspace, parents first.
    pub(super) contents: Vec<(PathBuf, InodeSnapshot)>,
}

/// The fields of an inode that show later whether it is the same and unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InodeSnapshot {
    device: u64,
    inode: u64,
    size: u64,
    mode: u32,
    modified: (i64, u64),
    pub(super) owner: u32,
    pub(super) group: u32,
}

impl InodeSnapshot {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: size_of(stat),
            mode: stat.st_mode,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            owner: stat.st_uid,
            group: stat.st_gid,
        }
    }

    pub(super) fn mode(&self) -> u32 {
        self.mode & 0o7777
    }

    pub(super) fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    pub(super) fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }

    /// Whether the inode is still the same. Of a directory only its identity counts: its times and
    /// size change with its entries, which are compared one by one.
    pub(super) fn matches(&self, stat: &Stat) -> bool {
        let now = Self::of(stat);
        if self.is_directory() {
            return now.is_directory() && (self.device, self.inode) == (now.device, now.inode);
        }
        *self == now
    }
}

/// The size of a file; the kernel never reports a negative one.
pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Whether the inode changed after a moment. The clock of file systems is coarser than the one
/// `moment` comes from, so a change within some milliseconds of it may be missed.
pub(super) fn changed_after(stat: &Stat, moment: Option<SystemTime>) -> bool {
    let Some(moment) = moment.and_then(|it| it.duration_since(SystemTime::UNIX_EPOCH).ok()) else {
        return false;
    };
    let Ok(seconds) = u64::try_from(stat.st_ctime) else { return false };
    Duration::from_secs(seconds) + Duration::from_nanos(stat.st_ctime_nsec) > moment
}
