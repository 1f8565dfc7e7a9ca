//! File access by rule: the second net, under mounts and descriptors.
//!
//! Files are opened beneath `/tmp` and nowhere else: not in `/proc`, which would tell the host
//! path of the program, and not through a descriptor that leaked in from somewhere. Where the
//! kernel knows how, TCP, abstract sockets and signals to the outside are refused too.

use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

/// Debian 12's kernel 6.1 has ABI 2; what later ABIs add is used where it is there.
const REQUIRED: ABI = ABI::V2;
const WANTED: ABI = ABI::V6;

/// Restricts the calling process and all it will ever start; returns the kernel's ABI.
pub(crate) fn restrict() -> io::Result<i32> {
    let tmp = PathFd::new("/tmp").map_err(io::Error::other)?;
    let abi = apply(tmp).map_err(io::Error::other)?;
    abi.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

fn apply(tmp: PathFd) -> Result<Option<i32>, RulesetError> {
    let usual = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::Refer;
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .add_rule(PathBeneath::new(tmp, usual))?;
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
