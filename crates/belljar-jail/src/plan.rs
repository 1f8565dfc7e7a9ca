//! Plans: which layers, limits and grants are to be in force, as values.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Mechanism, landlock};

/// How a zygote and all its cells are to be confined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZygotePlan {
    /// Layers left out on purpose. Empty is the `full` tier; anything else is `weakened`, and
    /// every result says so.
    #[serde(default)]
    without: BTreeSet<Mechanism>,
    #[serde(default)]
    guests: Guests,
    #[serde(default)]
    view: View,
    #[serde(default)]
    network: NetworkAccess,
}

/// The network of a zygote's cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkAccess {
    /// No socket at all, in a network namespace with nothing in it.
    #[default]
    None,
    /// Each cell has a network namespace of its own, and can connect to one port in it: the host
    /// holds the listener there.
    Proxy,
}

/// The kind of guest a zygote has; it decides which system calls they may make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guests {
    /// One process of one thread that maps no code and starts nothing.
    #[default]
    Script,
    /// Programs of the host machine, which load libraries, have threads, start processes.
    Programs,
}

/// The software of the host that a zygote and its cells see, all of it read-only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Directories and files that appear at the path they have on the host.
    pub trees: Vec<PathBuf>,
    /// The same at another path, as `(path on the host, path in the cell)`.
    #[serde(default)]
    pub moved: Vec<(PathBuf, PathBuf)>,
    /// Symbolic links, as `(path, target)`.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// The part of it that guests may read.
    pub readable: Vec<PathBuf>,
    /// Files guests may execute.
    pub executable: Vec<PathBuf>,
}

impl ZygotePlan {
    /// A plan with every layer, for guests that are scripts.
    pub fn full() -> Self {
        Self::default()
    }

    /// The same plan for guests that are programs of the host.
    #[must_use]
    pub fn for_programs(mut self, view: View) -> Self {
        self.guests = Guests::Programs;
        self.view = view;
        self
    }

    /// The same plan for cells that can connect to a proxy of the host's, and to nothing else.
    #[must_use]
    pub fn with_network(mut self, network: NetworkAccess) -> Self {
        self.network = network;
        self
    }

    /// The same plan without one layer. For tests that show that the layer matters.
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

    /// Every layer the plan asks for. The layers of a cell with a proxy name `landlock-tcp` if the kernel
    /// can limit its connections to the proxy's port; before Linux 6.7, namespace and filter do so alone.
    pub fn layers(&self) -> Vec<&'static str> {
        let asked = Mechanism::ALL.iter().filter(|mechanism| self.asks_for(**mechanism));
        let is_tcp_limited = self.network == NetworkAccess::Proxy
            && self.asks_for(Mechanism::Landlock)
            && landlock::limits_tcp();
        let tcp = is_tcp_limited.then_some("landlock-tcp");
        asked.map(|mechanism| mechanism.as_str()).chain(tcp).collect()
    }

    /// The kind of guest the plan is for.
    pub fn guests(&self) -> Guests {
        self.guests
    }

    /// The software of the host that its guests see.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The network of its cells.
    pub fn network(&self) -> NetworkAccess {
        self.network
    }

    pub(crate) fn view_mut(&mut self) -> &mut View {
        &mut self.view
    }
}

/// Whether a cell is for one run or for many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// A cell for one run.
    #[default]
    Single,
    /// A cell for the runs of a session, and of sessions that branch off it.
    Session,
}

/// How much one cell may use, as far as the kernel enforces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellLimits {
    /// Memory on top of what the cell inherits from its zygote, in bytes.
    pub memory_bytes: u64,
    /// Whole seconds of CPU time.
    pub cpu_seconds: u64,
    /// Processes and threads of the guest.
    pub processes: u64,
    /// Files that one process of the cell may have open.
    pub open_files: u64,
    /// Bytes in `/work` and `/tmp` together.
    pub disk_bytes: u64,
    /// Files in `/work` and `/tmp` together.
    pub inodes: u64,
}

/// The files of the host that one cell is granted. The trees themselves travel as descriptors, in
/// the same order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellGrants {
    /// The granted files and directories.
    pub trees: Vec<GrantedTree>,
    /// Granted commands, as `(name, program)`.
    pub commands: Vec<(String, PathBuf)>,
    /// The certificate of an authority that programs of this cell trust besides the machine's, as
    /// PEM. Only cells of programs with a network have the file for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

impl CellGrants {
    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        let Self { trees, commands, authority } = self;
        trees.is_empty() && commands.is_empty() && authority.is_none()
    }
}

/// A tree of the host's that one cell is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantedTree {
    /// Its path on the host and in the cell, except that a workspace is at `/work`.
    pub path: PathBuf,
    /// Whether the cell may write to it.
    pub access: TreeAccess,
    /// Whether it is a directory; otherwise it is a single file.
    pub is_directory: bool,
    /// Its device and inode, as the host saw them when the run was admitted. A path that leads to
    /// another file by the time the cell is made is refused.
    pub identity: (u64, u64),
    /// Paths that the cell must not see, whether anything is there or not: relative to the tree, of
    /// plain names only, none beneath another. Empty for a tree with [`TreeAccess::Write`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covered: Vec<PathBuf>,
    /// Paths of a writable tree that the cell may only read: relative to the tree, of plain names
    /// only, of files and directories that exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<PathBuf>,
}

/// The access of a cell to a granted tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TreeAccess {
    /// The cell may read it.
    Read,
    /// The cell may read it and write to it.
    Write,
    /// The cell may read it; its writes go to a layer of its own.
    Workspace,
}

impl GrantedTree {
    /// The path where it appears in the cell.
    pub fn target(&self) -> &Path {
        match self.access {
            TreeAccess::Workspace => Path::new("/work"),
            TreeAccess::Read | TreeAccess::Write => &self.path,
        }
    }
}
