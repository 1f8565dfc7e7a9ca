//! What host and zygote say to each other, one packet each, descriptors attached.
//!
//! The zygote runs no guest code, so this is plumbing between trusted ends; packets are small and
//! decoded strictly all the same.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{CellLimits, Mechanism, ZygotePlan};

/// No packet is larger.
const MAX_PACKET_BYTES: usize = 4096;
/// A cell comes with its socket, its keeper's socket and its pidfd.
const MAX_DESCRIPTORS: usize = 3;

/// Host → zygote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Order {
    /// First of all: how to be confined.
    Confine(ZygotePlan),
    /// Clone a cell.
    MakeCell {
        /// Comes back with the answer.
        serial: u64,
        /// What it may use.
        limits: CellLimits,
    },
}

/// Zygote → host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Answer {
    /// Confined and warm.
    Ready,
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

/// A connected pair of packet sockets.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one packet with descriptors attached.
pub fn send(socket: impl AsFd, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let packet = serde_json::to_vec(message)?;
    if packet.len() > MAX_PACKET_BYTES {
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

/// Receives one packet; `None` when the other end is gone.
pub fn receive<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    let mut packet = [0; MAX_PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut packet)];
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
    let cut = ReturnFlags::TRUNC | ReturnFlags::CTRUNC;
    let bytes = packet.get(..received.bytes).filter(|_| !received.flags.intersects(cut));
    let message = serde_json::from_slice(bytes.ok_or(io::ErrorKind::InvalidData)?)?;
    Ok(Some((message, fds)))
}
