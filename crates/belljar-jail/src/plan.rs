//! Plans: what is to be in force, as values.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Mechanism;

/// How a zygote and all its cells are to be confined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZygotePlan {
    /// Layers left out on purpose. Empty is the `full` tier; anything else is `weakened`, and
    /// every result says so.
    #[serde(default)]
    without: BTreeSet<Mechanism>,
}

impl ZygotePlan {
    /// Every layer.
    pub fn full() -> Self {
        Self::default()
    }

    /// The same plan with one layer less. For tests that show the layer matters.
    #[must_use]
    pub fn without(mut self, mechanism: Mechanism) -> Self {
        self.without.insert(mechanism);
        self
    }

    /// Whether the plan asks for this layer.
    pub fn asks_for(&self, mechanism: Mechanism) -> bool {
        !self.without.contains(&mechanism)
    }

    /// Whether the plan asks for every layer.
    pub fn is_full(&self) -> bool {
        self.without.is_empty()
    }

    /// Every layer the plan asks for.
    pub fn layers(&self) -> Vec<&'static str> {
        let asked = Mechanism::ALL.iter().filter(|mechanism| self.asks_for(**mechanism));
        asked.map(|mechanism| mechanism.as_str()).collect()
    }
}

/// What one cell may use, as far as the kernel can say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellLimits {
    /// Memory on top of what the cell inherits from its zygote, in bytes.
    pub memory_bytes: u64,
    /// Whole seconds of CPU time.
    pub cpu_seconds: u64,
    /// Processes and threads of the guest.
    pub processes: u64,
    /// Open files.
    pub open_files: u64,
    /// Bytes in `/tmp`.
    pub disk_bytes: u64,
    /// Files in `/tmp`.
    pub inodes: u64,
}
