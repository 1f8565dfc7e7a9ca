//! Resolves a name that a rule has allowed, checks every address, and connects to one of those checked.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
};

use tokio::net::{TcpSocket, TcpStream};

use crate::{
    forbidden_ports::ForbiddenPorts, host::RemoteHost, policy::NetRefusal, resolver::Resolver,
    rules::NetRule,
};

/// More addresses of a name are not tried.
const MAX_ADDRESSES: usize = 8;
/// The queue of a socket to a server, each way; the kernel takes twice as much memory for it. Without a number,
/// it would enlarge them up to `tcp_rmem` and `tcp_wmem`, for as long as nobody reads. These sockets are not in
/// the namespace of the cell, where the queues are counted. A kernel allows so much to every program.
const QUEUE_BYTES: u32 = 208 * 1024;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectFailure {
    Refused(NetRefusal),
    Io(io::Error),
}

/// Connects to a host that a rule has allowed. If one of its addresses is refused, all are: an answer
/// that mixes them is not one that the operator meant. The caller bounds the time.
pub(crate) async fn connect(
    resolver: &dyn Resolver,
    ports: &dyn ForbiddenPorts,
    rule: &NetRule,
    host: &RemoteHost,
    port: u16,
) -> Result<(TcpStream, SocketAddr), ConnectFailure> {
    let addresses = match host {
        RemoteHost::Address(address) => vec![*address],
        RemoteHost::Name(name) => resolver.resolve(name).await.map_err(ConnectFailure::Io)?,
    };
    let addresses: Vec<_> = addresses.iter().map(|it| SocketAddr::new(*it, port)).collect();
    for address in &addresses {
        check_address(ports, rule, *address).await.map_err(ConnectFailure::Refused)?;
    }
    connect_to_any(&addresses).await.map_err(ConnectFailure::Io)
}

/// Checks an address that an allowed host leads to.
pub(crate) async fn check_address(
    ports: &dyn ForbiddenPorts,
    rule: &NetRule,
    address: SocketAddr,
) -> Result<(), NetRefusal> {
    let port = address.port();
    match check_rule(rule, address.ip())? {
        AddressOwner::ThisMachine if ports.is_forbidden(port).await => {
            Err(NetRefusal::OwnPort { port })
        }
        AddressOwner::ThisMachine | AddressOwner::Another => Ok(()),
    }
}

/// Whose address it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressOwner {
    ThisMachine,
    Another,
}

/// Checks an address without its port, as is enough for a connection that is there already.
pub(crate) fn check_rule(rule: &NetRule, address: IpAddr) -> Result<AddressOwner, NetRefusal> {
    rule.check_address(address)?;
    match is_own(address) {
        false => Ok(AddressOwner::Another),
        true if rule.includes_own_addresses() => Ok(AddressOwner::ThisMachine),
        true => Err(NetRefusal::OwnAddress { address }),
    }
}

/// Whether an address is one of this machine: only to such an address can a socket be bound.
fn is_own(address: IpAddr) -> bool {
    match UdpSocket::bind((address, 0)) {
        Err(error) => error.kind() != io::ErrorKind::AddrNotAvailable,
        Ok(_) => true,
    }
}

async fn connect_to_any(addresses: &[SocketAddr]) -> io::Result<(TcpStream, SocketAddr)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses.iter().take(MAX_ADDRESSES) {
        match connect_to(*address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok((stream, *address));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Before there is a connection: the window is agreed upon with it.
    socket.set_recv_buffer_size(QUEUE_BYTES)?;
    socket.set_send_buffer_size(QUEUE_BYTES)?;
    socket.connect(address).await
}

#[cfg(test)]
mod tests;
