//! Watches the cell of a session as a whole, also while no run goes on.
//!
//! The host measures a guest while it runs. A hostile guest may hide processes beside itself, or work between
//! runs. Every process of a cell is a child of its keeper or below one, so the watch finds all of them from
//! there: it ends strays, and ends a cell that uses too much.

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

/// How often a cell is checked.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// CPU time that a cell may use between two runs: more than the proper end of a run takes.
const IDLE_CPU: Duration = Duration::from_secs(10);

/// Checks a cell from time to time, until it has ended.
pub(super) async fn watch_cell(cell: Weak<SessionCell>) {
    let mut idle = IdleCpu::default();
    loop {
        sleep(CHECK_EVERY).await;
        let Some(cell) = cell.upgrade() else { return };
        if !cell.body().is_alive() {
            return;
        }
        let checked = tokio::task::spawn_blocking(move || {
            if let Err(why) = check_cell(&cell, &mut idle) {
                cell.end(&why);
            }
            idle
        });
        match checked.await {
            Ok(updated) => idle = updated,
            Err(_) => return,
        }
    }
}

/// CPU time of a cell since its last run.
#[derive(Debug, Default, Clone, Copy)]
struct IdleCpu {
    /// Runs begun by the last check.
    runs: usize,
    /// CPU time at the first check after that run.
    at_first: Option<Duration>,
}

/// Ends strays; the error says why the cell has to end.
fn check_cell(cell: &Arc<SessionCell>, idle: &mut IdleCpu) -> Result<(), RunError> {
    end_strays(cell)?;
    let before = cell.guests_at_most();
    let processes = cell.body().processes();
    let sample = processes.whole_sample();
    // A guest that was there for a part of the time may be in the sample.
    let guests = cell.guests_at_most().max(before).max(1);
    let guests = u64::try_from(guests).unwrap_or(u64::MAX);
    let each = cell.body().memory_bytes().saturating_add(slack_bytes(processes.guests));
    let most = each.saturating_add(processes.inherited_bytes()).saturating_mul(guests);
    if is_over(&sample, most) {
        let message = "its processes together went over the memory limit of its sessions";
        return Err(RunError::new(ErrorCode::LimitMemory, message));
    }
    let usage = sample.usage;
    let runs = cell.runs_begun();
    if cell.is_busy() || idle.runs != runs {
        *idle = IdleCpu { runs, at_first: None };
        return Ok(());
    }
    let at_first = *idle.at_first.get_or_insert(usage.cpu);
    if usage.cpu.saturating_sub(at_first) > IDLE_CPU {
        let message = "it used CPU time while no run was going on";
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

/// Ends strays: children of the keeper that are not guests. While a run goes on, a child of a program may
/// belong to that run; a script starts no processes.
pub(super) fn end_strays(cell: &SessionCell) -> Result<(), RunError> {
    let is_stray = |pid| {
        // In this order: once no branching is under way, every guest that exists is owned.
        let may_belong =
            cell.is_branching() || (cell.guests() == Guests::Programs && cell.is_busy());
        !may_belong && !cell.owns(pid)
    };
    match cell.body().end_strays(is_stray) {
        Ok(()) => Ok(()),
        Err(error @ StraysLeft::Unending) => {
            Err(RunError::new(ErrorCode::LimitProcesses, error.to_string()))
        }
        Err(error @ StraysLeft::Unseen(_)) => {
            // The host has a problem here, which is no reason to end a session.
            tracing::warn!(%error, "could not check the cell of a session; trying again later");
            Ok(())
        }
    }
}
