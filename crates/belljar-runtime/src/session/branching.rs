//! From one guest to two: the files first, then the process, then the parent's own new files.
//!
//! Whatever fails once the files are frozen is either undone, with the parent on its new tree, or the
//! parent is lost; it never goes on half way.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};

use belljar_jail::session::{branch_sockets, receive_greeting};
use belljar_wire::{Caps, Command, ErrorCode, Event, ReadError};
use tokio::{io::Interest, time::timeout};

use super::{
    branch::Branch,
    cell::{Keeper, SessionCell, Trees},
    patrol::end_strays,
};
use crate::{RunError, cell::HANDSHAKE_CAPS, connection::Connection};

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
    let _ = end_strays(cell);
    if let Some(number) = number {
        keeper.forget(number).await;
    }
    Err(broken(&why))
}

/// An outer error means that the parent is lost; an inner one, why it refused.
async fn try_branch(
    cell: &Arc<SessionCell>,
    keeper: &mut Keeper<'_>,
    parent: &mut Branch,
    number: &mut Option<u64>,
) -> io::Result<Result<Branch, String>> {
    let trees = match keeper.freeze(parent.number()).await? {
        Ok(trees) => trees,
        Err(why) => return Ok(Err(why)),
    };
    *number = Some(trees.number);
    let cloned = clone(parent, &trees).await?;
    // Only now: with its own new tree in hand it could have shared it with its child.
    parent.connection.send(&Command::Reroot).await?;
    parent.connection.hand_over(&[trees.parent.as_fd()]).await?;
    if next_event(&mut parent.connection).await? != Event::Rerooted {
        return Err(io::ErrorKind::InvalidData.into());
    }
    match cloned {
        Ok((connection, pidfd)) => Ok(Ok(Branch::new(connection, trees.number, pidfd, cell)?)),
        Err(why) => {
            keeper.forget(trees.number).await;
            Ok(Err(why))
        }
    }
}

/// Has the parent clone itself; the child's stream and pidfd, once it is ready.
async fn clone(
    parent: &mut Branch,
    trees: &Trees,
) -> io::Result<Result<(Connection, OwnedFd), String>> {
    let (ours, theirs) = branch_sockets()?;
    parent.connection.send(&Command::Branch).await?;
    parent.connection.hand_over(&[theirs.as_fd(), trees.child.as_fd()]).await?;
    // The child's end is the child's alone: when it ends, the stream does.
    drop(theirs);
    let event = next_event(&mut parent.connection).await?;
    if let Event::NotBranched { message } = event {
        return Ok(Err(message));
    }
    if event != Event::Branched {
        return Err(io::ErrorKind::InvalidData.into());
    }
    ours.set_nonblocking(true)?;
    let ours = tokio::net::UnixStream::from_std(ours)?;
    // The first byte tells whose the stream is; the rest is read like any other.
    let mut first = [0];
    let greeting = ours.async_io(Interest::READABLE, || receive_greeting(&ours, &mut first)).await;
    let (1, Some(pidfd)) = greeting? else { return Err(io::ErrorKind::UnexpectedEof.into()) };
    let mut connection = Connection::adopt(ours.into_std()?.into())?.kept();
    match connection.receive_rest(first, HANDSHAKE_CAPS).await {
        Ok(Event::Ready) => Ok(Ok((connection, pidfd))),
        Ok(_) | Err(_) => Err(io::ErrorKind::InvalidData.into()),
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
