//! The messages between host and zygote: one packet each, with descriptors attached.
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

/// No reply or report is larger.
const MAX_PACKET_BYTES: usize = 8192;
/// No order is larger: it may have a whole plan in it, or the paths of many grants.
const MAX_ORDER_BYTES: usize = 64 * 1024;
/// The most trees a cell can be granted, and more than the descriptors a cell comes with.
pub const MAX_DESCRIPTORS: usize = 16;

/// An order of the host to a zygote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ZygoteOrder {
    /// The first order: how the zygote is to be confined. If its cells have a network, the
    /// certificates that they trust may be attached, as a file.
    Confine(ZygotePlan),
    /// The only order of a process that is not to be confined: detach trees for a cell, and end.
    Detach {
        /// In the order in which they are attached to the reply.
        trees: Vec<GrantedTree>,
        /// The user and group that the owner of the trees appears as in the cell.
        cells: Ids,
    },
    /// Clone a cell. The trees it is granted are attached.
    MakeCell {
        /// Chosen by the host; comes back with the reply.
        serial: u64,
        /// How much it may use.
        limits: CellLimits,
        /// The trees and commands it may reach.
        #[serde(default, skip_serializing_if = "CellGrants::is_empty")]
        grants: CellGrants,
        /// Whether it is for one run or for a session.
        #[serde(default)]
        kind: CellKind,
    },
}

/// The answer of a zygote to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ZygoteReply {
    /// The zygote is confined and warm, and can clone cells.
    Ready {
        /// The user and group its cells run as, as the host numbers them.
        ids: Ids,
    },
    /// The trees are attached.
    Trees,
    /// A tree could not be detached.
    NoTree {
        /// The path of the tree on the host.
        path: PathBuf,
        /// The error of the operating system.
        message: String,
    },
    /// A layer could not be put in force; the zygote ends.
    Refused {
        /// The layer that failed.
        mechanism: Mechanism,
        /// The error of the operating system.
        message: String,
    },
    /// The engine could not be warmed; the zygote ends.
    NotWarm {
        /// The failure, for the operator.
        message: String,
    },
    /// A cell is under way: its socket, its keeper's socket and its pidfd are attached.
    Cell {
        /// The serial of the order.
        serial: u64,
    },
    /// No cell could be cloned.
    NoCell {
        /// The serial of the order.
        serial: u64,
        /// The error of the operating system.
        message: String,
    },
}

/// A user and a group, as the host numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ids {
    /// The user id, outside of all namespaces.
    pub uid: u32,
    /// The group id, outside of all namespaces.
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

/// Receives one packet; `None` when the other end is gone. If this process has too many descriptors
/// open already, all those that came with the packet are lost.
pub fn receive<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    receive_into(socket, &mut [0; MAX_PACKET_BYTES])
}

/// Receives one order, which may be larger. It touches only as much memory as the order takes: a
/// zygote copies each page that it writes to between two cells.
pub(crate) fn receive_order(socket: impl AsFd) -> io::Result<Option<(ZygoteOrder, Vec<OwnedFd>)>> {
    receive_large(socket)
}

/// Receives any message of an order's size.
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
        // There is room for all that are ever sent: this process has too many open.
        fds.clear();
    }
    Ok(Some((message, fds)))
}
