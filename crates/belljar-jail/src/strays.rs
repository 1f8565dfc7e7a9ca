//! Ending processes of a cell from outside: what a guest has started, and what is nobody's.
//!
//! They are found by their numbers, and a number may be a stranger's by the time a signal is sent. So
//! a pidfd is opened first; then it is looked again, with the pidfd in hand, whether that process is
//! beneath one that is known by a pidfd of its own and has not ended; and only the pidfd is signalled.

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

/// How often processes are looked for before that is given up: each round ends all that are found, and
/// who starts others faster than that is held by a limit on processes.
const ROUNDS: usize = 32;
/// How long a process may take to end that was killed.
const ENDING: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Why there may be strays left.
#[derive(Debug, Error)]
pub enum StraysLeft {
    /// There are always new ones.
    #[error("processes were started in it as fast as they were ended")]
    Unending,
    /// The system does not tell.
    #[error("its processes could not be looked at: {0}")]
    Unseen(io::Error),
}

/// Whether the process behind a pidfd has ended.
pub fn has_ended(pidfd: &impl AsFd) -> io::Result<bool> {
    let mut ended = [PollFd::new(pidfd, PollFlags::IN)];
    Ok(poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
}

/// Ends a guest and all that is beneath it, given its pidfd.
///
/// All of them are stopped first, from the outside in, so that none starts more or ends by itself; then
/// they end from the inside out, for what is beneath one that has ended is the keeper's: a stray.
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

/// Ends children of a keeper, given its pidfd, that are strays. What is beneath those becomes the
/// keeper's, and is ended in the next round.
///
/// What is a stray is asked twice of each, the second time with a pidfd in hand: whoever becomes a
/// known guest or may be one from now on is left alone. If it is none by then, it is not ended.
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

/// Ends a process, and waits for that, if it is beneath another at this moment.
fn end_below(pid: u32, above: &impl AsFd, number: u32, may_end: impl Fn(u32) -> bool) {
    let Some(process) = find_below(pid, above, number, may_end) else { return };
    if kill_by_pidfd(&process).is_ok() {
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        let _ = poll(&mut ended, Some(&ENDING));
    }
}

/// A pidfd of a process that is beneath another at this moment.
fn find_below(
    pid: u32,
    above: &impl AsFd,
    number: u32,
    may_end: impl Fn(u32) -> bool,
) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    // Only now is it certain whose number it is; that of the other one is its own as long as it is
    // there, so that is looked at last.
    (may_end(pid) && is_beneath(pid, number) && is_there(above)).then_some(pidfd)
}

/// Whether a process certainly has not ended.
fn is_there(pidfd: &impl AsFd) -> bool {
    has_ended(pidfd).is_ok_and(|ended| !ended)
}

#[cfg(test)]
mod tests;
