//! The user as whom this thread accesses files.

#![expect(unsafe_code, reason = "the identity is set by system calls without a wrapper elsewhere")]

use std::io;

use crate::control::Ids;

/// Runs a function as another user, as far as files are concerned, on this thread alone.
///
/// Files it creates belong to that user, and what that user may not do is refused: the thread has
/// no privilege over files meanwhile.
pub(crate) fn as_user<T>(user: Ids, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    // Undone last, however `act` ends.
    let _before = PreviousUser(Ids { uid: set_user(user.uid), gid: set_group(user.gid) });
    // Neither call reports failure; called with an invalid id, both return the current one.
    if (set_user(u32::MAX), set_group(u32::MAX)) != (user.uid, user.gid) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    act()
}

/// The ids to go back to, when dropped.
struct PreviousUser(Ids);

impl Drop for PreviousUser {
    fn drop(&mut self) {
        set_user(self.0.uid);
        set_group(self.0.gid);
    }
}

fn set_user(uid: u32) -> u32 {
    // SAFETY: the call takes a number and gives one back; no memory is involved. It changes this
    // thread only.
    let before = unsafe { libc::setfsuid(uid) };
    before.cast_unsigned()
}

fn set_group(gid: u32) -> u32 {
    // SAFETY: as above.
    let before = unsafe { libc::setfsgid(gid) };
    before.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_files_are_made_as_whom_they_are_for() {
        use std::os::unix::fs::MetadataExt as _;
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let own = Ids { uid: uid.as_raw(), gid: gid.as_raw() };
        assert_eq!(as_user(own, || Ok(7)).expect("one is always oneself"), 7);
        let other = as_user(Ids { uid: own.uid + 4242, ..own }, || Ok(()));
        assert_eq!(other.is_ok(), own.uid == 0, "only root is somebody else");
        assert_eq!(set_user(u32::MAX), own.uid, "it is over");
        if own.uid == 0 {
            let place = tempfile::tempdir().expect("a directory");
            let path = place.path().join("made");
            as_user(Ids { uid: 0, gid: 0 }, || std::fs::write(&path, "x")).expect("written");
            let denied = as_user(Ids { uid: 4242, gid: 4242 }, || std::fs::write(&path, "y"));
            assert!(denied.is_err(), "no privilege over files of others");
            assert_eq!(std::fs::metadata(&path).expect("there").uid(), 0);
        }
    }
}
