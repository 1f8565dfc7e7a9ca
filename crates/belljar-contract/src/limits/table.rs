//! The table of limits, and the types that are made of it.
//!
//! Order matters in one place: `cpu` stands behind `timeout`, so that a request which states both has
//! the CPU time it states.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InSession, JsonUnit, Quantity};

const MIB: u64 = 1 << 20;

/// A field of [`Limits`], as an amount: nanoseconds, bytes or a count.
trait Amount: Copy {
    fn to_amount(self) -> u64;
    fn from_amount(amount: u64) -> Self;
}

impl Amount for Duration {
    fn to_amount(self) -> u64 {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX)
    }

    fn from_amount(amount: u64) -> Self {
        Self::from_nanos(amount)
    }
}

impl Amount for u64 {
    fn to_amount(self) -> u64 {
        self
    }

    fn from_amount(amount: u64) -> Self {
        amount
    }
}

impl Amount for u32 {
    fn to_amount(self) -> u64 {
        self.into()
    }

    fn from_amount(amount: u64) -> Self {
        Self::try_from(amount).unwrap_or(Self::MAX)
    }
}

macro_rules! limit_table {
    ($(
        $(#[doc = $doc:literal])+
        $limit:ident {
            $field:ident: $type:ty = $default:expr, at_most: $maximum:expr,
            $json:ident: $json_type:ty, also: $also:expr, unit: $unit:ident, quantity: $quantity:ident,
            flag: $flag:literal, help: $help:literal, in_session: $in_session:ident,
            share_of_memory: $share:expr, slack: $slack:literal,
        }
    )*) => {
        /// The resources one run may use. Each limit has a default; none is ever above the
        /// operator's maximum.
        ///
        /// A record that an earlier version wrote has the defaults for limits it does not know.
        ///
        /// ```
        /// use belljar_contract::{Limit, Limits, RunRequest};
        ///
        /// let mut request = RunRequest::typescript("return 1");
        /// request.limits = Limits { memory: 64 << 20, ..Limits::DEFAULT };
        /// assert_eq!(Limit::Memory.get(&request.limits), 64 << 20);
        /// assert_eq!(request.limits.timeout, Limits::DEFAULT.timeout);
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Limits {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl Limits {
            /// The limits of a run that requests none.
            pub const DEFAULT: Self = Self { $($field: $default,)* };
            /// The most a run may ask for, unless the operator says otherwise.
            pub const MAXIMUM: Self = Self { $($field: $maximum,)* };
        }

        /// Limits as a request states them; the operator's defaults hold for those it leaves out.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        #[schemars(rename = "Limits")]
        pub struct LimitsRequest {
            $(
                $(#[doc = $doc])+
                #[serde(
                    deserialize_with = "crate::optional_whole_number",
                    skip_serializing_if = "Option::is_none"
                )]
                pub $json: Option<$json_type>,
            )*
        }

        impl LimitsRequest {
            /// The limits it states, as numbers of their JSON unit.
            pub fn stated(&self) -> Vec<(Limit, u64)> {
                let all = [$((Limit::$limit, self.$json.map(u64::from)),)*];
                all.into_iter().filter_map(|(limit, number)| Some((limit, number?))).collect()
            }

            /// States a limit, as a number of its JSON unit; one that is too large for its field becomes
            /// the largest there is.
            pub fn set(&mut self, limit: Limit, number: u64) {
                match limit { $(Limit::$limit => self.$json = Some(Amount::from_amount(number)),)* }
            }
        }

        /// One limit of a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Limit {
            $($(#[doc = $doc])+ $limit,)*
        }

        impl Limit {
            /// Every limit there is.
            pub const ALL: &'static [Self] = &[$(Self::$limit,)*];
            /// Their names in `belljar.toml`, in the same order.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($field),)*];

            /// Its name in `belljar.toml`, in messages and in records.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$limit => stringify!($field),)* }
            }

            /// Its name in requests.
            pub const fn json_key(self) -> &'static str {
                match self { $(Self::$limit => stringify!($json),)* }
            }

            /// Other names that requests and workflow files may use for it.
            pub const fn also(self) -> &'static [&'static str] {
                match self { $(Self::$limit => $also,)* }
            }

            /// The unit of its number in requests.
            pub const fn json_unit(self) -> JsonUnit {
                match self { $(Self::$limit => JsonUnit::$unit,)* }
            }

            /// The quantity it counts, which decides how people write it.
            pub const fn quantity(self) -> Quantity {
                match self { $(Self::$limit => Quantity::$quantity,)* }
            }

            /// Its flag on the command line, without the dashes.
            pub const fn flag(self) -> &'static str {
                match self { $(Self::$limit => $flag,)* }
            }

            /// Its line in `--help`.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$limit => $help,)* }
            }

            /// Whether it belongs to a session or to each run of one.
            pub const fn in_session(self) -> InSession {
                match self { $(Self::$limit => InSession::$in_session,)* }
            }

            /// The part of a machine's memory (one in so many) that its usual maximum never exceeds.
            pub const fn share_of_memory(self) -> Option<u64> {
                match self { $(Self::$limit => $share,)* }
            }

            /// How far a run can exceed it, in words.
            pub const fn slack(self) -> &'static str {
                match self { $(Self::$limit => $slack,)* }
            }

            /// Its amount: nanoseconds, bytes or a count.
            pub fn get(self, limits: &Limits) -> u64 {
                match self { $(Self::$limit => limits.$field.to_amount(),)* }
            }

            /// Sets its amount; one that is too large for its field becomes the largest there is.
            pub fn set(self, limits: &mut Limits, amount: u64) {
                match self { $(Self::$limit => limits.$field = Amount::from_amount(amount),)* }
            }
        }
    };
}

limit_table! {
    /// Wall time. CPU time follows it unless `cpu_ms` says otherwise.
    Timeout {
        timeout: Duration = Duration::from_secs(30), at_most: Duration::from_secs(3600),
        timeout_ms: u64, also: &["timeoutMS"], unit: Milliseconds, quantity: Time,
        flag: "timeout", help: "Wall time, e.g. 300ms, 30s, 5m", in_session: OfEachRun,
        share_of_memory: None, slack: "75 ms, so that the code can report its position",
    }
    /// CPU time of all processes of the run together.
    Cpu {
        cpu: Duration = Duration::from_secs(30), at_most: Duration::from_secs(3600),
        cpu_ms: u64, also: &[], unit: Milliseconds, quantity: Time,
        flag: "cpu", help: "CPU time", in_session: OfEachRun,
        share_of_memory: None, slack: "75 ms, and one sampling period (20 ms) of each process",
    }
    /// Memory of all processes of the run together, in MiB.
    Memory {
        memory: u64 = 512 * MIB, at_most: 8192 * MIB,
        memory_mb: u64, also: &[
            "heapLimitMB", "heap_limit_mb", "max_memory_mb", "memory_limit", "memory_limit_mb",
            "memoryLimitMB",
        ],
        unit: Mebibytes, quantity: Size,
        flag: "memory", help: "Memory, e.g. 64MiB, 1GiB", in_session: AtMostTheSessions,
        share_of_memory: Some(2),
        slack: "TypeScript 32 MiB; Python and bash 8 MiB per process, 16 MiB per run",
    }
    /// Size of the code.
    CodeBytes {
        code_bytes: u64 = 50_000, at_most: 4 * MIB,
        code_bytes: u64, also: &[], unit: Bytes, quantity: Size,
        flag: "max-code", help: "Size of the code", in_session: OfEachRun,
        share_of_memory: None, slack: "none",
    }
    /// Size of the context, as JSON.
    ContextBytes {
        context_bytes: u64 = 64 * MIB, at_most: 512 * MIB,
        context_bytes: u64, also: &[], unit: Bytes, quantity: Size,
        flag: "max-context", help: "Size of the context", in_session: OfEachRun,
        share_of_memory: Some(16), slack: "none",
    }
    /// Captured output kept of each stream.
    OutputBytes {
        output_bytes: u64 = 64 << 10, at_most: 16 * MIB,
        output_bytes: u64, also: &["max_output_bytes"], unit: Bytes, quantity: Size,
        flag: "max-output", help: "Output kept per stream", in_session: OfEachRun,
        share_of_memory: None,
        slack: "none for the kept output",
    }
    /// Size of the value, as JSON.
    ResultBytes {
        result_bytes: u64 = 16 * MIB, at_most: 256 * MIB,
        result_bytes: u64, also: &[], unit: Bytes, quantity: Size,
        flag: "max-result", help: "Size of the value", in_session: OfEachRun,
        share_of_memory: Some(64), slack: "none",
    }
    /// Processes and threads alive at the same time.
    Processes {
        processes: u32 = 32, at_most: 512,
        processes: u32, also: &[], unit: Pieces, quantity: Count,
        flag: "processes", help: "Processes and threads", in_session: AtMostTheSessions,
        share_of_memory: None, slack: "none",
    }
    /// Files that one process may have open.
    OpenFiles {
        open_files: u32 = 256, at_most: 4096,
        open_files: u32, also: &[], unit: Pieces, quantity: Count,
        flag: "open-files", help: "Open files", in_session: AtMostTheSessions,
        share_of_memory: None, slack: "none",
    }
    /// `/work` and `/tmp` together, in MiB.
    Disk {
        disk: u64 = 256 * MIB, at_most: 8192 * MIB,
        disk_mb: u64, also: &[], unit: Mebibytes, quantity: Size,
        flag: "disk", help: "Total size of files the code may write", in_session: TheSessions,
        share_of_memory: Some(2), slack: "1 MiB for one file in a granted tree",
    }
    /// Files in `/work` and `/tmp` together.
    Inodes {
        inodes: u64 = 50_000, at_most: 1_000_000,
        inodes: u64, also: &[], unit: Pieces, quantity: Count,
        flag: "inodes", help: "Files in /work and /tmp", in_session: TheSessions,
        share_of_memory: None, slack: "none",
    }
    /// Tool calls that one run may make.
    ToolCalls {
        tool_calls: u32 = 100, at_most: 1_000_000,
        tool_calls: u32, also: &["max_tool_calls"], unit: Pieces, quantity: Count,
        flag: "max-tool-calls", help: "Tool calls", in_session: OfEachRun,
        share_of_memory: None, slack: "none",
    }
    /// Wall time of one tool call.
    ToolTimeout {
        tool_timeout: Duration = Duration::from_secs(30), at_most: Duration::from_secs(3600),
        tool_timeout_ms: u64, also: &[], unit: Milliseconds, quantity: Time,
        flag: "tool-timeout", help: "Wall time of one tool call", in_session: OfEachRun,
        share_of_memory: None, slack: "none",
    }
    /// Network connections that one run may make.
    NetConnections {
        net_connections: u32 = 64, at_most: 1_000_000,
        net_connections: u32, also: &["max_net"], unit: Pieces, quantity: Count,
        flag: "max-net", help: "Network connections", in_session: OfEachRun,
        share_of_memory: None, slack: "none",
    }
    /// Bytes that one run may send to its hosts, and bytes that it may receive.
    NetBytes {
        net_bytes: u64 = 1024 * MIB, at_most: 1024 * 1024 * MIB,
        net_bytes: u64, also: &["max_net_bytes"], unit: Bytes, quantity: Size,
        flag: "max-net-bytes", help: "Network bytes, each way", in_session: OfEachRun,
        share_of_memory: None, slack: "none",
    }
}
