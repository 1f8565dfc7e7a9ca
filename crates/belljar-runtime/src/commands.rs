//! From a request to the limits of its cell and the command for its guest.

use std::time::Duration;

use belljar_contract::{Limits, RunRequest};
use belljar_jail::{CellKind, CellLimits};
use belljar_wire::{Command, Durable, GuestGrants, GuestLimits, RunCommand};

/// Cells are parked at the operator's maxima, and each run lowers them to its own limits. `/tmp` is the
/// exception: it can grow as well as shrink, so it is parked at the default size.
pub(crate) fn parked_limits(maximum: &Limits) -> CellLimits {
    CellLimits {
        disk_bytes: Limits::DEFAULT.disk.min(maximum.disk),
        inodes: Limits::DEFAULT.inodes.min(maximum.inodes),
        ..cell_limits(maximum)
    }
}

/// The limits of a run that its cell enforces.
pub(crate) fn cell_limits(limits: &Limits) -> CellLimits {
    CellLimits {
        memory_bytes: limits.memory,
        cpu_seconds: limits.cpu.as_secs().saturating_add(2),
        processes: limits.processes.into(),
        open_files: limits.open_files.into(),
        disk_bytes: limits.disk,
        inodes: limits.inodes,
    }
}

/// The command that makes a guest run a request.
pub(crate) fn run_command(
    request: RunRequest,
    grants: GuestGrants,
    durable: Option<Durable>,
    kind: CellKind,
) -> Command {
    let limits = &request.limits;
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let limits = GuestLimits {
        memory_bytes: limits.memory,
        wall_ms: milliseconds(limits.timeout),
        cpu_ms: milliseconds(limits.cpu),
        result_bytes: u32::try_from(limits.result_bytes).unwrap_or(u32::MAX),
        processes: limits.processes,
        open_files: limits.open_files,
    };
    let RunRequest { code, language, file_name, context, .. } = request;
    let context = context.map_or_else(Vec::new, |json| String::from(Box::<str>::from(json)).into());
    Command::Run(RunCommand {
        language,
        file_name,
        limits,
        grants,
        code,
        context,
        durable,
        session: matches!(kind, CellKind::Session),
    })
}
