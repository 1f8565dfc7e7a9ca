//! The limits of a run (A6), their defaults, and the operator's maxima.

use std::{fs, time::Duration};

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

    /// With fewer files open at a time no engine starts.
    pub(crate) const FEWEST_OPEN_FILES: u32 = 16;

    /// The most a run may ask for on this machine, unless the operator says otherwise: a share of its
    /// memory, whatever a caller would like.
    pub fn maximum_here() -> Self {
        machine_memory().map_or(Self::MAXIMUM, |memory| Self::MAXIMUM.on_a_machine_with(memory))
    }

    /// These, as far as a machine with so much memory has room for them.
    #[must_use]
    fn on_a_machine_with(self, memory: u64) -> Self {
        Self {
            memory: self.memory.min(memory / 2),
            // In memory too.
            disk: self.disk.min(memory / 2),
            context_bytes: self.context_bytes.min(memory / 16),
            result_bytes: self.result_bytes.min(memory / 64),
            ..self
        }
    }

    /// These, none above a maximum.
    #[must_use]
    pub fn within(self, maximum: &Self) -> Self {
        Self {
            timeout: self.timeout.min(maximum.timeout),
            cpu: self.cpu.min(maximum.cpu),
            memory: self.memory.min(maximum.memory),
            code_bytes: self.code_bytes.min(maximum.code_bytes),
            context_bytes: self.context_bytes.min(maximum.context_bytes),
            output_bytes: self.output_bytes.min(maximum.output_bytes),
            result_bytes: self.result_bytes.min(maximum.result_bytes),
            processes: self.processes.min(maximum.processes),
            open_files: self.open_files.min(maximum.open_files),
            disk: self.disk.min(maximum.disk),
            inodes: self.inodes.min(maximum.inodes),
            tool_calls: self.tool_calls.min(maximum.tool_calls),
            tool_timeout: self.tool_timeout.min(maximum.tool_timeout),
        }
    }

    /// Output beyond this, on either stream, ends the run: 16 times what is kept of it, though at least
    /// 16 KiB and no more than 1 MB, unless more is kept. So ordinary chatter is cut and not fatal, and
    /// a caller who keeps little waits for little.
    pub fn output_fatal_bytes(&self) -> u64 {
        self.output_bytes.saturating_mul(16).clamp(16 << 10, 1_000_000).max(self.output_bytes)
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

/// What this machine has, or what a container that it is gives it.
fn machine_memory() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let total = total_bytes(&meminfo)?;
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    Some(group.trim().parse::<u64>().map_or(total, |group| group.min(total)))
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes << 10)
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A caller cannot have more than the machine has, whatever the usual maxima are.
    #[test]
    fn s10_the_usual_maxima_are_within_the_machine() {
        let small = Limits::MAXIMUM.on_a_machine_with(1024 * MIB);
        assert_eq!((small.memory, small.disk), (512 * MIB, 512 * MIB));
        assert_eq!((small.context_bytes, small.result_bytes), (64 * MIB, 16 * MIB));
        assert_eq!(small.timeout, Limits::MAXIMUM.timeout);
        assert_eq!(Limits::MAXIMUM.on_a_machine_with(1 << 40), Limits::MAXIMUM);
        // What a run gets that says nothing fits too.
        let tiny = Limits::MAXIMUM.on_a_machine_with(256 * MIB);
        assert_eq!(Limits::DEFAULT.exceeds(&tiny).map(|(name, ..)| name), Some("memory"));
        assert_eq!(Limits::DEFAULT.within(&tiny).exceeds(&tiny), None);
        assert_eq!(Limits::maximum_here().exceeds(&Limits::MAXIMUM), None);
    }

    #[test]
    fn s10_the_machine_says_what_it_has() {
        assert_eq!(
            total_bytes("MemTotal:       24684028 kB\nMemFree: 1 kB\n"),
            Some(25_276_444_672)
        );
        assert_eq!(total_bytes("MemFree: 1 kB\n"), None);
        assert!(machine_memory().is_some_and(|bytes| bytes > 64 * MIB));
    }
}
