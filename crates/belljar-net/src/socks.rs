//! SOCKS5 with remote names (RFC 1928): connections only, no authentication, no UDP.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{
    connection::{OpenFailure, ProxyConnection, TunnelAdmission},
    host::{RemoteHost, RemoteHostError},
    terminate, tunnel,
};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The answers to a request.
#[derive(Debug, Clone, Copy)]
enum SocksReply {
    Connected = 0,
    NotAllowed = 2,
    Unreachable = 4,
    NoSuchCommand = 7,
    NoSuchAddressType = 8,
}

/// Serves one connection whose first byte says SOCKS5.
pub(crate) async fn serve(mut guest: TcpStream, connection: Arc<ProxyConnection>) {
    let opened = timeout(connection.limits().head, read_request(&mut guest)).await;
    let Ok(Some(request)) = opened else { return };
    let (admitted, port) = match request {
        SocksRequest::Other(reply) => {
            let _ = answer(&mut guest, reply).await;
            return;
        }
        SocksRequest::Connect { host, port } => (open(&connection, &host, port).await, port),
    };
    match admitted {
        Ok(admission) => {
            if answer(&mut guest, SocksReply::Connected).await.is_none() {
                return;
            }
            match admission {
                TunnelAdmission::Whole(opened) => tunnel::run(&connection, guest, *opened).await,
                TunnelAdmission::Requests(host) => {
                    terminate::run(connection, guest, host, port).await
                }
            }
        }
        Err(failure) => {
            let reply = match failure {
                OpenFailure::Refused(..) => SocksReply::NotAllowed,
                OpenFailure::Failed(..) => SocksReply::Unreachable,
            };
            let _ = answer(&mut guest, reply).await;
        }
    }
}

/// A request of a guest.
enum SocksRequest {
    Connect {
        host: SocksHost,
        port: u16,
    },
    /// Something that is not offered.
    Other(SocksReply),
}

/// A host as SOCKS names it.
enum SocksHost {
    Address(RemoteHost),
    Name(Vec<u8>),
}

async fn open(
    connection: &ProxyConnection,
    host: &SocksHost,
    port: u16,
) -> Result<TunnelAdmission, OpenFailure> {
    match host {
        SocksHost::Address(host) => connection.admit_host(host.clone(), port, |_| Ok(())).await,
        SocksHost::Name(name) => match std::str::from_utf8(name) {
            Ok(name) => connection.admit(name, port, |_| Ok(())).await,
            Err(_) => Err(connection.refuse_malformed(name, port, RemoteHostError::NotAName).await),
        },
    }
}

/// Reads greeting and request; `None` if the guest does not speak SOCKS5.
async fn read_request(guest: &mut TcpStream) -> Option<SocksRequest> {
    let [version, methods] = read(guest).await?;
    if version != VERSION {
        return None;
    }
    let offered = read_vec(guest, methods).await?;
    let method = match offered.contains(&NO_AUTHENTICATION) {
        true => NO_AUTHENTICATION,
        false => NO_METHOD,
    };
    guest.write_all(&[VERSION, method]).await.ok()?;
    if method == NO_METHOD {
        return None;
    }
    let [version, command, _, kind] = read(guest).await?;
    if version != VERSION {
        return None;
    }
    let host = match kind {
        IPV4 => {
            SocksHost::Address(RemoteHost::Address(Ipv4Addr::from(read::<4>(guest).await?).into()))
        }
        IPV6 => {
            SocksHost::Address(RemoteHost::Address(Ipv6Addr::from(read::<16>(guest).await?).into()))
        }
        NAME => {
            let [length] = read(guest).await?;
            SocksHost::Name(read_vec(guest, length).await?)
        }
        _ => return Some(SocksRequest::Other(SocksReply::NoSuchAddressType)),
    };
    let port = u16::from_be_bytes(read(guest).await?);
    Some(match command {
        CONNECT => SocksRequest::Connect { host, port },
        _ => SocksRequest::Other(SocksReply::NoSuchCommand),
    })
}

async fn read<const N: usize>(guest: &mut TcpStream) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    guest.read_exact(&mut bytes).await.ok()?;
    Some(bytes)
}

async fn read_vec(guest: &mut TcpStream, length: u8) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length.into()];
    guest.read_exact(&mut bytes).await.ok()?;
    Some(bytes)
}

/// Answers a request. The address in it is always zero: the guest has no use for the real one.
async fn answer(guest: &mut TcpStream, reply: SocksReply) -> Option<()> {
    guest.write_all(&[VERSION, reply as u8, 0, IPV4, 0, 0, 0, 0, 0, 0]).await.ok()
}
