//! The cell's one connection to the host.

use std::{io, os::unix::net::UnixStream, sync::Arc, time::Duration};

use belljar_jail::{BranchSide, Brancher};
use belljar_wire::{Caps, Command, Event, ReadError, read_message, write_message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The host checks sizes before it sends; this only stops a frame that cannot be meant.
const COMMAND_CAPS: Caps = Caps { body_bytes: 1 << 30, text_bytes: 0 };

/// Frames to and from the host, over the one socket a cell has.
///
/// Clones share the socket: an engine keeps one for its natives without a descriptor of its own.
#[derive(Debug, Clone)]
pub struct HostLink {
    socket: Arc<UnixStream>,
}

impl HostLink {
    /// Sends and receives frames over this socket.
    pub fn new(socket: UnixStream) -> Self {
        Self { socket: Arc::new(socket) }
    }

    /// Sends one event; returns when the kernel has it.
    pub fn send(&self, event: &Event) -> io::Result<()> {
        write_message(&mut &*self.socket, event)
    }

    /// Whether something arrives within this time.
    pub(crate) fn has_input_within(&self, time: Duration) -> bool {
        let mut ready = [PollFd::new(&*self.socket, PollFlags::IN)];
        let time = Timespec::try_from(time).ok();
        // A failure is no reason to wait: the next receive reports it.
        poll(&mut ready, time.as_ref()).map_or(true, |ready| ready > 0)
    }

    /// Branches, after the host's order. In the copy this link and all its clones use the copy's
    /// own socket.
    pub(crate) fn branch(&self, brancher: Brancher) -> io::Result<BranchSide> {
        brancher.branch(&*self.socket, |_| {})
    }

    /// Moves to another tree of files, after the host's order.
    pub(crate) fn reroot(&self, brancher: Brancher) -> io::Result<()> {
        brancher.reroot(&*self.socket)
    }

    /// Waits for the next command. Not a byte more is read: the next may have descriptors with it.
    pub fn receive(&self) -> Result<Command, ReadError> {
        read_message(&mut &*self.socket, COMMAND_CAPS)
    }
}
