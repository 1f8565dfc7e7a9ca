//! Whether a file may be used as state or configuration of the user this process runs as.
//!
//! A user who can write such a file controls Belljar: it names servers that are started, and holds
//! the token and the approvals. So it must belong to the user and not be a link (whose maker
//! chooses where it leads), and no other user may be able to write to it. Files are checked by
//! their open handle, because the file at a path can be swapped between check and read. For the
//! same reason no other user may be able to replace a directory of state in the directory it is in.

use std::{
    fs::{self, Metadata},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use thiserror::Error;

/// Write permission for the group and for all others.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Write permission for the group alone.
const WRITABLE_BY_GROUP: u32 = 0o020;
/// In such a directory only the owner of an entry can exchange it.
const STICKY: u32 = 0o1000;
/// Levels of a directory of state that are looked at; Belljar itself makes one.
const MAX_DEPTH: usize = 8;

/// Why a file of the host is not used. The message includes the remedy.
#[derive(Debug, Error)]
pub enum UntrustedPath {
    /// It belongs to another user.
    #[error(
        "{path} belongs to user {owner}, but belljar runs as user {user}: it is not used, because its \
         owner controls its content; work in a directory of your own, remove {path}, or give it to \
         user {user} (chown)", path = .path.display()
    )]
    Stranger {
        /// The file or directory that is not used.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// The user id of this process.
        user: u32,
    },
    /// It is a symbolic link.
    #[error(
        "{path} is a link, and links are not followed here: put the file or directory itself in its \
         place", path = .path.display()
    )]
    Link {
        /// The file or directory that is not used.
        path: PathBuf,
    },
    /// Its permissions let others write to it.
    #[error("{path} is writable by other users; run: chmod go-w {path}", path = .path.display())]
    Writable {
        /// The file or directory that is not used.
        path: PathBuf,
    },
    /// The directory that state is in belongs to another user.
    #[error(
        "{path} belongs to user {owner}, but belljar runs as user {user}: state in it is not used, \
         because its owner can replace files in it; work in a directory of your own, or give \
         {path} to user {user} (chown)", path = .path.display()
    )]
    PlaceOfStranger {
        /// The directory that holds the state.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// The user id of this process.
        user: u32,
    },
    /// The permissions of the directory that state is in let others exchange the state.
    #[error(
        "{path} is writable by other users, who could replace the state in it; run: chmod go-w {path}", path = .path.display()
    )]
    PlaceWritable {
        /// The directory that holds the state.
        path: PathBuf,
    },
    /// It is a device, a fifo or a socket, or nested too deeply for anything Belljar makes.
    #[error(
        "{path} was not created by belljar: remove it, or move it elsewhere",
        path = .path.display()
    )]
    Unexpected {
        /// The file or directory that is not used.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {path}", path = .path.display())]
    Unreadable {
        /// The file or directory that is not used.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl UntrustedPath {
    /// Whether no file exists at the path.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Unreadable { path: path.to_owned(), source }
    }
}

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// State, which only Belljar itself writes: it is the user's.
    State,
    /// Configuration of a project. It may be root's too, who can change every file anyway and may
    /// have put it there for all users of a machine or an image.
    Configuration,
    /// The user's own configuration. As before, and it may be a link of theirs: many keep such
    /// files together elsewhere.
    OwnConfiguration,
}

/// Checks a file or directory; its metadata if it may be used.
///
/// # Errors
/// If it may not, or is not there: see [`UntrustedPath::is_missing`].
pub fn check(path: &Path, purpose: Purpose) -> Result<Metadata, UntrustedPath> {
    let found = fs::symlink_metadata(path).map_err(UntrustedPath::unreadable(path))?;
    judge(path, &found, purpose, user())?;
    Ok(found)
}

/// Checks a directory of state, everything in it, and the directory it is in. Returns whether it
/// exists: if not, nothing was checked, and a file that appears there later must not be used.
///
/// # Errors
/// If anything in it may not be used.
pub fn check_state(directory: &Path) -> Result<bool, UntrustedPath> {
    let found = match check(directory, Purpose::State) {
        Err(error) if error.is_missing() => return Ok(false),
        found => found?,
    };
    if !found.is_dir() {
        return Err(UntrustedPath::Unexpected { path: directory.to_owned() });
    }
    check_place(directory)?;
    let mut pending = vec![(directory.to_owned(), 0)];
    while let Some((directory, depth)) = pending.pop() {
        if depth == MAX_DEPTH {
            return Err(UntrustedPath::Unexpected { path: directory });
        }
        let entries = fs::read_dir(&directory).map_err(UntrustedPath::unreadable(&directory))?;
        for entry in entries {
            let path = entry.map_err(UntrustedPath::unreadable(&directory))?.path();
            match check(&path, Purpose::State) {
                Ok(found) if found.is_dir() => pending.push((path, depth + 1)),
                Ok(_) => {}
                // Another process has removed it meanwhile.
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(true)
}

/// Checks the directory that a directory of state is in, or is to be made in.
///
/// # Errors
/// If another user could replace the user's files there.
pub fn check_place(directory: &Path) -> Result<(), UntrustedPath> {
    let place = directory.parent().filter(|place| !place.as_os_str().is_empty());
    let place = place.unwrap_or(Path::new("."));
    let found = fs::metadata(place).map_err(UntrustedPath::unreadable(place))?;
    let user = User { id: user(), group: rustix::process::getgid().as_raw() };
    judge_place(place, &found, user)
}

/// Opens a file to read it, checked by its handle.
///
/// # Errors
/// If it may not be used, or is not there.
pub fn open(path: &Path, purpose: Purpose) -> Result<fs::File, UntrustedPath> {
    let is_link = check(path, purpose)?.is_symlink();
    // Without waiting for a writer, should it be a fifo by now.
    let mut flags = rustix::fs::OFlags::NONBLOCK;
    flags.set(rustix::fs::OFlags::NOFOLLOW, !is_link);
    let mut options = fs::OpenOptions::new();
    let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.map_err(UntrustedPath::unreadable(path))?;
    let found = file.metadata().map_err(UntrustedPath::unreadable(path))?;
    judge(path, &found, purpose, user())?;
    match found.is_file() {
        true => Ok(file),
        false => Err(UntrustedPath::Unexpected { path: path.to_owned() }),
    }
}

/// The text of a file.
///
/// # Errors
/// As [`open`], or if it holds no text.
pub fn read_to_string(path: &Path, purpose: Purpose) -> Result<String, UntrustedPath> {
    let mut text = String::new();
    open(path, purpose)?.read_to_string(&mut text).map_err(UntrustedPath::unreadable(path))?;
    Ok(text)
}

/// Whether a directory belongs to this user and is closed to all others.
pub fn is_private_directory(path: &Path) -> bool {
    check(path, Purpose::State).is_ok_and(|found| found.is_dir() && found.mode() & 0o077 == 0)
}

/// The user this process acts as.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A user, and the group that is theirs first.
#[derive(Debug, Clone, Copy)]
struct User {
    id: u32,
    group: u32,
}

/// Decides whether others could replace the user's files in a directory. A group with the number of
/// the user is that user's alone: many systems give everybody one, and let it write to all they
/// make.
fn judge_place(path: &Path, found: &Metadata, user: User) -> Result<(), UntrustedPath> {
    let (path, owner) = (path.to_owned(), found.uid());
    if owner != user.id && owner != 0 {
        return Err(UntrustedPath::PlaceOfStranger { path, owner, user: user.id });
    }
    let is_own_group = found.gid() == user.group && user.group == user.id;
    let harmless = if is_own_group { WRITABLE_BY_GROUP } else { 0 };
    let is_sticky = found.mode() & STICKY != 0;
    match found.mode() & WRITABLE_BY_OTHERS & !harmless {
        0 => Ok(()),
        _ if is_sticky => Ok(()),
        _ => Err(UntrustedPath::PlaceWritable { path }),
    }
}

/// Decides by the metadata of a path, or of a handle of it.
fn judge(path: &Path, found: &Metadata, purpose: Purpose, user: u32) -> Result<(), UntrustedPath> {
    let path = || path.to_owned();
    let is_owned = found.uid() == user || (purpose != Purpose::State && found.uid() == 0);
    if !is_owned {
        return Err(UntrustedPath::Stranger { path: path(), owner: found.uid(), user });
    }
    match (found.is_symlink(), purpose) {
        (false, _) => {}
        // The permissions of a link mean nothing.
        (true, Purpose::OwnConfiguration) => return Ok(()),
        (true, Purpose::State | Purpose::Configuration) => {
            return Err(UntrustedPath::Link { path: path() });
        }
    }
    if !found.is_dir() && !found.is_file() {
        return Err(UntrustedPath::Unexpected { path: path() });
    }
    match found.mode() & WRITABLE_BY_OTHERS {
        0 => Ok(()),
        _ => Err(UntrustedPath::Writable { path: path() }),
    }
}

#[cfg(test)]
mod tests;
