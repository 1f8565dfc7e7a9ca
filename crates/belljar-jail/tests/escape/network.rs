//! Attempts to reach the network, the host's sockets, or any socket at all.

use std::{
    fs, io,
    net::{TcpStream, UdpSocket},
    os::{
        fd::AsRawFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
    },
};

use crate::descriptors::cell_socket;
use crate::harness::{
    attempt::{
        Attempt,
        Setting::{Namespaces, User},
    },
    bait::Bait,
    outcome::{Outcome, own, permitted, reached, refused_by},
    raw::call,
};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("connect_to_loopback", User, |bait| {
        connected(TcpStream::connect(("127.0.0.1", bait.tcp_port)))
    }),
    Attempt::new("datagram_to_loopback", User, |bait| {
        let sent = UdpSocket::bind("127.0.0.1:0");
        permitted(sent.and_then(|socket| socket.send_to(b"x", ("127.0.0.1", bait.udp_port))))
    }),
    Attempt::new("listen", User, |_| permitted(std::net::TcpListener::bind("127.0.0.1:0"))),
    Attempt::new("internet_socket", User, |_| socket(libc::AF_INET, libc::SOCK_STREAM, 0))
        .harmless_with_proxy("it can connect to the proxy only"),
    Attempt::new("internet_6_socket", User, |_| socket(libc::AF_INET6, libc::SOCK_STREAM, 0)),
    Attempt::new("internet_socket_high_bits", User, |_| {
        reached(call!(SYS_socket, 0x1_0000_0000 | libc::AF_INET as u64, libc::SOCK_STREAM, 0))
    })
    .harmless_with_proxy("the kernel reads 32 bits, as the filter does"),
    Attempt::new("multipath_socket", User, |_| {
        socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP)
    }),
    Attempt::new("raw_socket", Namespaces, |_| {
        socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)
    }),
    Attempt::new("packet_socket", Namespaces, |_| socket(libc::AF_PACKET, libc::SOCK_RAW, 3)),
    Attempt::new("netlink_socket", User, |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, 0)),
    Attempt::new("vsock_socket", User, |_| socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)),
    Attempt::new("crypto_socket", User, |_| socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)),
    Attempt::new("xdp_socket", Namespaces, |_| socket(libc::AF_XDP, libc::SOCK_RAW, 0)),
    Attempt::new("connect_to_abstract_socket", User, |bait| {
        let address = SocketAddr::from_abstract_name(&bait.abstract_name);
        connected(address.and_then(|address| UnixStream::connect_addr(&address)))
    }),
    Attempt::new("connect_to_socket_file", User, |bait| {
        connected(UnixStream::connect(&bait.socket_path))
    }),
    Attempt::new("make_socket_file", User, |bait| {
        permitted(UnixListener::bind(bait.scratch("socket")))
    }),
    Attempt::new("datagram_socket", User, |_| permitted(UnixDatagram::unbound())),
    Attempt::new("socket_pair", User, |_| permitted(UnixStream::pair())),
    Attempt::new("reconnect_own_socket", User, |bait| {
        let (fd, _keep) = own_socket();
        let name = [&[1, 0, 0], bait.abstract_name.as_bytes()].concat();
        reached(call!(SYS_connect, fd, &name, name.len()))
    })
    .harmless_with_proxy("a connected stream cannot be connected again"),
    Attempt::new("listen_on_own_socket", User, |_| {
        let (fd, _keep) = own_socket();
        reached(call!(SYS_listen, fd, 1))
    }),
    Attempt::new("accept_on_own_socket", User, |_| {
        let (fd, _keep) = own_socket();
        reached(call!(SYS_accept4, fd, 0, 0, 0))
    }),
    Attempt::new("options_of_own_socket", User, |_| {
        let (fd, _keep) = own_socket();
        let (mut credentials, size) = ([0; 12], 12u32.to_ne_bytes());
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        reached(call!(SYS_getsockopt, fd, level, name, &mut credentials[..], &size[..]))
    }),
    Attempt::new("see_host_connections", User, |bait| {
        sees(&own("net/tcp"), &format!(":{:04X}", bait.tcp_port))
    }),
    Attempt::new("see_host_sockets", User, |bait| sees(&own("net/unix"), &bait.marker)),
];

/// Attempts in cells that have a proxy. Outside, the bait's listener stands in for it.
pub(crate) const WITH_PROXY: &[(&str, &[Attempt])] = &[("proxy", ON_PROXY)];

const ON_PROXY: &[Attempt] = &[
    Attempt::new("connect_to_proxy", User, |bait| connected(TcpStream::connect(proxy(bait))))
        .harmless_with_proxy("the proxy is what the cell has"),
    Attempt::new("connect_by_fast_open", User, |bait| {
        let target = address(proxy(bait).1);
        let send = |fd| call!(SYS_sendto, fd, &b"x"[..], 1, libc::MSG_FASTOPEN, &target[..], 16);
        with_tcp_socket(|fd| reached(send(fd)))
    }),
    Attempt::new("send_descriptors", User, |bait| {
        on_connection(bait, |fd| {
            let header = [0_u8; 56];
            reached(call!(SYS_sendmsg, fd, &header[..], 0))
        })
    }),
    Attempt::new("receive_descriptors", User, |bait| {
        on_connection(bait, |fd| {
            let header = [0_u8; 56];
            reached(call!(SYS_recvmsg, fd, &header[..], libc::MSG_DONTWAIT))
        })
    }),
    Attempt::new("larger_queue", User, |_| {
        with_tcp_socket(|fd| option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF))
    }),
    Attempt::new("larger_send_queue", User, |_| {
        with_tcp_socket(|fd| option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF))
    }),
    Attempt::new("congestion_control", User, |_| {
        with_tcp_socket(|fd| option(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION))
    }),
    Attempt::new("protocol_above", User, |_| {
        with_tcp_socket(|fd| option(fd, libc::IPPROTO_TCP, libc::TCP_ULP))
    }),
    Attempt::new("connect_at_first_send", User, |_| {
        with_tcp_socket(|fd| option(fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT))
    }),
    Attempt::new("bind_client", User, |_| {
        with_tcp_socket(|fd| reached(call!(SYS_bind, fd, &address(0)[..], 16)))
    }),
    Attempt::new("listen_without_bind", User, |_| {
        with_tcp_socket(|fd| reached(call!(SYS_listen, fd, 1)))
    }),
    Attempt::new("accept", User, |_| {
        with_tcp_socket(|fd| reached(call!(SYS_accept4, fd, 0, 0, libc::SOCK_NONBLOCK)))
    }),
    Attempt::new("interface_flags", User, |_| {
        with_tcp_socket(|fd| {
            let mut request = [0_u8; 40];
            request[..2].copy_from_slice(b"lo");
            reached(call!(SYS_ioctl, fd, libc::SIOCGIFFLAGS, &mut request[..]))
        })
    }),
    Attempt::new("stream_of_another_protocol", User, |_| {
        socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP)
    }),
    Attempt::new("datagram_of_internet", User, |_| socket(libc::AF_INET, libc::SOCK_DGRAM, 0)),
];

/// The cell's proxy, or outside the bait's listener.
fn proxy(bait: &Bait) -> (&'static str, u16) {
    let is_cell = cell_socket().is_some();
    ("127.0.0.1", if is_cell { belljar_jail::PROXY_PORT } else { bait.tcp_port })
}

fn address(port: u16) -> [u8; 16] {
    let mut address = [0; 16];
    address[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&port.to_be_bytes());
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    address
}

fn with_tcp_socket(attempt: impl FnOnce(i32) -> Outcome) -> Outcome {
    match call!(SYS_socket, libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) {
        Ok(fd) => attempt(fd as i32),
        Err(errno) => Outcome::inconclusive(format!("no socket: {errno}")),
    }
}

fn on_connection(bait: &Bait, attempt: impl FnOnce(i32) -> Outcome) -> Outcome {
    match TcpStream::connect(proxy(bait)) {
        Ok(stream) => attempt(stream.as_raw_fd()),
        Err(error) => Outcome::inconclusive(format!("no connection: {error}")),
    }
}

/// Sets an option to 1; any answer but a refusal counts as success.
fn option(fd: i32, level: i32, name: i32) -> Outcome {
    reached(call!(SYS_setsockopt, fd, level, name, &1_i32.to_ne_bytes()[..], 4))
}

fn socket(family: i32, kind: i32, protocol: i32) -> Outcome {
    reached(call!(SYS_socket, family, kind, protocol))
}

/// Nobody there is as good as not allowed.
fn connected<T>(result: io::Result<T>) -> Outcome {
    let errno = result.map_err(|error| error.raw_os_error().unwrap_or_default());
    refused_by(
        errno,
        &[libc::EPERM, libc::EACCES, libc::ENOENT, libc::ENETUNREACH, libc::ECONNREFUSED],
    )
}

/// The cell's socket, or outside one end of a pair.
fn own_socket() -> (i32, Option<(UnixStream, UnixStream)>) {
    let pair = cell_socket().is_none().then(|| UnixStream::pair().ok()).flatten();
    let fd = pair.as_ref().map(|(one, _)| one.as_raw_fd()).or_else(cell_socket);
    (fd.unwrap_or(-1), pair)
}

fn sees(table: &str, entry: &str) -> Outcome {
    match fs::read_to_string(table) {
        Ok(text) => Outcome::succeeded_if(text.contains(entry), format!("{} bytes", text.len())),
        Err(error) => crate::harness::outcome::opened::<()>(Err(error)),
    }
}
