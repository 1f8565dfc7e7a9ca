//! A session's cell as a whole, looked at from time to time.
//!
//! A guest that behaves is measured while it runs. One that does not may hide processes beside itself,
//! or go on when nobody has asked it anything: whatever is in a cell is a child of its keeper, or
//! beneath one, and is found from there.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use belljar_contract::{ErrorCode, RunError};
use belljar_jail::{
    Guests,
    sample::{Sample, held_together, kernel_bytes},
    strays::StraysLeft,
};
use tokio::time::sleep;

use super::cell::SessionCell;
use crate::run::slack_bytes;

/// How often a cell is looked at.
const EVERY: Duration = Duration::from_secs(2);
/// CPU time all of a cell may use between two runs: more than ending a run properly takes.
const IDLE_CPU: Duration = Duration::from_secs(10);

/// Looks after a cell as long as it is there.
pub(super) async fn patrol(cell: Weak<SessionCell>) {
    let mut idle = Idle::default();
    loop {
        sleep(EVERY).await;
        let Some(cell) = cell.upgrade() else { return };
        if !cell.body().is_alive() {
            return;
        }
        let looked = tokio::task::spawn_blocking(move || {
            let found = look(&cell, &mut idle);
            if let Err(why) = found {
                cell.end(&why);
            }
            idle
        });
        match looked.await {
            Ok(seen) => idle = seen,
            Err(_) => return,
        }
    }
}

/// CPU time while nothing was asked of a cell.
#[derive(Debug, Default, Clone, Copy)]
struct Idle {
    runs: usize,
    at_first: Option<Duration>,
}

/// Ends what does not belong there; `Err` says why the cell cannot go on.
fn look(cell: &Arc<SessionCell>, idle: &mut Idle) -> Result<(), RunError> {
    end_strays(cell)?;
    let before = cell.guests_at_most();
    let processes = cell.body().processes();
    let sample = processes.whole_sample();
    // Whoever was there for some of the time may have been measured.
    let guests = cell.guests_at_most().max(before).max(1);
    let guests = u64::try_from(guests).unwrap_or(u64::MAX);
    let each = cell.body().memory_bytes().saturating_add(slack_bytes(processes.guests));
    let most = each.saturating_add(processes.inherited_bytes()).saturating_mul(guests);
    if is_over(&sample, most) {
        let message = "its processes together have more memory than its sessions may have";
        return Err(RunError::new(ErrorCode::LimitMemory, message));
    }
    let usage = sample.usage;
    let runs = cell.runs_begun();
    if cell.is_busy() || idle.runs != runs {
        *idle = Idle { runs, at_first: None };
        return Ok(());
    }
    let at_first = *idle.at_first.get_or_insert(usage.cpu);
    if usage.cpu.saturating_sub(at_first) > IDLE_CPU {
        let message = "it was busy while nothing was asked of it";
        return Err(RunError::new(ErrorCode::LimitCpu, message));
    }
    Ok(())
}

/// Whether processes hold more than they may together, with what the kernel holds for them.
fn is_over(sample: &Sample, most: u64) -> bool {
    let for_them = match sample.processes.len() {
        // A guest alone has forked nothing.
        0 | 1 => 0,
        _ => kernel_bytes(&sample.processes),
    };
    let is_within = |bytes: u64| bytes.saturating_add(for_them) <= most;
    let fits = is_within(sample.usage.memory_bytes) || is_within(held_together(&sample.processes));
    sample.has_unmeasured || !fits
}

/// Ends children of the keeper that are no guests. While a run goes on, a program's may be that run's
/// own; a script starts none.
pub(super) fn end_strays(cell: &SessionCell) -> Result<(), RunError> {
    let is_stray = |pid| {
        // In this order: what is there already is in hand by the time there is no more branching.
        let may_be_somebodys =
            cell.is_branching() || (cell.guests() == Guests::Programs && cell.is_busy());
        !may_be_somebodys && !cell.has_in_hand(pid)
    };
    match cell.body().end_strays(is_stray) {
        Ok(()) => Ok(()),
        Err(error @ StraysLeft::Unending) => {
            Err(RunError::new(ErrorCode::LimitProcesses, error.to_string()))
        }
        Err(error @ StraysLeft::Unseen(_)) => {
            // That is the host's own trouble, and no reason to end a session.
            tracing::warn!(%error, "a session's cell is looked at again later");
            Ok(())
        }
    }
}
