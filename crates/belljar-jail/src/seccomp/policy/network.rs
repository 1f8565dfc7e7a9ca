//! The calls of cells that can connect to a proxy: TCP over IPv4, as a client.
//!
//! No other family, type or protocol, no listening, no descriptors or addresses in messages
//! (`sendmsg`, `recvmsg`), and no option that attaches a program, opens another way to connect, or
//! makes a queue larger.

use super::{ArgumentTest, IOCTLS, SeccompPolicy, SeccompRule};
use crate::NetworkAccess;

const FAMILIES: &[u32] = &[libc::AF_INET as u32];
const TYPES: &[u32] = &[
    libc::SOCK_STREAM as u32,
    (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u32,
    (libc::SOCK_STREAM | libc::SOCK_NONBLOCK) as u32,
    (libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32,
];
/// Not multipath TCP, for which Landlock has no rule before kernel 6.16.
const PROTOCOLS: &[u32] = &[0, libc::IPPROTO_TCP as u32];

/// The levels of options: of all sockets, and of TCP. A test sees one argument, so each option below
/// is harmless at both levels.
const LEVELS: &[u32] = &[libc::SOL_SOCKET as u32, libc::IPPROTO_TCP as u32];
/// Options to set: `TCP_NODELAY` 1, keep-alive 4, 5, 6 and 9, `TCP_USER_TIMEOUT` 18, timeouts 20 and
/// 21. At the other level they are debugging (which needs a capability), `SO_ERROR` (which cannot be
/// set), routing on `lo`, broadcasts of UDP, `TCP_DEFER_ACCEPT`, `SO_RCVLOWAT`, and parts of
/// `TCP_REPAIR` (which need a capability).
const SET_OPTIONS: &[u32] = &[1, 4, 5, 6, 9, 18, 20, 21];
/// Options to read: those, type, error, the sizes of queues, protocol, family and `TCP_INFO`.
const READ_OPTIONS: &[u32] = &[1, 3, 4, 5, 6, 7, 8, 9, 11, 18, 20, 21, 30, 38, 39];

/// No `MSG_FASTOPEN`, which connects past Landlock's rule, no out-of-band byte, no zero copy.
const SEND: ArgumentTest =
    ArgumentTest::NoneOf(!((libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_MORE) as u32));
/// No out-of-band byte, no queue of errors.
const RECEIVE: ArgumentTest = ArgumentTest::NoneOf(
    !((libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_WAITALL | libc::MSG_NOSIGNAL) as u32),
);

/// The calls of a guest.
const CONNECT: &[(libc::c_long, SeccompRule)] = &[
    (
        libc::SYS_socket,
        SeccompRule::AllowIf(&[
            (0, ArgumentTest::OneOf(FAMILIES)),
            (1, ArgumentTest::OneOf(TYPES)),
            (2, ArgumentTest::OneOf(PROTOCOLS)),
        ]),
    ),
    (libc::SYS_connect, SeccompRule::Allow),
    (libc::SYS_getsockname, SeccompRule::Allow),
    (libc::SYS_getpeername, SeccompRule::Allow),
    (
        libc::SYS_setsockopt,
        SeccompRule::AllowIf(&[
            (1, ArgumentTest::OneOf(LEVELS)),
            (2, ArgumentTest::OneOf(SET_OPTIONS)),
        ]),
    ),
    (
        libc::SYS_getsockopt,
        SeccompRule::AllowIf(&[
            (1, ArgumentTest::OneOf(LEVELS)),
            (2, ArgumentTest::OneOf(READ_OPTIONS)),
        ]),
    ),
    (libc::SYS_sendto, SeccompRule::AllowIf(&[(3, SEND)])),
    (libc::SYS_recvfrom, SeccompRule::AllowIf(&[(3, RECEIVE)])),
];

/// Those of a keeper that makes the listener of its cell. Nothing of it is left once it is confined.
const LISTEN: &[(libc::c_long, SeccompRule)] = &[
    (
        libc::SYS_socket,
        SeccompRule::AllowIf(&[
            (0, ArgumentTest::OneOf(&[libc::AF_INET as u32, libc::AF_NETLINK as u32])),
            (1, ArgumentTest::OneOf(TYPES_AND_RAW)),
            (
                2,
                ArgumentTest::OneOf(&[0, libc::IPPROTO_TCP as u32, libc::NETLINK_SOCK_DIAG as u32]),
            ),
        ]),
    ),
    (libc::SYS_bind, SeccompRule::Allow),
    (libc::SYS_listen, SeccompRule::Allow),
    // A zygote takes orders from the host with flags that its guests may not use.
    (libc::SYS_sendto, SeccompRule::Allow),
    (libc::SYS_recvfrom, SeccompRule::Allow),
    (libc::SYS_ioctl, SeccompRule::AllowIf(&[(1, ArgumentTest::OneOf(IOCTLS_AND_FLAGS))])),
];

/// The types of guests, and that of the socket that lists sockets.
const TYPES_AND_RAW: &[u32] = &[
    libc::SOCK_STREAM as u32,
    (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u32,
    (libc::SOCK_STREAM | libc::SOCK_NONBLOCK) as u32,
    (libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32,
    (libc::SOCK_RAW | libc::SOCK_CLOEXEC) as u32,
];

/// The ioctls of guests on descriptors, and those that bring up an interface.
const IOCTLS_AND_FLAGS: &[u32] = &{
    let mut all = [libc::SIOCSIFFLAGS as u32; IOCTLS.len() + 1];
    let (head, _) = all.split_at_mut(IOCTLS.len());
    head.copy_from_slice(IOCTLS);
    all
};

impl SeccompPolicy {
    /// The same for guests with this network.
    #[must_use]
    pub fn connecting(mut self, network: NetworkAccess) -> Self {
        match network {
            NetworkAccess::None => {}
            NetworkAccess::Proxy => self.guard(CONNECT),
        }
        self
    }

    /// The same for a zygote whose cells have this network.
    #[must_use]
    pub fn listening(self, network: NetworkAccess) -> Self {
        let mut policy = self.connecting(network);
        match network {
            NetworkAccess::None => {}
            NetworkAccess::Proxy => policy.guard(LISTEN),
        }
        policy
    }
}
