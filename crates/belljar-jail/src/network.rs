//! The network of a cell that may reach hosts: `lo`, and one listener that the host holds.
//!
//! A socket belongs to the network namespace in which it was made, whoever holds its descriptor. The
//! keeper makes the listener before anything is locked down, sends it to the host, and closes it.
//! Nothing in the namespace leads anywhere else.
//!
//! A second socket goes the same way: one on which the host asks the kernel for the sockets of the cell,
//! and for the memory of their queues, which no limit of a process counts.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsFd, OwnedFd},
};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, listen, netlink::SOCK_DIAG, socket_with,
};

use crate::{KeeperReport, control, sys::interface};

/// The port of the proxy, in the network namespace of each cell that has one.
pub const PROXY_PORT: u16 = 3128;

/// Connections that wait for the host to accept them. Their queues are memory that no limit counts.
const BACKLOG: i32 = 8;

/// Makes the listener of a cell and the socket that lists its sockets, and sends both to the host.
pub(crate) fn hand_over_listener(keeper: impl AsFd) -> io::Result<()> {
    let (listener, list) = (listener()?, list()?);
    control::send(keeper, &KeeperReport::Listener, &[listener.as_fd(), list.as_fd()])
}

fn list() -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    Ok(socket_with(family, SocketType::RAW, flags, Some(SOCK_DIAG))?)
}

fn listener() -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let listener = socket_with(family, SocketType::STREAM, flags, None)?;
    interface::bring_up_loopback(&listener)?;
    bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    listen(&listener, BACKLOG)?;
    Ok(listener)
}
