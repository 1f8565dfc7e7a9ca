//! What host and zygote say to each other, one packet each, descriptors attached.
//!
//! The zygote runs no guest code, so this is plumbing between trusted ends; packets are small and
//! decoded strictly all the same.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg,
    sendmsg, socketpair,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{CellGrants, CellKind, CellLimits, GrantedTree, Mechanism, ZygotePlan};

/// No answer or report is larger.
const MAX_PACKET_BYTES: usize = 8192;
/// No order is larger: it may have a whole plan in it, or the paths of many grants.
const MAX_ORDER_BYTES: usize = 64 * 1024;
/// The most trees a cell can be granted, and more than the descriptors a cell comes with.
pub const MAX_DESCRIPTORS: usize = 16;

/// Host → zygote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ZygoteOrder {
    /// First of all: how to be confined.
    Confine(ZygotePlan),
    /// Instead of being confined: detach these trees for cells of these ids, and end.
    Detach {
        /// Which.
        trees: Vec<GrantedTree>,
        /// Whom their owner is to appear as.
        cells: Ids,
    },
    /// Clone a cell. The trees it is granted are attached.
    MakeCell {
        /// Comes back with the answer.
        serial: u64,
        /// What it may use.
        limits: CellLimits,
        /// What it is granted.
        #[serde(default, skip_serializing_if = "CellGrants::is_empty")]
        grants: CellGrants,
        /// How long it is to live.
        #[serde(default)]
        kind: CellKind,
    },
}

/// Zygote → host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ZygoteReply {
    /// Confined and warm.
    Ready {
        /// Whom its cells run as.
        ids: Ids,
    },
    /// The trees are attached.
    Trees,
    /// A tree could not be detached.
    NoTree {
        /// Which.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// A layer could not be put in force; the zygote ends.
    Refused {
        /// Which one.
        mechanism: Mechanism,
        /// What the system said.
        message: String,
    },
    /// The engine could not be warmed; the zygote ends.
    NotWarm {
        /// Why.
        message: String,
    },
    /// A cell is under way: its socket, its keeper's socket and its pidfd are attached.
    Cell {
        /// Of the order.
        serial: u64,
    },
    /// No cell could be cloned.
    NoCell {
        /// Of the order.
        serial: u64,
        /// What the system said.
        message: String,
    },
}

/// A user and a group, as the host numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ids {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// A connected pair of packet sockets.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one packet with descriptors attached.
pub fn send(socket: impl AsFd, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let packet = serde_json::to_vec(message)?;
    if packet.len() > MAX_ORDER_BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(&packet)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one packet; `None` when the other end is gone. Where this process can have no more
/// descriptors, those that came with it are lost, all of them.
pub fn receive<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    receive_into(socket, &mut [0; MAX_PACKET_BYTES])
}

/// The same for orders, which may be larger. Only as much memory is touched as the order takes: what
/// a zygote writes to between two cells it has to copy first, page by page.
pub(crate) fn receive_order(socket: impl AsFd) -> io::Result<Option<(ZygoteOrder, Vec<OwnedFd>)>> {
    receive_large(socket)
}

/// The same for anything of an order's size.
pub(crate) fn receive_large<M: DeserializeOwned>(
    socket: impl AsFd,
) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    let (_, bytes) = recv(&socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::TRUNC)?;
    receive_into(socket, &mut vec![0; bytes.clamp(1, MAX_ORDER_BYTES)])
}

fn receive_into<M: DeserializeOwned>(
    socket: impl AsFd,
    packet: &mut [u8],
) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(packet)];
    let received = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let is_whole = !received.flags.contains(ReturnFlags::TRUNC);
    let bytes = packet.get(..received.bytes).filter(|_| is_whole);
    let message = serde_json::from_slice(bytes.ok_or(io::ErrorKind::InvalidData)?)?;
    if received.flags.contains(ReturnFlags::CTRUNC) {
        // There is room for all that are ever sent: this process may have no more.
        fds.clear();
    }
    Ok(Some((message, fds)))
}
