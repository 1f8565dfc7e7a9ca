//! The sockets that listen on a port in this network namespace.

use std::{fs, io};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SOCK_DIAG, recv, send,
    socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`: a request for sockets, and each of them in the answer.
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// `1 << TCP_LISTEN`: the kernel then looks through the listeners only. Its table of connections, which is
/// large and empty on most machines, costs milliseconds.
const STATES: u32 = 1 << 10;
/// `struct nlmsghdr`, `struct inet_diag_req_v2`.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = 56;
/// The port and the inode in `struct inet_diag_msg`.
const PORT: usize = 4;
const INODE: usize = 68;
/// The kernel fills at most so much at a time.
const BUFFER_BYTES: usize = 32 * 1024;
/// The state of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// The inodes of the sockets that listen on a port; the kernel is asked for them.
///
/// # Errors
/// The kernel cannot list them.
pub(super) fn asked(port: u16) -> io::Result<Vec<u32>> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG))?;
    let (mut found, mut buffer) = (Vec::new(), vec![0; BUFFER_BYTES]);
    for family in [AF_INET, AF_INET6] {
        send(&socket, &request(family), SendFlags::empty())?;
        loop {
            // The kernel has the answer ready when the request is sent.
            let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
            let answer = buffer.get(..length).unwrap_or_default();
            if collect(answer, port, &mut found)? == IsLast(true) {
                break;
            }
        }
    }
    Ok(found)
}

/// Whether a part of an answer is the last one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IsLast(pub(super) bool);

fn request(family: u8) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + REQUEST_BYTES).unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + REQUEST_BYTES);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    // Sequence number and port.
    bytes.extend([0; 8]);
    bytes.extend([family, IPPROTO_TCP, 0, 0]);
    bytes.extend(STATES.to_ne_bytes());
    // No address in particular; a dump has all ports in any case.
    bytes.resize(HEADER_BYTES + REQUEST_BYTES, 0);
    bytes
}

/// Adds the inodes of those that listen on a port.
pub(super) fn collect(mut answer: &[u8], port: u16, found: &mut Vec<u32>) -> io::Result<IsLast> {
    while let Some((length, kind)) = u32_at(answer, 0).zip(u16_at(answer, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX).max(HEADER_BYTES);
        let body = answer.get(HEADER_BYTES..length).ok_or(io::ErrorKind::InvalidData)?;
        match kind {
            DONE => return Ok(IsLast(true)),
            ERROR => {
                let errno = u32_at(body, 0).map_or(0, |errno| errno.cast_signed().wrapping_neg());
                return Err(io::Error::from_raw_os_error(errno));
            }
            _ if u16_at(body, PORT).map(u16::from_be) == Some(port) => {
                found.extend(u32_at(body, INODE))
            }
            _ => {}
        }
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(IsLast(false))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The same from the tables of all sockets.
///
/// # Errors
/// There is no such table.
pub(super) fn read(port: u16) -> io::Result<Vec<u32>> {
    let ipv4 = fs::read_to_string("/proc/self/net/tcp")?;
    // A kernel may have no IPv6.
    let ipv6 = fs::read_to_string("/proc/self/net/tcp6").unwrap_or_default();
    let lines = ipv4.lines().chain(ipv6.lines());
    Ok(lines.filter_map(|line| listening_socket(line, port)).collect())
}

/// The socket of a line, if it listens on a port. Columns: number, local address, remote address, state,
/// queues, timer, retransmissions, user, timeout, inode.
pub(super) fn listening_socket(line: &str, port: u16) -> Option<u32> {
    let mut columns = line.split_ascii_whitespace();
    let (_, local) = columns.nth(1)?.rsplit_once(':')?;
    let is_port = u16::from_str_radix(local, 16) == Ok(port);
    let is_listening = columns.nth(1)? == LISTENING;
    let inode = columns.nth(5)?.parse().ok()?;
    (is_port && is_listening).then_some(inode)
}
