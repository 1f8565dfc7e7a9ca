//! Network interfaces.
#![expect(unsafe_code, reason = "the flags of an interface have no safe wrapper")]

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

const LOOPBACK: &[u8] = b"lo";

/// Brings up the loopback interface of the network namespace in which this socket was made.
pub(crate) fn bring_up_loopback(socket: impl AsFd) -> io::Result<()> {
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(LOOPBACK) {
        *to = from.cast_signed();
    }
    let flags = libc::c_short::try_from(libc::IFF_UP).map_err(io::Error::other)?;
    let request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags },
    };
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: this request reads an `ifreq`, which `request` is: its name ends with a zero, because
    // "lo" is shorter than the array, and its union holds the flags. It outlives the call.
    let status = unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
