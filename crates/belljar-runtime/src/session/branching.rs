//! From one guest to two: the files and the process side by side, then new files for both.
//!
//! Neither of them has its new files before the old ones are frozen and there are two: until then they
//! could have shared them. What fails in between is undone, with the parent on its new files or where
//! it was, or the parent is lost; it never goes on half way.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd},
    sync::Arc,
    time::Duration,
};

use belljar_contract::{ErrorCode, RunError};
use belljar_jail::{session::branch_sockets, strays::end_with_all_beneath};
use belljar_wire::{Caps, Command, Event, ReadError};
use tokio::{
    io::{Interest, unix::AsyncFd},
    runtime::Handle,
    task::spawn_blocking,
    time::timeout,
};

use super::{
    branch::{Branch, Newcomer},
    cell::{Keeper, SessionCell, Trees},
    patrol::end_strays,
};
use crate::{cell::HANDSHAKE_CAPS, connection::Connection};

/// Longer than any guest that still works takes to clone itself.
const BRANCHED: Duration = Duration::from_secs(10);
/// What a guest may have printed since its last run.
const CAPS: Caps = Caps { body_bytes: 0, text_bytes: 512 << 10 };
/// Events of no interest that are read past.
const MAX_IDLE_EVENTS: usize = 1000;

/// Why there is no second guest.
#[derive(Debug)]
pub(crate) enum NotBranched {
    /// The first one goes on as it was.
    Refused(RunError),
    /// The first one cannot be trusted to be whole.
    Broken(RunError),
}

/// Clones a guest that waits for a command. What comes of it waits for one too.
pub(crate) async fn branch(
    cell: &Arc<SessionCell>,
    parent: &mut Branch,
) -> Result<Branch, NotBranched> {
    // Held to the end: the keeper does nothing else meanwhile. A wait for it is nobody's fault.
    let mut keeper = cell.keeper().await;
    let branching = cell.begin_branching();
    let mut number = None;
    let why = match timeout(BRANCHED, try_branch(cell, &mut keeper, parent, &mut number)).await {
        Ok(Ok(Ok(child))) => return Ok(child),
        Ok(Ok(Err(why))) => return Err(NotBranched::Refused(refused(&why))),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the guest did not answer".to_owned(),
    };
    // Whatever there is of the second one is nobody's now.
    drop(branching);
    let theirs = cell.clone();
    let _ = spawn_blocking(move || end_strays(&theirs)).await;
    if let Some(number) = number {
        keeper.forget(number).await;
    }
    Err(broken(&why))
}

/// A copy of a guest, which waits for its files.
#[derive(Debug)]
struct Copied {
    connection: Connection,
    process: Unadopted,
}

/// A copy's process. Dropping it kills it, as nobody has it in hand.
#[derive(Debug)]
struct Unadopted(Option<Newcomer>);

impl Unadopted {
    fn adopt(mut self) -> io::Result<Newcomer> {
        self.0.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for Unadopted {
    fn drop(&mut self) {
        let Some(Newcomer { pidfd, .. }) = self.0.take() else { return };
        let end = move || {
            if let Err(error) = end_with_all_beneath(&pidfd) {
                tracing::warn!(%error, "could not kill a copy that nobody has use for");
            }
        };
        // What it has started may take its time to end.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(end)),
            Err(_) => end(),
        }
    }
}

/// An outer error means that the parent is lost; an inner one, why it refused. `number` is that of
/// files that are nobody's yet.
async fn try_branch(
    cell: &Arc<SessionCell>,
    keeper: &mut Keeper<'_>,
    parent: &mut Branch,
    number: &mut Option<u64>,
) -> io::Result<Result<Branch, String>> {
    let of = parent.number();
    let freeze = async {
        let frozen = keeper.freeze(of).await;
        *number = frozen.as_ref().ok().and_then(|frozen| Some(frozen.as_ref().ok()?.number));
        frozen
    };
    let (copied, frozen) = tokio::join!(copy(cell, &mut parent.connection), freeze);
    match (frozen?, copied?) {
        (Ok(trees), Ok(copy)) => part(cell, parent, copy, trees, number).await.map(Ok),
        (Ok(trees), Err(why)) => {
            go_on(&mut parent.connection, &[trees.parent.as_fd()]).await?;
            keeper.forget(trees.number).await;
            Ok(Err(why))
        }
        (Err(why), Ok(copy)) => {
            copy.end().await?;
            go_on(&mut parent.connection, &[]).await?;
            Ok(Err(why))
        }
        (Err(why), Err(_)) => Ok(Err(why)),
    }
}

/// Has a guest clone itself.
async fn copy(cell: &SessionCell, parent: &mut Connection) -> io::Result<Result<Copied, String>> {
    let (ours, theirs) = branch_sockets()?;
    parent.send(&Command::Branch).await?;
    parent.hand_over(&[theirs.as_fd()]).await?;
    // The child's end is the child's alone: when it ends, the stream does.
    drop(theirs);
    let connection = Connection::adopt(ours.into())?.kept();
    let event = next_event(parent).await?;
    if let Event::NotBranched { message } = event {
        return Ok(Err(message));
    }
    if event != Event::Branched {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let process = Newcomer::of(connection.greeting().await?, cell)?;
    if cell.has_in_hand(process.processes.guest) {
        // Whoever that is, there is no copy. It is not to be killed for one, nor known twice.
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Ok(Copied { connection, process: Unadopted(Some(process)) }))
}

impl Copied {
    /// Ends it, and waits for that: until then it has everything open that the other one has.
    async fn end(self) -> io::Result<()> {
        let Newcomer { pidfd, .. } = self.process.adopt()?;
        let end = move || end_with_all_beneath(&pidfd).map(|()| pidfd);
        let pidfd = spawn_blocking(end).await.map_err(io::Error::other)??;
        #[expect(
            deprecated,
            reason = "unsound only for what changes its descriptor; this owns one"
        )]
        let ended = AsyncFd::with_interest(pidfd, Interest::READABLE)?;
        ended.readable().await.map(drop)
    }
}

/// Gives both their files.
async fn part(
    cell: &Arc<SessionCell>,
    parent: &mut Branch,
    copy: Copied,
    trees: Trees,
    number: &mut Option<u64>,
) -> io::Result<Branch> {
    let Copied { connection, process } = copy;
    let mut child = Branch::new(connection, trees.number, process.adopt()?, cell)?;
    // From now on its files go with it.
    *number = None;
    child.connection.hand_over(&[trees.child.as_fd()]).await?;
    let parent = &mut parent.connection;
    reroot(parent, &[trees.parent.as_fd()]).await?;
    rerooted(parent).await?;
    match child.connection.receive(HANDSHAKE_CAPS).await {
        Ok(Event::Ready) => Ok(child),
        Ok(_) | Err(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Has a guest go on in a tree; without one, where it is.
async fn go_on(guest: &mut Connection, tree: &[BorrowedFd<'_>]) -> io::Result<()> {
    reroot(guest, tree).await?;
    rerooted(guest).await
}

async fn reroot(guest: &mut Connection, tree: &[BorrowedFd<'_>]) -> io::Result<()> {
    guest.send(&Command::Reroot).await?;
    guest.hand_over(tree).await
}

async fn rerooted(guest: &mut Connection) -> io::Result<()> {
    match next_event(guest).await? == Event::Rerooted {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The next event that is not something the guest said between runs.
async fn next_event(connection: &mut Connection) -> io::Result<Event> {
    for _ in 0..MAX_IDLE_EVENTS {
        match connection.receive(CAPS).await {
            Ok(Event::Print { .. } | Event::Denied { .. } | Event::Artifact { .. }) => {}
            Ok(event) => return Ok(event),
            Err(ReadError::Io(error)) => return Err(error),
            Err(ReadError::Ended) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(ReadError::Decode(error)) => return Err(io::Error::other(error)),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn refused(why: &str) -> RunError {
    RunError::new(ErrorCode::SessionNotBranched, format!("the session cannot be branched: {why}"))
        .with_hint("close files that are open for writing, end threads and processes, try again")
}

fn broken(why: &str) -> NotBranched {
    let message = format!("the session broke while it was branched: {why}");
    NotBranched::Broken(RunError::new(ErrorCode::SandboxCrashed, message))
}
