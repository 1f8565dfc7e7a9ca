//! Landlock: file access by rule, a second layer under mounts and descriptors.
//!
//! Files can be opened beneath the cell's own directories, its grants and what its engine needs,
//! and nowhere else: not in `/proc`, which would reveal the host path of the program, and not
//! through a leaked descriptor. Where the kernel supports it, TCP (but to the proxy of a cell that has
//! one), abstract sockets and signals to the outside are refused too.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::OnceLock,
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::{NetworkAccess, View, mounts, network::PROXY_PORT};

/// Debian 12's kernel 6.1 has ABI 2; later ABIs are used where the kernel has them.
const REQUIRED: ABI = ABI::V2;
const WANTED: ABI = ABI::V6;

/// The access beneath a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathAccess {
    /// Directories can be listed.
    List,
    /// Files and directories can be read.
    Read,
    /// Programs can be read and executed.
    Execute,
    /// A device can be read and written.
    Device,
    /// Everything can be done with ordinary files and directories.
    Own,
    /// A single ordinary file can be read and written.
    OwnFile,
}

/// One rule: a path by its handle, and the access beneath it.
#[derive(Debug)]
pub(crate) struct AllowedPath {
    handle: OwnedFd,
    reach: PathAccess,
}

impl AllowedPath {
    /// A rule for the file that is at a path now.
    pub(crate) fn at(path: impl AsRef<Path>, reach: PathAccess) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let handle = openat(CWD, path.as_ref(), flags, Mode::empty())?;
        Ok(Self { handle, reach })
    }

    /// The rules for the files that a view lets guests read and execute; missing paths need none.
    pub(crate) fn of_view(view: &View) -> Vec<Self> {
        let read = view.readable.iter().map(|path| (path, PathAccess::Read));
        let execute = view.executable.iter().map(|path| (path, PathAccess::Execute));
        let of_view = read.chain(execute).filter_map(|(path, reach)| Self::at(path, reach).ok());
        let devices = mounts::DEVICES.iter();
        let devices = devices.filter_map(|(path, _)| Self::at(path, PathAccess::Device).ok());
        // The root itself holds only the entries listed here and a cell's own directories.
        let root = Self::at("/", PathAccess::List).ok();
        of_view.chain(devices).chain(root).collect()
    }
}

impl AsFd for AllowedPath {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Restricts the calling process and all it will ever start to these paths and this network; returns
/// the kernel's ABI.
pub(crate) fn restrict(places: &[&AllowedPath], network: NetworkAccess) -> io::Result<i32> {
    let abi = apply(places, network).map_err(io::Error::other)?;
    abi.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Restricts the calling process to `/tmp`, if it can be done at all.
pub(crate) fn restrict_to_tmp() -> io::Result<i32> {
    restrict(&[&AllowedPath::at("/tmp", PathAccess::Own)?], NetworkAccess::None)
}

/// Whether this kernel's Landlock has rules for TCP (ABI 4, Linux 6.7). Restricts nothing.
pub(crate) fn limits_tcp() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let create = || {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessNet::ConnectTcp)?.create()
    };
    *FOUND.get_or_init(|| create().is_ok())
}

fn apply(places: &[&AllowedPath], network: NetworkAccess) -> Result<Option<i32>, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?;
    for place in places {
        ruleset = ruleset.add_rule(PathBeneath::new(place, access(place.reach)))?;
    }
    match network {
        NetworkAccess::None => {}
        NetworkAccess::Proxy => {
            ruleset = ruleset.add_rule(NetPort::new(PROXY_PORT, AccessNet::ConnectTcp))?;
        }
    }
    let status = ruleset.restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Ok(None);
    }
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Some(kernel_abi.unwrap_or(effective_abi as i32))
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    })
}

fn access(reach: PathAccess) -> BitFlags<AccessFs> {
    match reach {
        PathAccess::List => AccessFs::ReadDir.into(),
        PathAccess::Read => AccessFs::ReadFile | AccessFs::ReadDir,
        PathAccess::Execute => AccessFs::ReadFile | AccessFs::Execute,
        PathAccess::Device => AccessFs::ReadFile | AccessFs::WriteFile,
        PathAccess::OwnFile => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate,
        PathAccess::Own => {
            AccessFs::ReadFile
                | AccessFs::ReadDir
                | AccessFs::MakeReg
                | AccessFs::MakeDir
                | AccessFs::MakeSym
                | AccessFs::MakeFifo
                | AccessFs::RemoveFile
                | AccessFs::RemoveDir
                | AccessFs::WriteFile
                | AccessFs::Truncate
                | AccessFs::Refer
        }
    }
}
