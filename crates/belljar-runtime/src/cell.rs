//! The host's handle on one cell.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use belljar_jail::{
    CellLimits, KeeperReport,
    cgroup::{Delegation, Leaf},
    control::Ids,
    kill_by_pidfd, receive_report, request_resize, request_work,
    sample::CellProcesses,
    strays::{StraysLeft, end_strays, has_ended},
};
use belljar_wire::{Caps, Event, ReadError};
use tokio::{io::Interest, net::UnixDatagram, time::timeout};

use crate::{
    LaunchError,
    connection::Connection,
    zygote::{Zygote, packet_socket},
};

/// A handshake is small.
pub(crate) const HANDSHAKE_CAPS: Caps = Caps { body_bytes: 0, text_bytes: 0 };
/// How long a keeper may take to resize `/tmp`.
const RESIZE: Duration = Duration::from_secs(2);
/// How long a host may take to notice that a zygote is gone.
const ZYGOTE_GONE: Duration = Duration::from_millis(500);
/// How long a keeper may take to say how its guest ended. A guest that only pretends to have ended
/// lives on for as long, so this is short.
const REPORT: Duration = Duration::from_millis(100);

/// A confined cell that has not run anything yet, or is running its one run.
///
/// Dropping it kills every process in it.
#[derive(Debug)]
pub(crate) struct Cell {
    /// The stream of its guest.
    pub(crate) connection: Connection,
    /// All the rest of it.
    pub(crate) body: Body,
}

/// A cell's keeper, and what is known of its processes. Dropping it kills every one of them.
#[derive(Debug)]
pub(crate) struct Body {
    keeper: Arc<UnixDatagram>,
    pidfd: OwnedFd,
    processes: CellProcesses,
    limits: CellLimits,
    cgroup: Option<Leaf>,
    zygote: Arc<Zygote>,
}

impl Cell {
    /// Takes over a cell under way and waits until every layer of its plan is in force.
    pub(crate) async fn confined(
        fds: Vec<OwnedFd>,
        limits: CellLimits,
        zygote: Arc<Zygote>,
    ) -> Result<Self, LaunchError> {
        let Ok([guest, keeper, pidfd]) = <[OwnedFd; 3]>::try_from(fds) else {
            return Err(LaunchError::Protocol);
        };
        let keeper = Arc::new(packet_socket(keeper).map_err(LaunchError::spawn)?);
        let mut connection = Connection::adopt(guest).map_err(LaunchError::spawn)?;
        match connection.receive(HANDSHAKE_CAPS).await {
            Ok(Event::Ready) => {}
            Ok(Event::Refused { mechanism, message }) => {
                return Err(LaunchError::refused(mechanism, message));
            }
            Ok(_) | Err(ReadError::Decode(_)) => return Err(LaunchError::Protocol),
            Err(ReadError::Ended | ReadError::Io(_)) => return Err(LaunchError::NoHandshake),
        }
        let processes =
            CellProcesses::find(&pidfd, zygote.guests()).map_err(|_| LaunchError::NoHandshake)?;
        let body = Body { keeper, pidfd, processes, limits, cgroup: None, zygote };
        Ok(Self { connection, body })
    }

    /// Whether code can be run in it: its processes are there, and the zygote it hangs from still
    /// takes orders.
    pub(crate) fn is_usable(&self) -> bool {
        self.body.zygote.is_alive() && self.body.is_alive()
    }
}

impl Body {
    /// The socket to its keeper.
    pub(crate) fn keeper_socket(&self) -> Arc<UnixDatagram> {
        self.keeper.clone()
    }

    /// Whom its guests run as.
    pub(crate) fn ids(&self) -> Ids {
        self.zygote.ids()
    }

    /// Puts the cell into a control group of its own.
    pub(crate) fn hold_in(&mut self, cgroups: &Delegation, number: u64) -> Result<(), LaunchError> {
        let CellProcesses { keeper, guest, .. } = self.processes;
        let held = cgroups.hold(number, &self.limits, &[keeper, guest]);
        let refused = |error: io::Error| LaunchError::Refused {
            mechanism: "memory-cgroup".to_owned(),
            message: error.to_string(),
        };
        self.cgroup = Some(held.map_err(refused)?);
        Ok(())
    }

    /// Lowers the bounds of the cell's control group, if it has one.
    pub(crate) fn limit_cgroup(&self, limits: &CellLimits) -> io::Result<()> {
        self.cgroup.as_ref().map_or(Ok(()), |leaf| leaf.limit(limits))
    }

    /// Whether the kernel has killed in this cell for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.cgroup.as_ref().is_some_and(Leaf::ran_out_of_memory)
    }

    /// CPU time of everything that was ever in the cell, where a control group counts it.
    pub(crate) fn group_cpu(&self) -> Option<Duration> {
        self.cgroup.as_ref().and_then(Leaf::cpu_time)
    }

    /// Brings `/work` and `/tmp` to another size, if it has not got it.
    pub(crate) async fn resize_scratch(&self, bytes: u64, inodes: u64) -> io::Result<()> {
        if (self.limits.disk_bytes, self.limits.inodes) == (bytes, inodes) {
            return Ok(());
        }
        request_resize(&*self.keeper, bytes, inodes)?;
        match timeout(RESIZE, self.report()).await?? {
            Some(KeeperReport::Resized) => Ok(()),
            Some(KeeperReport::NotResized { message }) => Err(io::Error::other(message)),
            Some(_) | None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// How the guest ended, once its stream has; `None` when the keeper does not say so soon.
    pub(crate) async fn guest_end(&self) -> Option<KeeperReport> {
        timeout(REPORT, self.report()).await.ok()?.ok()?
    }

    /// A handle on the keeper, by which to wait for the cell's end.
    pub(crate) fn keeper(&self) -> io::Result<OwnedFd> {
        self.pidfd.try_clone()
    }

    /// Kills every process in the cell. Also done when it is dropped.
    pub(crate) fn kill(&self) {
        if let Err(error) = kill_by_pidfd(&self.pidfd) {
            tracing::error!(%error, "could not kill a cell");
        }
    }

    /// Whether its keeper is there; if not, nothing is, and its number may be another's.
    pub(crate) fn is_alive(&self) -> bool {
        has_ended(&self.pidfd).is_ok_and(|ended| !ended)
    }

    /// Ends children of its keeper that are strays.
    pub(crate) fn end_strays(&self, is_stray: impl Fn(u32) -> bool) -> Result<(), StraysLeft> {
        end_strays(&self.pidfd, is_stray)
    }

    /// What each of its guests may have of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.limits.memory_bytes
    }

    /// The cell's processes, to be measured.
    pub(crate) fn processes(&self) -> CellProcesses {
        self.processes
    }

    /// Whether a cell that ended without a word took its leave with its zygote.
    pub(crate) async fn zygote_is_gone(&self) -> bool {
        timeout(ZYGOTE_GONE, self.zygote.gone()).await.is_ok()
    }

    /// A handle on what the guest has written to `/work`.
    pub(crate) async fn work(&self) -> io::Result<OwnedFd> {
        request_work(&*self.keeper)?;
        let answer = async {
            loop {
                let receive = || receive_report(&*self.keeper);
                match self.keeper.async_io(Interest::READABLE, receive).await? {
                    Some((KeeperReport::Work, Some(work))) => return Ok(work),
                    Some((KeeperReport::NoWork { message }, _)) => {
                        return Err(io::Error::other(message));
                    }
                    // The guest may have ended just before it was asked for.
                    Some((KeeperReport::Ended { .. }, _)) => {}
                    Some(_) | None => return Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        };
        timeout(RESIZE, answer).await?
    }

    async fn report(&self) -> io::Result<Option<KeeperReport>> {
        let received = self.keeper.async_io(Interest::READABLE, || receive_report(&*self.keeper));
        Ok(received.await?.map(|(report, _)| report))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.kill();
    }
}
