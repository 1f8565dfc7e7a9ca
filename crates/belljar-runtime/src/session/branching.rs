//! Turns one guest into two.
//!
//! In parallel, the keeper freezes the guest's files and the guest clones itself. Then each of the two gets a
//! new tree over the frozen files. Neither gets its tree earlier, because they could share files until then.
//! If a step fails, the parent continues on its new tree or where it was, or it is lost; it is never left
//! half way.

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
    branch::{Branch, NewGuest},
    cell::{BranchTrees, KeeperChannel, SessionCell},
    idle_watch::end_strays,
};
use crate::{cell::HANDSHAKE_CAPS, connection::GuestConnection};

/// How long a branch may take; far longer than a working guest needs.
const BRANCH_TIMEOUT: Duration = Duration::from_secs(10);
/// A guest may have printed something since its last run.
const CAPS: Caps = Caps { body_bytes: 0, text_bytes: 512 << 10 };
/// Events since the last run that the host skips.
const MAX_IDLE_EVENTS: usize = 1000;

/// Why a guest was not branched.
#[derive(Debug)]
pub(crate) enum NotBranched {
    /// The guest continues as it was.
    Refused(RunError),
    /// The guest may be damaged.
    Broken(RunError),
}

/// Clones a guest that waits for a command. The clone waits for a command too.
pub(crate) async fn branch(
    cell: &Arc<SessionCell>,
    parent: &mut Branch,
) -> Result<Branch, NotBranched> {
    // Held to the end, so the keeper does nothing else meanwhile. The wait for it is not part of the timeout.
    let mut keeper = cell.keeper().await;
    // Parent and clone must not share a connection.
    let _closed = cell.close_network().await;
    let branching = cell.begin_branching();
    let mut number = None;
    let why =
        match timeout(BRANCH_TIMEOUT, try_branch(cell, &mut keeper, parent, &mut number)).await {
            Ok(Ok(Ok(child))) => return Ok(child),
            Ok(Ok(Err(why))) => return Err(NotBranched::Refused(refused(&why))),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the guest did not answer in time".to_owned(),
        };
    // The processes of the clone are strays now.
    drop(branching);
    let strays_of = cell.clone();
    let _ = spawn_blocking(move || end_strays(&strays_of)).await;
    if let Some(number) = number {
        keeper.drop_files(number).await;
    }
    Err(broken(&why))
}

/// A clone of a guest that waits for its tree.
#[derive(Debug)]
struct GuestClone {
    connection: GuestConnection,
    process: UnownedProcess,
}

/// The process of a clone, which no session owns yet. Dropping it kills the process.
#[derive(Debug)]
struct UnownedProcess(Option<NewGuest>);

impl UnownedProcess {
    fn adopt(mut self) -> io::Result<NewGuest> {
        self.0.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for UnownedProcess {
    fn drop(&mut self) {
        let Some(NewGuest { pidfd, .. }) = self.0.take() else { return };
        let end = move || {
            if let Err(error) = end_with_all_beneath(&pidfd) {
                tracing::warn!(%error, "could not kill a failed clone");
            }
        };
        // The processes that it has started may take some time to end.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(end)),
            Err(_) => end(),
        }
    }
}

/// The outer error means that the parent is lost; the inner one says why the parent refused. `number` is set
/// while there are files that belong to no guest yet.
async fn try_branch(
    cell: &Arc<SessionCell>,
    keeper: &mut KeeperChannel<'_>,
    parent: &mut Branch,
    number: &mut Option<u64>,
) -> io::Result<Result<Branch, String>> {
    let of = parent.number();
    let freeze = async {
        let frozen = keeper.freeze(of).await;
        *number = frozen.as_ref().ok().and_then(|frozen| Some(frozen.as_ref().ok()?.number));
        frozen
    };
    let (cloned, frozen) = tokio::join!(clone_guest(cell, &mut parent.connection), freeze);
    match (frozen?, cloned?) {
        (Ok(trees), Ok(clone)) => assign_trees(cell, parent, clone, trees, number).await.map(Ok),
        (Ok(trees), Err(why)) => {
            resume_in(&mut parent.connection, &[trees.parent.as_fd()]).await?;
            keeper.drop_files(trees.number).await;
            Ok(Err(why))
        }
        (Err(why), Ok(clone)) => {
            clone.end().await?;
            resume_in(&mut parent.connection, &[]).await?;
            Ok(Err(why))
        }
        (Err(why), Err(_)) => Ok(Err(why)),
    }
}

/// Makes a guest clone itself.
async fn clone_guest(
    cell: &SessionCell,
    parent: &mut GuestConnection,
) -> io::Result<Result<GuestClone, String>> {
    let (ours, theirs) = branch_sockets()?;
    parent.send(&Command::Branch).await?;
    parent.hand_over(&[theirs.as_fd()]).await?;
    // Only the child keeps this end, so that the stream ends with the child.
    drop(theirs);
    let connection = GuestConnection::adopt(ours.into())?.for_session();
    let event = next_event(parent).await?;
    if let Event::NotBranched { message } = event {
        return Ok(Err(message));
    }
    if event != Event::Branched {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let process = NewGuest::of(connection.receive_pidfd().await?, cell)?;
    if cell.owns(process.processes.guest) {
        // The parent sent a pidfd of a guest that a session owns: it must not be killed or adopted.
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Ok(GuestClone { connection, process: UnownedProcess(Some(process)) }))
}

impl GuestClone {
    /// Ends the clone and waits for its end: until then it has open what its parent has open.
    async fn end(self) -> io::Result<()> {
        let NewGuest { pidfd, .. } = self.process.adopt()?;
        let end = move || end_with_all_beneath(&pidfd).map(|()| pidfd);
        let pidfd = spawn_blocking(end).await.map_err(io::Error::other)??;
        #[expect(
            deprecated,
            reason = "unsound only for types that change their descriptor; this owns one"
        )]
        let ended = AsyncFd::with_interest(pidfd, Interest::READABLE)?;
        ended.readable().await.map(drop)
    }
}

/// Gives parent and clone their trees.
async fn assign_trees(
    cell: &Arc<SessionCell>,
    parent: &mut Branch,
    clone: GuestClone,
    trees: BranchTrees,
    number: &mut Option<u64>,
) -> io::Result<Branch> {
    let GuestClone { connection, process } = clone;
    let mut child = Branch::new(connection, trees.number, process.adopt()?, cell)?;
    // From here on the files belong to the child.
    *number = None;
    child.connection.hand_over(&[trees.child.as_fd()]).await?;
    let parent = &mut parent.connection;
    reroot(parent, &[trees.parent.as_fd()]).await?;
    expect_rerooted(parent).await?;
    match child.connection.receive(HANDSHAKE_CAPS).await {
        Ok(Event::Ready) => Ok(child),
        Ok(_) | Err(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Lets a guest continue in a tree, or without one where it is.
async fn resume_in(guest: &mut GuestConnection, tree: &[BorrowedFd<'_>]) -> io::Result<()> {
    reroot(guest, tree).await?;
    expect_rerooted(guest).await
}

async fn reroot(guest: &mut GuestConnection, tree: &[BorrowedFd<'_>]) -> io::Result<()> {
    guest.send(&Command::Reroot).await?;
    guest.hand_over(tree).await
}

async fn expect_rerooted(guest: &mut GuestConnection) -> io::Result<()> {
    match next_event(guest).await? == Event::Rerooted {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Waits for the next event, without what the guest sent between runs.
async fn next_event(connection: &mut GuestConnection) -> io::Result<Event> {
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
        .with_hint(
            "close files that are open for writing, end threads and processes, and try again",
        )
}

fn broken(why: &str) -> NotBranched {
    let message = format!("the guest of the session failed while it was branched: {why}");
    NotBranched::Broken(RunError::new(ErrorCode::SandboxCrashed, message))
}
