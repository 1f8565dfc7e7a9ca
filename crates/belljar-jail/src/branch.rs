//! Becoming two, and going on in another tree of files: what the guest of a session does between
//! runs, when its host says so.
//!
//! All of this happens in a process that belongs to guest code. It keeps an honest guest's branches
//! apart from the first moment; what a hostile one may do instead is bounded by what it is given: no
//! new tree, for either of the two, before there is the copy and the old tree is frozen.

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

/// Where a branch goes on if it cannot do so where it was.
const FALLBACK: [&str; 2] = ["/work", "/"];

/// The power to branch, which the guest of a session's cell has.
#[derive(Debug, Clone, Copy)]
pub struct Brancher {
    guests: Guests,
}

/// Which of the two this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchSide {
    /// The one that was told to branch. It stays in its tree, frozen as that is, until it is told
    /// where to go on.
    Parent,
    /// The copy: in a tree of its own, with a socket of its own in the place of the other one.
    Child,
}

/// When an engine has something to do about being copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchStep {
    /// Just before.
    Before,
    /// Just after, in the one that was copied.
    InParent,
    /// Just after, if there is no copy after all.
    Failed,
    /// In the copy, once it is apart.
    InChild,
}

impl Brancher {
    pub(crate) fn new(guests: Guests) -> Self {
        Self { guests }
    }

    /// Takes the byte that follows [`Command::Branch`] off the socket, and becomes two.
    ///
    /// An error means that there is still only one; the host has to be told. The copy greets the host
    /// on the socket that came with the byte, and waits there for its tree. Of its descriptors only
    /// that socket is left, beside standard streams of its own, and those of programs that had others
    /// find them dead rather than somebody else's.
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
                // It is the copy's alone, whose end is the end of the stream.
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
            // The end of its socket tells the host, unless that had no use for the copy.
            exit_now(1);
        }
        around(BranchStep::InChild);
        Ok(BranchSide::Child)
    }

    /// Takes the byte that follows [`Command::Reroot`] off the socket, and goes on in the tree that
    /// comes with it; where it is if none does.
    ///
    /// [`Command::Reroot`]: https://docs.rs/belljar-wire
    pub fn reroot(self, socket: impl AsFd) -> io::Result<()> {
        take_one(socket.as_fd())?.map_or(Ok(()), |tree| enter_tree(&tree))
    }

    /// A copy has one thread and no children: whoever has more could not go on as what it was.
    fn refuse_company(self) -> io::Result<()> {
        if self.guests == Guests::Script {
            return Ok(());
        }
        assert_single_threaded().map_err(|error| {
            io::Error::other(format!("{error} are running: end all but one first"))
        })?;
        if has_children()? {
            return Err(io::Error::other("a child process is running: wait for its end first"));
        }
        Ok(())
    }

    /// In the copy.
    fn be_apart(self, socket: BorrowedFd<'_>, own: OwnedFd) -> io::Result<()> {
        put_in_place(&own, socket.as_raw_fd())?;
        drop(own);
        // The host takes this process for the copy by who has sent that.
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

/// Makes a tree the root of the calling process, which goes on in the same directory of it if there
/// is one.
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
    // That of the listing was among them.
    numbers.retain(|number| ![0, 1, 2, socket].contains(number) && is_open(*number));
    Ok(numbers)
}

/// Puts a descriptor that can do nothing in the place of these. What the program thinks to have there
/// fails as it should, and closing it closes nothing else.
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
