//! Whom files belong to that a thread makes.
#![expect(unsafe_code, reason = "setfsuid and setfsgid have no safe wrapper")]

use crate::control::Ids;

/// Lets the calling thread, if it is root's, make and open files as somebody else until this is
/// dropped; without the privileges of root over files, too.
#[derive(Debug)]
pub(crate) struct FilesBelongTo {
    before: Option<Ids>,
    /// The thread it was made in is the one to be changed back.
    _stays: std::marker::PhantomData<*const ()>,
}

impl FilesBelongTo {
    pub(crate) fn owner(owner: Ids) -> Self {
        let before = rustix::process::geteuid().is_root().then(|| {
            let gid = set_group(owner.gid);
            Ids { uid: set_user(owner.uid), gid }
        });
        Self { before, _stays: std::marker::PhantomData }
    }
}

impl Drop for FilesBelongTo {
    fn drop(&mut self) {
        if let Some(Ids { uid, gid }) = self.before {
            set_user(uid);
            set_group(gid);
        }
    }
}

/// For the calling thread; the one before.
fn set_user(uid: u32) -> u32 {
    // SAFETY: the call takes an integer and changes the credentials of this thread only.
    unsafe { libc::setfsuid(uid) }.cast_unsigned()
}

/// For the calling thread; the one before.
fn set_group(gid: u32) -> u32 {
    // SAFETY: the call takes an integer and changes the credentials of this thread only.
    unsafe { libc::setfsgid(gid) }.cast_unsigned()
}
