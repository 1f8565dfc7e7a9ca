//! The host's handle on one cell.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use belljar_jail::{
    CellLimits, KeeperReport,
    cgroup::{Delegation, Leaf},
    kill_by_pidfd, receive_report, request_resize, request_work,
    sample::CellProcesses,
};
use belljar_wire::{Caps, Command, Event, Header, Message, ReadError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader, Interest},
    net::{
        UnixDatagram, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use crate::{
    LaunchError,
    zygote::{Zygote, packet_socket},
};

/// A handshake is small.
const HANDSHAKE_CAPS: Caps = Caps { body_bytes: 0, text_bytes: 0 };
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
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    keeper: UnixDatagram,
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
        let (stream, keeper) = adopt(guest, keeper).map_err(LaunchError::Spawn)?;
        let (reader, writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        match read_event(&mut reader, HANDSHAKE_CAPS).await.map(|(event, _)| event) {
            Ok(Event::Ready) => {}
            Ok(Event::Refused { mechanism, message }) => {
                return Err(LaunchError::Refused { mechanism, message });
            }
            Ok(_) | Err(ReadError::Decode(_)) => return Err(LaunchError::Protocol),
            Err(ReadError::Ended | ReadError::Io(_)) => return Err(LaunchError::NoHandshake),
        }
        let processes =
            CellProcesses::find(&pidfd, zygote.guests()).map_err(|_| LaunchError::NoHandshake)?;
        Ok(Self { reader, writer, keeper, pidfd, processes, limits, cgroup: None, zygote })
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

    /// Both directions of the connection, to be used side by side.
    pub(crate) fn connection(&mut self) -> (CellReader<'_>, CellWriter<'_>) {
        (CellReader { stream: &mut self.reader }, CellWriter { stream: &mut self.writer })
    }

    /// Brings `/work` and `/tmp` to another size, if it has not got it.
    pub(crate) async fn resize_scratch(&mut self, bytes: u64, inodes: u64) -> io::Result<()> {
        if (self.limits.disk_bytes, self.limits.inodes) == (bytes, inodes) {
            return Ok(());
        }
        request_resize(&self.keeper, bytes, inodes)?;
        match timeout(RESIZE, self.report()).await?? {
            Some(KeeperReport::Resized) => Ok(()),
            Some(KeeperReport::NotResized { message }) => Err(io::Error::other(message)),
            Some(KeeperReport::Ended { .. } | KeeperReport::Work | KeeperReport::NoWork { .. })
            | None => Err(io::ErrorKind::UnexpectedEof.into()),
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

    /// The cell's processes, to be measured.
    pub(crate) fn processes(&self) -> CellProcesses {
        self.processes
    }

    /// Whether the zygote this cell hangs from still takes orders.
    pub(crate) fn zygote_is_alive(&self) -> bool {
        self.zygote.is_alive()
    }

    /// Whether a cell that ended without a word took its leave with its zygote.
    pub(crate) async fn zygote_is_gone(&self) -> bool {
        timeout(ZYGOTE_GONE, self.zygote.gone()).await.is_ok()
    }

    /// A handle on what the guest has written to `/work`.
    pub(crate) async fn work(&self) -> io::Result<OwnedFd> {
        request_work(&self.keeper)?;
        let answer = async {
            loop {
                let receive = || receive_report(&self.keeper);
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
        let received = self.keeper.async_io(Interest::READABLE, || receive_report(&self.keeper));
        Ok(received.await?.map(|(report, _)| report))
    }
}

/// What comes out of a cell.
#[derive(Debug)]
pub(crate) struct CellReader<'a> {
    stream: &'a mut BufReader<OwnedReadHalf>,
}

impl CellReader<'_> {
    /// The next event, and how many bytes it took.
    pub(crate) async fn receive(&mut self, caps: Caps) -> Result<(Event, usize), ReadError> {
        read_event(self.stream, caps).await
    }
}

/// What goes into a cell.
#[derive(Debug)]
pub(crate) struct CellWriter<'a> {
    stream: &'a mut OwnedWriteHalf,
}

impl CellWriter<'_> {
    /// Sends a command; a small one in a single call.
    pub(crate) async fn send(&mut self, command: &Command) -> io::Result<()> {
        let (mut prefix, body) = command.encode().ok_or(io::ErrorKind::InvalidInput)?;
        if body.iter().map(|part| part.len()).sum::<usize>() <= 64 * 1024 {
            body.iter().for_each(|part| prefix.extend_from_slice(part));
            return self.stream.write_all(&prefix).await;
        }
        self.stream.write_all(&prefix).await?;
        for part in body {
            self.stream.write_all(part).await?;
        }
        Ok(())
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.kill();
    }
}

fn adopt(guest: OwnedFd, keeper: OwnedFd) -> io::Result<(UnixStream, UnixDatagram)> {
    let guest = std::os::unix::net::UnixStream::from(guest);
    guest.set_nonblocking(true)?;
    Ok((UnixStream::from_std(guest)?, packet_socket(keeper)?))
}

async fn read_event(
    stream: &mut BufReader<OwnedReadHalf>,
    caps: Caps,
) -> Result<(Event, usize), ReadError> {
    let mut header = [0; Header::SIZE];
    let first = stream.read(&mut header).await?;
    if first == 0 {
        return Err(ReadError::Ended);
    }
    stream.read_exact(header.get_mut(first..).unwrap_or_default()).await?;
    let header = Header::parse(header, caps)?;
    let head = read_part(stream, header.head_bytes()).await?;
    let body = read_part(stream, header.body_bytes()).await?;
    Ok((Event::decode(header, &head, body)?, header.frame_bytes()))
}

/// Memory grows with what really arrives, not with what a header claims.
async fn read_part(stream: &mut BufReader<OwnedReadHalf>, bytes: usize) -> io::Result<Vec<u8>> {
    let mut part = Vec::with_capacity(bytes.min(64 * 1024));
    stream.take(bytes as u64).read_to_end(&mut part).await?;
    if part.len() == bytes { Ok(part) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
