//! The limits of a run (A6): one table, from which everything else is derived.
//!
//! A limit is a row: its field, its name in `belljar.toml`, its names and unit in requests and workflow
//! files, its flag, its default, its maximum, how a run in a session may change it, and how far it can be
//! exceeded. The command line, the configuration file, the HTTP API, the MCP tool, workflow files,
//! sessions, records and `docs/limits.md` follow this table. Adding a limit is one row here and one place
//! that enforces it.

mod table;

use std::time::Duration;

pub use table::{Limit, Limits, LimitsRequest};

/// The quantity a limit counts, which decides how people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A time; amounts are nanoseconds.
    Time,
    /// A size; amounts are bytes.
    Size,
    /// A number of things.
    Count,
}

/// The unit of a limit in JSON requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonUnit {
    /// Thousandths of a second.
    Milliseconds,
    /// Mebibytes: a number of 1 means 1,048,576 bytes.
    Mebibytes,
    /// Bytes, without a factor.
    Bytes,
    /// A plain count: processes, files, tool calls.
    Pieces,
}

impl JsonUnit {
    /// The amount's own units (nanoseconds, bytes, pieces) in one of this unit.
    const fn scale(self) -> u64 {
        match self {
            Self::Milliseconds => 1_000_000,
            Self::Mebibytes => 1 << 20,
            Self::Bytes | Self::Pieces => 1,
        }
    }
}

/// Whether a limit belongs to the session or to each of its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InSession {
    /// Each run has its own.
    OfEachRun,
    /// The session has it; a run of the session has no more.
    AtMostTheSessions,
    /// The session has it, and so does each of its runs.
    TheSessions,
}

/// A limit that is zero or above the operator's maximum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitExcess {
    /// The limit that the request exceeds.
    pub limit: Limit,
    /// The requested amount, with its unit.
    pub asked: String,
    /// The most there may be, with its unit.
    pub allowed: String,
}

impl Limit {
    /// The limit of this name in `belljar.toml`.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|limit| limit.key() == key)
    }

    /// The names that requests and workflow files may use for it, the usual one first.
    pub fn names(self) -> Vec<&'static str> {
        let mut names = vec![self.json_key()];
        names.extend(self.also());
        names
    }

    /// The smallest number of its JSON unit that is at least this amount.
    pub const fn to_json(self, amount: u64) -> u64 {
        amount.div_ceil(self.json_unit().scale())
    }

    const fn amount_of(self, number: u64) -> u64 {
        number.saturating_mul(self.json_unit().scale())
    }

    fn lower(self, limits: &mut Limits, most: u64) {
        let amount = self.get(limits).min(most);
        self.set(limits, amount);
    }

    /// An amount as it is compared and shown: times in whole milliseconds.
    const fn comparable(self, amount: u64) -> u64 {
        match self.quantity() {
            Quantity::Time => amount / 1_000_000,
            Quantity::Size | Quantity::Count => amount,
        }
    }

    fn with_unit(self, amount: u64) -> String {
        match self.quantity() {
            Quantity::Time => format!("{} ms", Duration::from_nanos(amount).as_millis()),
            Quantity::Size => format!("{amount} bytes"),
            Quantity::Count => amount.to_string(),
        }
    }
}

impl Limits {
    /// With fewer files open at a time no engine starts.
    pub const FEWEST_OPEN_FILES: u32 = 16;

    /// These, none above a maximum.
    #[must_use]
    pub fn within(mut self, maximum: &Self) -> Self {
        for limit in Limit::ALL {
            limit.lower(&mut self, limit.get(maximum));
        }
        self
    }

    /// These, as far as a machine with so much memory has room for them.
    #[must_use]
    pub fn on_a_machine_with(mut self, memory_bytes: u64) -> Self {
        for limit in Limit::ALL {
            if let Some(share) = limit.share_of_memory() {
                limit.lower(&mut self, memory_bytes / share);
            }
        }
        self
    }

    /// These, with what a request asks for in their place. CPU time follows wall time where a request
    /// states only the latter. Whether a limit is within the operator's maximum is for the host to check.
    #[must_use]
    pub fn with(mut self, asked: &LimitsRequest) -> Self {
        for (limit, number) in asked.stated() {
            limit.set(&mut self, limit.amount_of(number));
            if limit == Limit::Timeout {
                self.cpu = self.timeout;
            }
        }
        self
    }

    /// The limits of a run that asks for these in a session that has `session`.
    #[must_use]
    pub fn in_session(mut self, session: &Self) -> Self {
        for limit in Limit::ALL {
            let own = limit.get(session);
            match limit.in_session() {
                InSession::OfEachRun => {}
                InSession::AtMostTheSessions => limit.lower(&mut self, own),
                InSession::TheSessions => limit.set(&mut self, own),
            }
        }
        self
    }

    /// These, with the session's own value of every limit that a session has for all of its runs: for a
    /// run that cannot ask for another.
    #[must_use]
    pub fn inheriting(mut self, session: &Self) -> Self {
        for limit in Limit::ALL.iter().filter(|limit| limit.in_session() != InSession::OfEachRun) {
            limit.set(&mut self, limit.get(session));
        }
        self
    }

    /// The first limit that is zero or above its maximum.
    pub fn excess(&self, maximum: &Self) -> Option<LimitExcess> {
        Limit::ALL.iter().find_map(|limit| {
            let (asked, allowed) = (limit.get(self), limit.get(maximum));
            let (compared, most) = (limit.comparable(asked), limit.comparable(allowed));
            (compared == 0 || compared > most).then(|| LimitExcess {
                limit: *limit,
                asked: limit.with_unit(asked),
                allowed: limit.with_unit(allowed),
            })
        })
    }

    /// Output beyond this, on either stream, ends the run: 16 times what is kept of it, though at least
    /// 16 KiB and no more than 1 MB, unless more is kept. So ordinary chatter is cut and not fatal, and
    /// a caller who keeps little waits for little.
    pub fn output_fatal_bytes(&self) -> u64 {
        self.output_bytes.saturating_mul(16).clamp(16 << 10, 1_000_000).max(self.output_bytes)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl LimitsRequest {
    /// These, with those of another request for the limits that these leave out.
    #[must_use]
    pub fn or(self, usual: &Self) -> Self {
        let mut all = usual.clone();
        for (limit, number) in self.stated() {
            all.set(limit, number);
        }
        all
    }

    /// The first limit it states that a session has for all of its runs.
    pub fn first_of_session(&self) -> Option<Limit> {
        let mut stated = self.stated().into_iter().map(|(limit, _)| limit);
        stated.find(|limit| limit.in_session() != InSession::OfEachRun)
    }
}
