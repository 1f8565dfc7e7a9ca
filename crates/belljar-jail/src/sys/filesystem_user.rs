//! Whom the file system takes this thread for.

#![expect(unsafe_code, reason = "the identity is set by system calls without a wrapper elsewhere")]

use std::io;

/// Does something with files as another user, on this thread alone.
///
/// What is made belongs to that user, and what that user may not do is refused: the thread has no
/// privilege over files meanwhile.
pub fn as_user<T>(uid: u32, gid: u32, act: impl FnOnce() -> T) -> io::Result<T> {
    let before = Ids { uid: set_user(uid), gid: set_group(gid) };
    // Dropped last, however `act` ends.
    let _restored = before;
    // Neither call says whether it worked; asked for what cannot be, both tell what is.
    if (set_user(u32::MAX), set_group(u32::MAX)) != (uid, gid) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(act())
}

struct Ids {
    uid: u32,
    gid: u32,
}

impl Drop for Ids {
    fn drop(&mut self) {
        set_user(self.uid);
        set_group(self.gid);
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
        let (uid, gid) = (uid.as_raw(), gid.as_raw());
        assert_eq!(as_user(uid, gid, || 7).expect("one is always oneself"), 7);
        let other = as_user(uid + 4242, gid, || ());
        assert_eq!(other.is_ok(), uid == 0, "only root is somebody else");
        assert_eq!(set_user(u32::MAX), uid, "it is over");
        if uid == 0 {
            let place = tempfile::tempdir().expect("a directory");
            let path = place.path().join("made");
            as_user(0, 0, || std::fs::write(&path, "x")).expect("root").expect("written");
            let denied = as_user(4242, 4242, || std::fs::write(&path, "y")).expect("somebody");
            assert!(denied.is_err(), "no privilege over files of others");
            assert_eq!(std::fs::metadata(&path).expect("there").uid(), 0);
        }
    }
}
