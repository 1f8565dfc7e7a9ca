//! The list of this process's own sockets.

use std::{
    io::Write as _,
    net::{TcpListener, TcpStream},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink::SOCK_DIAG, socket_with};

use super::*;

/// The list of this process's own namespace.
pub(crate) fn list() -> SocketList {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    SocketList::new(socket_with(family, SocketType::RAW, flags, Some(SOCK_DIAG)).unwrap())
}

#[test]
fn n5_what_nobody_reads_is_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (receiver, _) = listener.accept().unwrap();
    sender.set_nonblocking(true).unwrap();
    let mut sent = 0;
    while let Ok(bytes) = sender.write(&[0; 65536]) {
        sent += bytes as u64;
    }
    assert!(sent > 65536);
    // Other processes have sockets here, too.
    assert!(list().memory_bytes().unwrap() >= sent, "{sent}");
    drop(receiver);
}

#[test]
fn an_answer_that_is_cut_off_is_an_error_and_not_a_panic() {
    let whole = request();
    assert_eq!(memory_in(&whole).unwrap(), ListedMemory::More(0));
    for length in 6..whole.len() {
        memory_in(&whole[..length]).unwrap_err();
    }
    let refusal = [20_u32.to_ne_bytes(), [2, 0, 0, 0], [0; 4], [0; 4], (-1_i32).to_ne_bytes()];
    let error = memory_in(&refusal.concat()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(1));
}
