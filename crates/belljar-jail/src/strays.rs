//! Ending processes of a cell from outside: the descendants of a guest, and strays, which belong to
//! no guest because their parent has ended.
//!
//! Processes are found by number, and a number may belong to another process by the time a signal
//! is sent. So a pidfd is opened first; then, with the pidfd open, it is checked again that the
//! process descends from one that is known by a pidfd and has not ended; and only the pidfd is
//! signalled.

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use thiserror::Error;

use crate::{
    numbers::{self, beneath, children, is_beneath, number_of},
    sys::process::kill_by_pidfd,
};

/// How often processes are looked for before giving up: each round ends all that are found, and a
/// limit on processes bounds a guest that starts others faster than that.
const ROUNDS: usize = 32;
/// How long to wait for a killed process to end.
const ENDING: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Why strays may be left.
#[derive(Debug, Error)]
pub enum StraysLeft {
    /// New processes were found in every round.
    #[error("the cell starts processes as fast as they are killed")]
    Unending,
    /// The keeper's children could not be read.
    #[error("cannot list the processes of the cell: {0}")]
    Unseen(io::Error),
}

/// Whether the process behind a pidfd has ended.
pub fn has_ended(pidfd: &impl AsFd) -> io::Result<bool> {
    let mut ended = [PollFd::new(pidfd, PollFlags::IN)];
    Ok(poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
}

/// Ends a guest and all its descendants, given its pidfd.
///
/// All of them are stopped first, parents before children, so that none starts more or ends by
/// itself. Then they are killed, children before parents: a child whose parent has ended would be a
/// stray.
pub fn end_with_all_beneath(guest: &impl AsFd) -> io::Result<()> {
    let _ = pidfd_send_signal(guest, Signal::STOP);
    if let Ok(number) = number_of(guest) {
        stop_beneath(guest, number);
        for _ in 0..ROUNDS {
            let below = beneath(number);
            // Once it has ended, its number may be another's, and so may be what is beneath.
            if below.is_empty() || !is_there(guest) {
                break;
            }
            below.into_iter().rev().for_each(|pid| end_below(pid, guest, number, |_| true));
        }
    }
    kill_by_pidfd(guest)
}

fn stop_beneath(guest: &impl AsFd, number: u32) {
    let mut stopped = BTreeSet::new();
    for _ in 0..ROUNDS {
        let mut is_done = true;
        for pid in beneath(number) {
            if stopped.insert(pid) {
                is_done = false;
                if let Some(process) = find_below(pid, guest, number, |_| true) {
                    let _ = pidfd_send_signal(process, Signal::STOP);
                }
            }
        }
        if is_done {
            return;
        }
    }
}

/// Ends those children of a keeper, given its pidfd, that are strays. Their own children become the
/// keeper's, and are ended in the next round.
///
/// `is_stray` is asked twice about each process, the second time with its pidfd open: a process
/// that has become a guest in between is not ended.
pub fn end_strays(keeper: &impl AsFd, is_stray: impl Fn(u32) -> bool) -> Result<(), StraysLeft> {
    for _ in 0..ROUNDS {
        let found = number_of(keeper).and_then(|number| Ok((number, children(number)?)));
        let (number, mut strays) = match found {
            Ok(found) => found,
            // With its keeper, everything in the cell has ended.
            Err(_) if !is_there(keeper) => return Ok(()),
            Err(error) => return Err(StraysLeft::Unseen(error)),
        };
        strays.retain(|pid| !numbers::has_ended(*pid) && is_stray(*pid));
        if strays.is_empty() {
            return Ok(());
        }
        strays.into_iter().for_each(|pid| end_below(pid, keeper, number, &is_stray));
    }
    Err(StraysLeft::Unending)
}

/// Kills a process, and waits for its end, if it descends from another at this moment.
fn end_below(pid: u32, above: &impl AsFd, number: u32, may_end: impl Fn(u32) -> bool) {
    let Some(process) = find_below(pid, above, number, may_end) else { return };
    if kill_by_pidfd(&process).is_ok() {
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        let _ = poll(&mut ended, Some(&ENDING));
    }
}

/// A pidfd of a process that descends from another at this moment.
fn find_below(
    pid: u32,
    above: &impl AsFd,
    number: u32,
    may_end: impl Fn(u32) -> bool,
) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    // Only now does the number certainly belong to the pidfd. The number of the other process is
    // its own as long as it lives, so that is checked last.
    (may_end(pid) && is_beneath(pid, number) && is_there(above)).then_some(pidfd)
}

/// Whether a process certainly has not ended.
fn is_there(pidfd: &impl AsFd) -> bool {
    has_ended(pidfd).is_ok_and(|ended| !ended)
}

#[cfg(test)]
mod tests;
