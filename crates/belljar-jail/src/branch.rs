//! Branching, and moving to another tree of files: the work of a session's guest between runs, when
//! its host orders it.
//!
//! All of this happens in a process that belongs to guest code. It keeps the branches of an honest
//! guest apart from the start. A hostile guest is bounded by what it is given: neither branch gets
//! a new tree before the copy exists and the old tree is frozen.

use std::{
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg},
    process::{chdir, chroot, fchdir, getcwd, setsid},
};

use crate::{
    Guests,
    cell::{close_all_but, own_standard_streams},
    sys::process::{
        assert_single_threaded, clone_beside, exit_now, has_children, is_open, put_in_place,
    },
};

/// The directories a branch tries when its old one is missing from its new tree.
const FALLBACK: [&str; 2] = ["/work", "/"];

/// Makes branches of the calling process. Only the guest of a session's cell has one.
#[derive(Debug, Clone, Copy)]
pub struct Brancher {
    guests: Guests,
}

/// Which of the two processes this is, after branching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchSide {
    /// The process that was ordered to branch. It stays in its frozen tree until it gets a new one.
    Parent,
    /// The copy: in a tree of its own, with its own socket under the number of the parent's.
    Child,
}

/// The points of branching at which an engine may have something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchStep {
    /// Before the process is cloned.
    Before,
    /// After the clone, in the process that was cloned.
    InParent,
    /// After the clone has failed: there is still one process.
    Failed,
    /// In the copy, once it has its own socket and tree.
    InChild,
}

impl Brancher {
    pub(crate) fn new(guests: Guests) -> Self {
        Self { guests }
    }

    /// Takes the byte that follows [`Command::Branch`] off the socket, and clones the process.
    ///
    /// An error means that there is still only one process; the caller reports it to the host. The
    /// copy greets the host on the socket that came with the byte, and waits there for its tree. It
    /// keeps that socket and standard streams of its own; every other descriptor is closed, or
    /// replaced by one that does nothing.
    ///
    /// [`Command::Branch`]: https://docs.rs/belljar-wire
    pub fn branch(
        self,
        socket: impl AsFd,
        mut around: impl FnMut(BranchStep),
    ) -> io::Result<BranchSide> {
        let socket = socket.as_fd();
        let own = take_one(socket)?.ok_or(io::ErrorKind::InvalidData)?;
        self.refuse_company()?;
        around(BranchStep::Before);
        let cloned = clone_beside();
        match cloned {
            Ok(BranchSide::Child) => {}
            Ok(BranchSide::Parent) => {
                // Only the copy may hold it: the stream must end when the copy does.
                drop(own);
                around(BranchStep::InParent);
                return cloned;
            }
            Err(_) => {
                around(BranchStep::Failed);
                return cloned;
            }
        }
        if self.be_apart(socket, own).is_err() {
            // The end of its socket informs the host, unless the host did not need the copy.
            exit_now(1);
        }
        around(BranchStep::InChild);
        Ok(BranchSide::Child)
    }

    /// Takes the byte that follows [`Command::Reroot`] off the socket, and moves to the tree that
    /// comes with it; stays where it is if none does.
    ///
    /// [`Command::Reroot`]: https://docs.rs/belljar-wire
    pub fn reroot(self, socket: impl AsFd) -> io::Result<()> {
        take_one(socket.as_fd())?.map_or(Ok(()), |tree| enter_tree(&tree))
    }

    /// A copy has one thread and no children, so a guest that has more cannot be copied faithfully.
    fn refuse_company(self) -> io::Result<()> {
        if self.guests == Guests::Script {
            return Ok(());
        }
        assert_single_threaded().map_err(|error| {
            io::Error::other(format!("{error} are running; end all but one before branching"))
        })?;
        if has_children()? {
            return Err(io::Error::other(
                "a child process is running; wait for it to end before branching",
            ));
        }
        Ok(())
    }

    /// Separates the copy from its parent: socket, session, tree and descriptors of its own.
    fn be_apart(self, socket: BorrowedFd<'_>, own: OwnedFd) -> io::Result<()> {
        put_in_place(&own, socket.as_raw_fd())?;
        drop(own);
        // The kernel gives the host the sender of this byte: so it knows the copy.
        rustix::io::write(socket, &[0])?;
        setsid()?;
        let others = match self.guests {
            Guests::Script => Vec::new(),
            Guests::Programs => others_than(socket.as_raw_fd())?,
        };
        let tree = take_one(socket)?.ok_or(io::ErrorKind::InvalidData)?;
        enter_tree(&tree)?;
        drop(tree);
        // The standard streams are one pipe, which its guests could open for writing as well.
        match self.guests {
            Guests::Script => {
                kill_descriptors(&[0, 1, 2])?;
                close_all_but(vec![socket.as_raw_fd()])
            }
            Guests::Programs => {
                own_standard_streams()?;
                kill_descriptors(&others)
            }
        }
    }
}

/// Makes a tree the root of the calling process, which stays in the directory of the same path if
/// there is one.
pub(crate) fn enter_tree(tree: &OwnedFd) -> io::Result<()> {
    let here = getcwd(Vec::new()).ok().filter(|here| here.as_bytes().starts_with(b"/"));
    fchdir(tree)?;
    chroot(".")?;
    if here.is_some_and(|here| chdir(here).is_ok()) {
        return Ok(());
    }
    let [first, second] = FALLBACK;
    Ok(chdir(first).or_else(|_| chdir(second))?)
}

/// All descriptors but a socket and the standard streams.
fn others_than(socket: RawFd) -> io::Result<Vec<RawFd>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    // The descriptor of the listing itself is closed by now.
    numbers.retain(|number| ![0, 1, 2, socket].contains(number) && is_open(*number));
    Ok(numbers)
}

/// Replaces these by a descriptor that can do nothing. The program's use of them fails, and closing
/// one closes nothing else.
fn kill_descriptors(numbers: &[RawFd]) -> io::Result<()> {
    let dead = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    numbers.iter().try_for_each(|number| put_in_place(&dead, *number))
}

/// The descriptor that comes with the one byte that is next on a socket, if one does.
fn take_one(socket: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut byte)];
        match recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    let is_whole = received.bytes == 1 && !received.flags.contains(ReturnFlags::CTRUNC);
    if !is_whole || descriptors.len() > 1 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(descriptors.pop())
}
