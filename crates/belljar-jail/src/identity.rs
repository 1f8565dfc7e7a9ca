//! The ids of a process: dropping root, and the id maps of user namespaces.
//!
//! Inside a namespace, every process is uid 1000. Outside, the cells of a root host run under an id
//! that no other process has: RLIMIT_NPROC is not enforced for uid 0, and two hosts must not be
//! able to signal each other's cells.

use std::{fs, io};

use rustix::{
    process::{DumpableBehavior, Gid, Uid, getgid, getpid, getuid, set_dumpable_behavior},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use crate::control::Ids;

/// The uid and gid every process sees inside.
const INSIDE_ID: u32 = 1000;
/// Start of a range no distribution, systemd or container runtime hands out.
const FIRST_PRIVATE_ID: u32 = 1_900_000_000;
/// The fallback where ids are scarce, as in a container with a small id map: `nobody`.
const NOBODY: u32 = 65534;

/// The ids that [`drop_root`] tries first, if this process is root.
pub(crate) fn private_ids() -> Option<Ids> {
    let id = FIRST_PRIVATE_ID + getpid().as_raw_pid().unsigned_abs();
    getuid().is_root().then_some(Ids { uid: id, gid: id })
}

/// Becomes an ordinary user, if this is root. The caller is single-threaded.
pub(crate) fn drop_root() -> io::Result<()> {
    let Some(Ids { uid: own, .. }) = private_ids() else { return Ok(()) };
    set_thread_groups(&[])?;
    become_user(own).or_else(|_| become_user(NOBODY))?;
    // A changed uid makes the process undumpable, and then /proc/self/uid_map belongs to root.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(())
}

fn become_user(id: u32) -> io::Result<()> {
    let (gid, uid) = (Gid::from_raw(id), Uid::from_raw(id));
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// The ids of the calling process as the machine numbers them. Call it before any user namespace is
/// entered.
pub(crate) fn own_ids() -> Ids {
    Ids { uid: getuid().as_raw(), gid: getgid().as_raw() }
}

/// The ids a process has before it enters a user namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OuterIds {
    uid: u32,
    gid: u32,
}

impl OuterIds {
    /// The ids of the calling process.
    pub(crate) fn current() -> Self {
        Self { uid: getuid().as_raw(), gid: getgid().as_raw() }
    }

    /// Maps them, in the user namespace the calling process has just entered.
    pub(crate) fn map_inside(self) -> io::Result<()> {
        self.map_to(Self { uid: INSIDE_ID, gid: INSIDE_ID })
    }

    /// Maps them to themselves, for a process that keeps its ids.
    pub(crate) fn map_to_themselves(self) -> io::Result<()> {
        self.map_to(self)
    }

    fn map_to(self, inside: Self) -> io::Result<()> {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{} {} 1", inside.uid, self.uid))?;
        fs::write("/proc/self/gid_map", format!("{} {} 1", inside.gid, self.gid))
    }
}
