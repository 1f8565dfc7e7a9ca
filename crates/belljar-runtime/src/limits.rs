//! The limits of a run (A6), their defaults, and the operator's maxima.

use std::time::Duration;

/// What one run may use. Each has a default; none is ever above the operator's maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall time.
    pub timeout: Duration,
    /// CPU time.
    pub cpu: Duration,
    /// Memory, in bytes.
    pub memory: u64,
    /// Size of the code, in bytes.
    pub code_bytes: u64,
    /// Size of the context, in bytes of JSON.
    pub context_bytes: u64,
    /// Captured output kept per stream, in bytes.
    pub output_bytes: u64,
    /// Size of the value, in bytes of JSON.
    pub result_bytes: u64,
    /// Processes and threads.
    pub processes: u32,
    /// Open files.
    pub open_files: u32,
    /// Workspace and `/tmp` together, in bytes.
    pub disk: u64,
    /// Files in workspace and `/tmp` together.
    pub inodes: u64,
    /// Tool calls.
    pub tool_calls: u32,
    /// Wall time of one tool call, without the wait for a person.
    pub tool_timeout: Duration,
}

const MIB: u64 = 1 << 20;

impl Limits {
    /// What a run gets when nobody says anything.
    pub const DEFAULT: Self = Self {
        timeout: Duration::from_secs(30),
        cpu: Duration::from_secs(30),
        memory: 512 * MIB,
        code_bytes: 50_000,
        context_bytes: 64 * MIB,
        output_bytes: 64 << 10,
        result_bytes: 16 * MIB,
        processes: 32,
        open_files: 256,
        disk: 256 * MIB,
        inodes: 50_000,
        tool_calls: 100,
        tool_timeout: Duration::from_secs(30),
    };

    /// The most a run may ask for, unless the operator says otherwise.
    pub const MAXIMUM: Self = Self {
        timeout: Duration::from_secs(3600),
        cpu: Duration::from_secs(3600),
        memory: 8192 * MIB,
        code_bytes: 4 * MIB,
        context_bytes: 512 * MIB,
        output_bytes: 16 * MIB,
        result_bytes: 256 * MIB,
        processes: 512,
        open_files: 4096,
        disk: 8192 * MIB,
        inodes: 1_000_000,
        tool_calls: 1_000_000,
        tool_timeout: Duration::from_secs(3600),
    };

    /// Output beyond this, on either stream, ends the run: at least 1 MB, so that a small
    /// `output_bytes` shortens what is kept without making ordinary chatter fatal.
    pub fn output_fatal_bytes(&self) -> u64 {
        self.output_bytes.max(1_000_000)
    }

    /// The first limit that is zero or above `maximum`, as `(name, asked, allowed)`.
    pub(crate) fn exceeds(&self, maximum: &Self) -> Option<(&'static str, String, String)> {
        type Row = (&'static str, &'static str, fn(&Limits) -> u128);
        const ROWS: [Row; 13] = [
            ("timeout", " ms", |limits| limits.timeout.as_millis()),
            ("cpu", " ms", |limits| limits.cpu.as_millis()),
            ("memory", " bytes", |limits| limits.memory.into()),
            ("code_bytes", " bytes", |limits| limits.code_bytes.into()),
            ("context_bytes", " bytes", |limits| limits.context_bytes.into()),
            ("output_bytes", " bytes", |limits| limits.output_bytes.into()),
            ("result_bytes", " bytes", |limits| limits.result_bytes.into()),
            ("processes", "", |limits| limits.processes.into()),
            ("open_files", "", |limits| limits.open_files.into()),
            ("disk", " bytes", |limits| limits.disk.into()),
            ("inodes", "", |limits| limits.inodes.into()),
            ("tool_calls", "", |limits| limits.tool_calls.into()),
            ("tool_timeout", " ms", |limits| limits.tool_timeout.as_millis()),
        ];
        ROWS.into_iter().find_map(|(name, unit, of)| {
            let (asked, allowed) = (of(self), of(maximum));
            let exceeds = asked == 0 || asked > allowed;
            exceeds.then(|| (name, format!("{asked}{unit}"), format!("{allowed}{unit}")))
        })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
