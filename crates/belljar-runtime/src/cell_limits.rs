//! The part of a run's limits that its cell enforces.

use belljar_contract::Limits;
use belljar_jail::CellLimits;

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
