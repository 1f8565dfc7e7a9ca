//! The host's handle on one cell: its stream, its keeper, its processes, its control group.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use belljar_jail::{
    CellLimits, KeeperReport, NetworkAccess,
    cgroup::{Delegation, Leaf},
    control::Ids,
    kill_by_pidfd, receive_answer, receive_report, request_resize, request_work,
    sample::CellProcesses,
    strays::{StraysLeft, end_strays, has_ended},
};
use belljar_wire::{Caps, Event, ReadError};
use tokio::{io::Interest, net::UnixDatagram, time::timeout};

use crate::{
    LaunchError,
    connection::GuestConnection,
    socket_list::SocketList,
    zygote::{Zygote, packet_socket},
};

/// A handshake has neither body nor text.
pub(crate) const HANDSHAKE_CAPS: Caps = Caps { body_bytes: 0, text_bytes: 0 };
/// How long a keeper may take to resize `/tmp`, or to hand over `/work`.
const KEEPER_ANSWER: Duration = Duration::from_secs(2);
/// How long the host waits to notice that a zygote is gone.
const ZYGOTE_GONE: Duration = Duration::from_millis(500);
/// How long a keeper may take to say how its guest ended. It is short: a guest that only closes its stream
/// lives on for this long.
const REPORT: Duration = Duration::from_millis(100);

/// A confined cell, before or during its one run.
///
/// Dropping it kills every process in it.
#[derive(Debug)]
pub(crate) struct Cell {
    /// The stream to its guest.
    pub(crate) connection: GuestConnection,
    /// Everything of the cell but the stream.
    pub(crate) body: CellBody,
}

/// A cell's keeper and its processes. Dropping it kills all of them.
#[derive(Debug)]
pub(crate) struct CellBody {
    keeper: Arc<UnixDatagram>,
    pidfd: OwnedFd,
    processes: CellProcesses,
    limits: CellLimits,
    cgroup: Option<Leaf>,
    zygote: Arc<Zygote>,
    /// Of the cell's network, until its run takes it.
    listener: Option<CellSockets>,
}

/// The sockets of the host in a cell's network namespace.
#[derive(Debug)]
pub(crate) struct CellSockets {
    /// The socket on which its proxy listens.
    pub(crate) listener: OwnedFd,
    /// Lists all sockets there.
    pub(crate) list: SocketList,
}

impl Cell {
    /// Takes over a cell that is being made and waits until every layer of its plan is in force.
    pub(crate) async fn take_over(
        fds: Vec<OwnedFd>,
        limits: CellLimits,
        zygote: Arc<Zygote>,
    ) -> Result<Self, LaunchError> {
        let Ok([guest, keeper, pidfd]) = <[OwnedFd; 3]>::try_from(fds) else {
            return Err(LaunchError::Protocol);
        };
        let keeper = Arc::new(packet_socket(keeper).map_err(LaunchError::spawn)?);
        let mut connection = GuestConnection::adopt(guest).map_err(LaunchError::spawn)?;
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
        let network = zygote.network();
        let (cgroup, listener) = (None, None);
        let mut body = CellBody { keeper, pidfd, processes, limits, cgroup, zygote, listener };
        if network == NetworkAccess::Proxy {
            body.listener = Some(body.receive_listener().await?);
        }
        Ok(Self { connection, body })
    }

    /// Whether code can run in it: its processes are alive, and its zygote still takes orders.
    pub(crate) fn is_usable(&self) -> bool {
        self.body.zygote.is_alive() && self.body.is_alive()
    }
}

impl CellBody {
    /// The socket on which the keeper takes requests and reports.
    pub(crate) fn keeper_socket(&self) -> Arc<UnixDatagram> {
        self.keeper.clone()
    }

    /// The user and group that its guests run as.
    pub(crate) fn ids(&self) -> Ids {
        self.zygote.ids()
    }

    /// Puts the cell into a control group of its own.
    pub(crate) fn join_cgroup(
        &mut self,
        cgroups: &Delegation,
        number: u64,
    ) -> Result<(), LaunchError> {
        let CellProcesses { keeper, guest, .. } = self.processes;
        let leaf = cgroups.hold(number, &self.limits, &[keeper, guest]);
        let refused = |error: io::Error| LaunchError::Refused {
            mechanism: "memory-cgroup".to_owned(),
            message: error.to_string(),
        };
        self.cgroup = Some(leaf.map_err(refused)?);
        Ok(())
    }

    /// Lowers the limits of the cell's control group, if it has one.
    pub(crate) fn limit_cgroup(&self, limits: &CellLimits) -> io::Result<()> {
        self.cgroup.as_ref().map_or(Ok(()), |leaf| leaf.limit(limits))
    }

    /// Whether the kernel has killed a process of this cell because memory ran out.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.cgroup.as_ref().is_some_and(Leaf::ran_out_of_memory)
    }

    /// CPU time of all processes the cell ever had, where a control group counts it.
    pub(crate) fn group_cpu(&self) -> Option<Duration> {
        self.cgroup.as_ref().and_then(Leaf::cpu_time)
    }

    /// Gives `/work` and `/tmp` this size, unless they have it.
    pub(crate) async fn resize_scratch(&self, bytes: u64, inodes: u64) -> io::Result<()> {
        if (self.limits.disk_bytes, self.limits.inodes) == (bytes, inodes) {
            return Ok(());
        }
        request_resize(&*self.keeper, bytes, inodes)?;
        match timeout(KEEPER_ANSWER, self.report()).await?? {
            Some(KeeperReport::Resized) => Ok(()),
            Some(KeeperReport::NotResized { message }) => Err(io::Error::other(message)),
            Some(_) | None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// How the guest ended, after its stream has ended; `None` if the keeper does not say so in time.
    pub(crate) async fn guest_end(&self) -> Option<KeeperReport> {
        timeout(REPORT, self.report()).await.ok()?.ok()?
    }

    /// A pidfd of the keeper, to wait for the end of the cell.
    pub(crate) fn keeper(&self) -> io::Result<OwnedFd> {
        self.pidfd.try_clone()
    }

    /// Kills every process in the cell. Dropping does the same.
    pub(crate) fn kill(&self) {
        if let Err(error) = kill_by_pidfd(&self.pidfd) {
            tracing::error!(%error, "could not kill a cell");
        }
    }

    /// Whether its keeper is alive. If not, no process of the cell is, and its pid may be reused.
    pub(crate) fn is_alive(&self) -> bool {
        has_ended(&self.pidfd).is_ok_and(|ended| !ended)
    }

    /// Ends strays: children of the keeper that belong to no guest.
    pub(crate) fn end_strays(&self, is_stray: impl Fn(u32) -> bool) -> Result<(), StraysLeft> {
        end_strays(&self.pidfd, is_stray)
    }

    /// The memory that each of its guests may use.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.limits.memory_bytes
    }

    /// The cell's processes, for measuring them.
    pub(crate) fn processes(&self) -> CellProcesses {
        self.processes
    }

    /// Whether the zygote of a cell that ended without a report is gone too.
    pub(crate) async fn zygote_is_gone(&self) -> bool {
        timeout(ZYGOTE_GONE, self.zygote.gone()).await.is_ok()
    }

    /// A handle on the files that the guest wrote to `/work`.
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
                    // The guest may have ended just before this request.
                    Some((KeeperReport::Ended { .. }, _)) => {}
                    Some(_) | None => return Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        };
        timeout(KEEPER_ANSWER, answer).await?
    }

    /// The listener of the cell's network; a cell has one, for one run.
    pub(crate) fn take_listener(&mut self) -> Option<CellSockets> {
        self.listener.take()
    }

    /// Receives the listener, which the keeper has sent before the guest was there.
    async fn receive_listener(&self) -> Result<CellSockets, LaunchError> {
        let received = self.keeper.async_io(Interest::READABLE, || receive_answer(&*self.keeper));
        let received = timeout(KEEPER_ANSWER, received).await;
        let received = received.map_err(|error| LaunchError::spawn(error.into()))?;
        match received.map_err(LaunchError::spawn)? {
            Some((KeeperReport::Listener, fds)) => match <[OwnedFd; 2]>::try_from(fds) {
                Ok([listener, list]) => Ok(CellSockets { listener, list: SocketList::new(list) }),
                // The keeper sent them, and this process has no room for them.
                Err(_) => Err(LaunchError::spawn(rustix::io::Errno::MFILE.into())),
            },
            Some(_) | None => Err(LaunchError::Protocol),
        }
    }

    async fn report(&self) -> io::Result<Option<KeeperReport>> {
        let received = self.keeper.async_io(Interest::READABLE, || receive_report(&*self.keeper));
        Ok(received.await?.map(|(report, _)| report))
    }
}

impl Drop for CellBody {
    fn drop(&mut self) {
        self.kill();
    }
}
