//! Files of the host's user: software its cells are shown, trees they may be granted, and a secret
//! beside them that nobody grants.
//!
//! Whatever an attempt says, [`Home::damage`] sees from outside what has become of them.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
};

use belljar_contract::{Grants, Workspace};
use tempfile::TempDir;

use super::{
    raw::call,
    software::{LIBRARY, PROGRAM},
    spawn::{ORDINARY, Who},
};

/// Trees and single files, by what is granted of them.
pub(crate) const READ: &str = "read";
pub(crate) const WRITE: &str = "write";
pub(crate) const WORK: &str = "work";
pub(crate) const ONE: &str = "one";
pub(crate) const MINE: &str = "mine";
/// In each of the trees: a file, one in a directory, one that is setuid, a fifo.
pub(crate) const KEPT: &str = "kept";
pub(crate) const INNER: &str = "sub/inner";
pub(crate) const SETUID: &str = "setuid";
pub(crate) const FIFO: &str = "fifo";
/// Links to the secret: absolute, relative, through `/proc`.
pub(crate) const LINKS: [&str; 3] = ["absolute", "relative", "magic"];
/// The files that no run is granted.
pub(crate) const SECRET: &str = "secret";

/// Keeps the files there.
#[derive(Debug)]
pub(crate) struct Home {
    directory: TempDir,
    before: BTreeMap<PathBuf, Entry>,
}

/// All there is to know of a file but when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    mode: u32,
    owner: (u32, u32),
    changed: (i64, i64),
    content: Vec<u8>,
    attributes: u64,
}

impl Home {
    /// Lays everything out, for its owner. Not in `/tmp`, which is a cell's own.
    pub(crate) fn lay(owner: Who, marker: &str) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("belljar-home-").tempdir_in("/var/tmp")?;
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("software"))?;
        fs::write(at("software").join(LIBRARY), "software")?;
        fs::copy("/usr/bin/true", at("software").join(PROGRAM))?;
        for tree in [READ, WRITE, WORK] {
            lay_tree(&at(tree), &at(SECRET))?;
        }
        for file in [ONE, MINE, "one-beside", "mine-beside", SECRET] {
            fs::write(at(file), marker)?;
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        give_to(directory.path(), owner)?;
        let before = entries(directory.path())?;
        Ok(Self { directory, before })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The changes to files that had to stay as they were, if there are any.
    pub(crate) fn damage(&self) -> io::Result<Option<String>> {
        let now = entries(self.path())?;
        let owner = self.before.get(Path::new("")).map(|entry| entry.owner);
        for (path, entry) in &now {
            let before = self.before.get(path);
            let bad = if is_granted_for_writing(path) {
                wrong_with(entry, before, owner)
            } else {
                (before != Some(entry)).then(|| "changed or new".to_owned())
            };
            if let Some(bad) = bad {
                return Ok(Some(format!("{}: {bad}: {entry:?}", path.display())));
            }
        }
        let gone = self.before.keys().find(|path| {
            !now.contains_key(*path) && (!is_granted_for_writing(path) || path.as_os_str() == MINE)
        });
        Ok(gone.map(|path| format!("{} is gone", path.display())))
    }

    /// Puts things back, if an attempt has changed what it may. For the owner only.
    pub(crate) fn restore(&mut self, marker: &str) -> io::Result<()> {
        let tree = self.path().join(WRITE);
        if entries(self.path())? != self.before {
            fs::remove_dir_all(&tree)?;
            lay_tree(&tree, &self.path().join(SECRET))?;
            fs::write(self.path().join(MINE), marker)?;
            give_to(&tree, Who::Same)?;
            self.before = entries(self.path())?;
        }
        Ok(())
    }
}

/// The grants of a run for an attempt on grants.
pub(crate) fn grants(home: &Path) -> (Grants, Option<Workspace>) {
    let paths = |names: [&str; 2]| names.map(|name| home.join(name)).to_vec();
    let mut read = paths([READ, ONE]);
    // One that is to be read, in one that may be written to.
    read.push(home.join(WRITE).join("sub"));
    let grants = Grants { read, write: paths([WRITE, MINE]), ..Grants::default() };
    (grants, Some(Workspace { path: home.join(WORK), ..Workspace::default() }))
}

fn lay_tree(tree: &Path, secret: &Path) -> io::Result<()> {
    fs::create_dir_all(tree.join("sub"))?;
    for file in [KEPT, INNER, SETUID] {
        fs::write(tree.join(file), [b'k'; 4096])?;
    }
    let [absolute, relative, magic] = LINKS;
    symlink(secret, tree.join(absolute))?;
    symlink(format!("../{SECRET}"), tree.join(relative))?;
    symlink(format!("/proc/self/root{}", secret.display()), tree.join(magic))?;
    let fifo = tree.join(FIFO);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    Ok(rustix::fs::mkfifoat(rustix::fs::CWD, fifo, mode)?)
}

/// Changing the owner takes the setuid bit away, so that is set last.
fn give_to(path: &Path, owner: Who) -> io::Result<()> {
    for path in entries(path)?.into_keys().map(|at| path.join(at)) {
        if owner != Who::Same {
            std::os::unix::fs::lchown(&path, Some(ORDINARY), Some(ORDINARY))?;
        }
        if path.ends_with(SETUID) {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o4755))?;
        }
    }
    if owner != Who::Same {
        chown(path, Some(ORDINARY), Some(ORDINARY))?;
    }
    Ok(())
}

fn is_granted_for_writing(path: &Path) -> bool {
    let to_read = path.starts_with(Path::new(WRITE).join("sub"));
    (path.starts_with(WRITE) || path.starts_with(MINE)) && !to_read
}

/// Nothing a guest writes is privileged, a device, somebody else's or has attributes.
fn wrong_with(entry: &Entry, before: Option<&Entry>, owner: Option<(u32, u32)>) -> Option<String> {
    let kind = entry.mode & libc::S_IFMT;
    let plain = [libc::S_IFREG, libc::S_IFDIR, libc::S_IFLNK, libc::S_IFIFO].contains(&kind);
    let privileged = entry.mode & (libc::S_ISUID | libc::S_ISGID) != 0;
    let was_so = before.is_some_and(|before| before.content == entry.content);
    let wrong = [
        (!plain, "not an ordinary file"),
        (privileged && !was_so, "privileged"),
        (Some(entry.owner) != owner, "somebody else's"),
        (entry.attributes != 0, "has attributes"),
    ];
    wrong.iter().find(|(is, _)| *is).map(|(_, what)| (*what).to_owned())
}

/// Everything beneath a directory, and itself, by path within it.
fn entries(root: &Path) -> io::Result<BTreeMap<PathBuf, Entry>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(path) = pending.pop() {
        let full = if path.as_os_str().is_empty() { root.to_owned() } else { root.join(&path) };
        let seen = fs::symlink_metadata(&full)?;
        let content = match seen.mode() & libc::S_IFMT {
            libc::S_IFDIR => {
                for entry in fs::read_dir(&full)? {
                    pending.push(path.join(entry?.file_name()));
                }
                Vec::new()
            }
            // A sparse file of any size is told by its beginning and its size.
            libc::S_IFREG => [beginning(&full)?, seen.len().to_ne_bytes().to_vec()].concat(),
            libc::S_IFLNK => fs::read_link(&full)?.into_os_string().into_encoded_bytes(),
            _ => Vec::new(),
        };
        let name = std::ffi::CString::new(full.as_os_str().as_encoded_bytes())?;
        let attributes = call!(SYS_llistxattr, &*name, 0, 0).unwrap_or_default();
        let changed = (seen.ctime(), seen.ctime_nsec());
        let owner = (seen.uid(), seen.gid());
        found.insert(path, Entry { mode: seen.mode(), owner, changed, content, attributes });
    }
    Ok(found)
}

fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read;
    let mut content = Vec::new();
    fs::File::open(path)?.take(1 << 16).read_to_end(&mut content)?;
    Ok(content)
}
