//! The sockets of a cell, as the kernel lists them, and the memory of their queues.
//!
//! Unread data of a cell's sockets, received or sent, is in the kernel. Neither rlimits nor
//! the sizes of processes count it. A netlink socket that was made in the network namespace of a cell
//! lists the sockets there, whoever holds it.

use std::{io, os::fd::OwnedFd};

use rustix::net::{RecvFlags, SendFlags, recv, send};

/// `SOCK_DIAG_BY_FAMILY`: a request for sockets, and each of them in the answer.
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
const AF_INET: u8 = 2;
const IPPROTO_TCP: u8 = 6;
/// The attribute with the memory of a socket, and its bit in a request.
const INET_DIAG_SKMEMINFO: u16 = 7;
const WITH_MEMORY: u8 = 1 << (INET_DIAG_SKMEMINFO - 1);
/// All but those that have ended and wait: they have no queues, and there can be many.
const STATES: u32 = !(1 << 6);
/// `struct nlmsghdr`, `struct inet_diag_req_v2`, `struct inet_diag_msg`.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = 56;
const SOCKET_BYTES: usize = 72;
/// The numbers that count: received, set aside, queued to be sent, in the backlog.
const COUNTED: [usize; 4] = [0, 4, 5, 7];
/// The kernel fills at most so much at a time.
const BUFFER_BYTES: usize = 32 * 1024;

/// A socket that lists the sockets of a cell.
#[derive(Debug)]
pub(crate) struct SocketList(OwnedFd);

impl SocketList {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// The memory of all TCP sockets in the cell's namespace, those of the host included.
    ///
    /// # Errors
    /// The kernel cannot list them (`CONFIG_INET_DIAG`).
    pub(crate) fn memory_bytes(&self) -> io::Result<u64> {
        send(&self.0, &request(), SendFlags::empty())?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut bytes = 0;
        loop {
            // The kernel has the answer ready when the request is sent.
            let (length, _) = recv(&self.0, &mut buffer[..], RecvFlags::DONTWAIT)?;
            let answer = buffer.get(..length).unwrap_or_default();
            match memory_in(answer)? {
                ListedMemory::More(more) => bytes += more,
                ListedMemory::Last(last) => return Ok(bytes + last),
            }
        }
    }
}

/// The memory that a part of the answer adds.
#[derive(Debug, PartialEq, Eq)]
enum ListedMemory {
    More(u64),
    Last(u64),
}

fn request() -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + REQUEST_BYTES).unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + REQUEST_BYTES);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    // Sequence number and port.
    bytes.extend([0; 8]);
    bytes.extend([AF_INET, IPPROTO_TCP, WITH_MEMORY, 0]);
    bytes.extend(STATES.to_ne_bytes());
    // No address and no port in particular.
    bytes.resize(HEADER_BYTES + REQUEST_BYTES, 0);
    bytes
}

fn memory_in(mut answer: &[u8]) -> io::Result<ListedMemory> {
    let mut bytes = 0;
    while let Some((length, kind)) = u32_at(answer, 0).zip(u16_at(answer, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX).max(HEADER_BYTES);
        let body = answer.get(HEADER_BYTES..length).ok_or(io::ErrorKind::InvalidData)?;
        match kind {
            DONE => return Ok(ListedMemory::Last(bytes)),
            ERROR => {
                let errno = u32_at(body, 0).map_or(0, |errno| errno.cast_signed().wrapping_neg());
                return Err(io::Error::from_raw_os_error(errno));
            }
            _ => bytes += memory_of(body.get(SOCKET_BYTES..).unwrap_or_default()),
        }
        answer = answer.get(aligned(length)..).unwrap_or_default();
    }
    Ok(ListedMemory::More(bytes))
}

/// The memory of one socket, from its attributes.
fn memory_of(mut attributes: &[u8]) -> u64 {
    while let Some((length, kind)) = u16_at(attributes, 0).zip(u16_at(attributes, 2)) {
        let length = usize::from(length).max(4);
        if kind == INET_DIAG_SKMEMINFO {
            let numbers = attributes.get(4..length).unwrap_or_default();
            return COUNTED.iter().filter_map(|at| u32_at(numbers, 4 * at)).map(u64::from).sum();
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    0
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests;
