//! A session's cell as a whole, looked at from time to time.
//!
//! A guest that behaves is measured while it runs. One that does not may hide processes beside itself,
//! or go on when nobody has asked it anything: whatever is in a cell is a child of its keeper, or
//! beneath one, and is found from there.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use belljar_jail::{Guests, sample::keepers_children};
use tokio::time::sleep;

use super::{
    branch::{has_ended, kill_child},
    cell::SessionCell,
};

/// How often a cell is looked at.
const EVERY: Duration = Duration::from_secs(2);
/// What a guest has resident before any code, and what its allocator may waste.
const SLACK_BYTES: u64 = 96 << 20;
/// CPU time all of a cell may use between two runs: more than ending a run properly takes.
const IDLE_CPU: Duration = Duration::from_secs(10);
/// How often strays are looked for at a time before the cell is given up.
const ROUNDS: usize = 32;

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
                tracing::warn!(why, "a session's cell was ended");
                cell.body().kill();
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
fn look(cell: &Arc<SessionCell>, idle: &mut Idle) -> Result<(), &'static str> {
    end_strays(cell)?;
    let usage = cell.body().processes().whole_usage();
    let guests = u64::try_from(cell.known_guests().len()).unwrap_or(u64::MAX).max(1);
    let most = cell.body().memory_bytes().saturating_add(SLACK_BYTES).saturating_mul(guests);
    if usage.memory_bytes > most {
        return Err("its processes together have more memory than its sessions may have");
    }
    let runs = cell.runs_begun();
    if cell.is_busy() || idle.runs != runs {
        *idle = Idle { runs, at_first: None };
        return Ok(());
    }
    let at_first = *idle.at_first.get_or_insert(usage.cpu);
    if usage.cpu.saturating_sub(at_first) > IDLE_CPU {
        return Err("it was busy while nothing was asked of it");
    }
    Ok(())
}

/// Ends children of the keeper that are no guests. While a run goes on, a program's may be that run's
/// own; a script starts none.
pub(super) fn end_strays(cell: &SessionCell) -> Result<(), &'static str> {
    let keeper = cell.body().processes().keeper;
    for _ in 0..ROUNDS {
        if cell.is_branching() || (cell.guests() == Guests::Programs && cell.is_busy()) {
            return Ok(());
        }
        let known = cell.known_guests();
        let strays = keepers_children(keeper).into_iter();
        let strays = strays.filter(|pid| !known.contains(pid) && !has_ended(*pid));
        let strays: Vec<_> = strays.collect();
        if strays.is_empty() {
            return Ok(());
        }
        for pid in strays {
            kill_child(pid, keeper, || cell.body().is_alive() && !cell.is_branching());
        }
    }
    Err("processes were started in it as fast as they were ended")
}
