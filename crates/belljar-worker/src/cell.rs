//! A cell's main, for engines in Rust: say ready, take one run, answer, and wait to be ended; in a
//! session's cell, take run after run, and branch between them.

use std::{os::unix::net::UnixStream, time::Duration};

use belljar_contract::ErrorCode;
use belljar_jail::{BranchSide, Brancher, ConfineError, ConfinedCell, Guest, OwnLimits};
use belljar_wire::{Command, Event, GuestError, GuestLimits, RunCommand};

use crate::{CodeRunner, HostLink};

/// A cell that has waited this long for its code is parked.
const PARKED: Duration = Duration::from_millis(1);

/// The main of a guest process around its code runner.
#[derive(Debug)]
pub(crate) struct CellMain<R> {
    runner: R,
}

impl<R: CodeRunner> CellMain<R> {
    pub(crate) fn new(runner: R) -> Self {
        Self { runner }
    }
}

impl<R: CodeRunner> CellMain<R> {
    /// Serves one run, and no more.
    fn run_once(&mut self, host: &HostLink, limits: &OwnLimits) {
        // Only a cell that is parked rehearses: for one that is wanted at once, the run itself is
        // the quickest way to touch what it touches.
        if !host.has_input_within(PARKED) {
            self.runner.rehearse(host);
        }
        // No command means that the host is gone, or let go of a cell it never used.
        let Ok(Command::Run(run)) = host.receive() else { return };
        let GuestLimits { memory_bytes, cpu_ms, processes, open_files, .. } = run.limits;
        let cpu_seconds = cpu_ms.div_ceil(1000).saturating_add(1);
        let lowered = limits.lower(memory_bytes, cpu_seconds, processes.into(), open_files.into());
        let last = match lowered {
            Ok(()) => self.run(run, host),
            Err(error) => Event::Failed(GuestError::new(
                ErrorCode::SandboxEngine,
                format!("could not lower the limits of the run: {error}"),
            )),
        };
        if host.send(&last).is_ok() {
            // The host measures this process before it ends the cell.
            let _ = host.receive();
        }
    }

    /// Serves run after run, until the host closes the socket. The limits of the process are those
    /// of the session; the host watches the limits of each run.
    fn run_on(&mut self, host: &HostLink, brancher: Brancher) {
        while let Ok(command) = host.receive() {
            let answer = match command {
                Command::Run(run) => self.run(run, host),
                Command::Branch => match host.branch(brancher) {
                    Ok(BranchSide::Parent) => Event::Branched,
                    Ok(BranchSide::Child) => Event::Ready,
                    Err(error) => Event::NotBranched { message: error.to_string() },
                },
                Command::Reroot => match host.reroot(brancher) {
                    Ok(()) => Event::Rerooted,
                    Err(error) => Event::NotBranched { message: error.to_string() },
                },
                // It came too late for the run that waited for it.
                Command::ToolReply(_) | Command::Timer { .. } => continue,
            };
            if host.send(&answer).is_err() {
                return;
            }
        }
    }

    fn run(&mut self, run: RunCommand, host: &HostLink) -> Event {
        self.runner.run(run, host).map_or_else(Event::Failed, Event::Done)
    }
}

impl<R: CodeRunner> Guest for CellMain<R> {
    fn confined(&mut self, cell: ConfinedCell) {
        let ConfinedCell { socket, limits, brancher } = cell;
        let host = HostLink::new(socket);
        if host.send(&Event::Ready).is_err() {
            return;
        }
        match brancher {
            None => self.run_once(&host, &limits),
            Some(brancher) => self.run_on(&host, brancher),
        }
    }

    fn warm_further(&mut self) {
        self.runner.warm_further();
    }

    fn refused(&mut self, socket: UnixStream, error: &ConfineError) {
        let mechanism = error.mechanism.as_str().to_owned();
        let message = error.source.to_string();
        let _ = HostLink::new(socket).send(&Event::Refused { mechanism, message });
    }
}
