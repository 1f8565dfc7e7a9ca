//! The limits of a run by name: how each is written, read and set.
//!
//! One table for the command line and the configuration file, so that a limit exists in both or
//! in neither. Every limit is handled as a `u64`: nanoseconds, bytes or a count.

use std::time::Duration;

use crate::Limits;

use super::quantity::{self, QuantityError};

/// One limit of the requirements' table, by its `[limits]` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitKey {
    /// `timeout`
    Timeout,
    /// `cpu`
    Cpu,
    /// `memory`
    Memory,
    /// `code_bytes`
    CodeBytes,
    /// `context_bytes`
    ContextBytes,
    /// `output_bytes`
    OutputBytes,
    /// `result_bytes`
    ResultBytes,
    /// `processes`
    Processes,
    /// `open_files`
    OpenFiles,
    /// `disk`
    Disk,
    /// `inodes`
    Inodes,
    /// `tool_calls`
    ToolCalls,
    /// `tool_timeout`
    ToolTimeout,
}

impl LimitKey {
    /// Every limit.
    pub const ALL: [Self; 13] = [
        Self::Timeout,
        Self::Cpu,
        Self::Memory,
        Self::CodeBytes,
        Self::ContextBytes,
        Self::OutputBytes,
        Self::ResultBytes,
        Self::Processes,
        Self::OpenFiles,
        Self::Disk,
        Self::Inodes,
        Self::ToolCalls,
        Self::ToolTimeout,
    ];

    /// Its key in `[limits]`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::CodeBytes => "code_bytes",
            Self::ContextBytes => "context_bytes",
            Self::OutputBytes => "output_bytes",
            Self::ResultBytes => "result_bytes",
            Self::Processes => "processes",
            Self::OpenFiles => "open_files",
            Self::Disk => "disk",
            Self::Inodes => "inodes",
            Self::ToolCalls => "tool_calls",
            Self::ToolTimeout => "tool_timeout",
        }
    }

    /// Reads a value as it stands in a file or after a flag.
    pub fn parse(self, text: &str) -> Result<u64, QuantityError> {
        match self {
            Self::Timeout | Self::Cpu | Self::ToolTimeout => {
                quantity::duration(text).map(nanoseconds)
            }
            Self::Processes | Self::OpenFiles | Self::Inodes | Self::ToolCalls => {
                quantity::count(text).map(u64::from)
            }
            Self::Memory
            | Self::CodeBytes
            | Self::ContextBytes
            | Self::OutputBytes
            | Self::ResultBytes
            | Self::Disk => quantity::size(text),
        }
    }

    /// Writes a value for people.
    pub fn show(self, value: u64) -> String {
        match self {
            Self::Timeout | Self::Cpu | Self::ToolTimeout => {
                quantity::show_duration(Duration::from_nanos(value))
            }
            Self::Processes | Self::OpenFiles | Self::Inodes | Self::ToolCalls => {
                quantity::grouped(value)
            }
            Self::Memory
            | Self::CodeBytes
            | Self::ContextBytes
            | Self::OutputBytes
            | Self::ResultBytes
            | Self::Disk => quantity::show_size(value),
        }
    }

    /// The value of this limit.
    pub fn get(self, limits: &Limits) -> u64 {
        match self {
            Self::Timeout => nanoseconds(limits.timeout),
            Self::Cpu => nanoseconds(limits.cpu),
            Self::Memory => limits.memory,
            Self::CodeBytes => limits.code_bytes,
            Self::ContextBytes => limits.context_bytes,
            Self::OutputBytes => limits.output_bytes,
            Self::ResultBytes => limits.result_bytes,
            Self::Processes => limits.processes.into(),
            Self::OpenFiles => limits.open_files.into(),
            Self::Disk => limits.disk,
            Self::Inodes => limits.inodes,
            Self::ToolCalls => limits.tool_calls.into(),
            Self::ToolTimeout => nanoseconds(limits.tool_timeout),
        }
    }

    /// Changes the value of this limit.
    pub fn set(self, limits: &mut Limits, value: u64) {
        let count = u32::try_from(value).unwrap_or(u32::MAX);
        match self {
            Self::Timeout => limits.timeout = Duration::from_nanos(value),
            Self::Cpu => limits.cpu = Duration::from_nanos(value),
            Self::Memory => limits.memory = value,
            Self::CodeBytes => limits.code_bytes = value,
            Self::ContextBytes => limits.context_bytes = value,
            Self::OutputBytes => limits.output_bytes = value,
            Self::ResultBytes => limits.result_bytes = value,
            Self::Processes => limits.processes = count,
            Self::OpenFiles => limits.open_files = count,
            Self::Disk => limits.disk = value,
            Self::Inodes => limits.inodes = value,
            Self::ToolCalls => limits.tool_calls = count,
            Self::ToolTimeout => limits.tool_timeout = Duration::from_nanos(value),
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
