//! The grants of a run, as its guest sees them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The grants of a run that the guest needs to know: for good messages, and to pass values in. The
/// real access was fixed when the cell was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestGrants {
    /// Environment variables of the guest, with their values.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Python modules and builtins that restricted mode would refuse.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Commands beyond the default set.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Nothing is refused at the level of the language.
    #[serde(default)]
    pub permissive: bool,
    /// How the code may reach the hosts that were granted.
    #[serde(default)]
    pub network: GuestNetwork,
    /// Some of the host's paths that were granted, to say where a file is that is looked for elsewhere.
    #[serde(default)]
    pub paths: Vec<String>,
}

/// How code reaches hosts. Which ones it may reach is known to the host of the run only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestNetwork {
    /// Not at all: no host was granted.
    #[default]
    None,
    /// Its host makes the requests.
    Fetch,
    /// The same, and programs have sockets that lead to a proxy.
    Sockets,
}
