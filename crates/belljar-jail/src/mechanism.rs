//! The layers of confinement, by the names that results and messages use.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! mechanisms {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// One layer of confinement.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Mechanism { $($(#[$doc])* $variant,)* }

        impl Mechanism {
            /// Every layer there is, in the order they are put in force.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The layer's name in results and messages.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

mechanisms! {
    /// A host that runs as root becomes an ordinary user first.
    UnprivilegedUser = "unprivileged-user",
    /// A user namespace for the zygote, and one for each cell.
    UserNamespace = "userns",
    /// A mount namespace for the zygote, and one for each cell.
    MountNamespace = "mountns",
    /// A pid namespace for the zygote, and one for each cell.
    PidNamespace = "pidns",
    /// A network namespace with nothing in it.
    NetworkNamespace = "netns",
    /// System V and POSIX IPC of the cell's own.
    IpcNamespace = "ipcns",
    /// A host name that is not the machine's.
    UtsNamespace = "utsns",
    /// A view of control groups that ends at the zygote's own.
    CgroupNamespace = "cgroupns",
    /// A minimal read-only root by `pivot_root`.
    ReadOnlyRoot = "read-only-root",
    /// A sized `/tmp` of the cell's own.
    PrivateTmp = "private-tmp",
    /// A `/proc` that shows the cell only.
    PrivateProc = "private-proc",
    /// No capability, and no way to gain one.
    Capabilities = "no-capabilities",
    /// `execve` never adds privilege.
    NoNewPrivileges = "no-new-privs",
    /// Kernel limits on memory, processes, files, CPU.
    ResourceLimits = "rlimits",
    /// No ptrace from outside, no core dump.
    Undumpable = "undumpable",
    /// No inherited descriptor but the cell's own socket.
    ClosedDescriptors = "closed-fds",
    /// File access by rule, a second layer under the mounts.
    Landlock = "landlock",
    /// The system-call filter, which is loaded last.
    Seccomp = "seccomp",
}

impl fmt::Display for Mechanism {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
