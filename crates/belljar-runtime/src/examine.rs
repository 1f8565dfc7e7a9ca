//! Tries what this machine can enforce (I3).

use std::{path::Path, process::Stdio};

pub use belljar_jail::examine::{Finding, FindingState};
use belljar_jail::{
    cgroup::Delegation,
    examine::{EXAMINE_ARGUMENT, memory_cgroup},
};

use crate::LaunchError;

/// Tries every layer in a process of `program`, which is normally the running program.
pub async fn examine(program: &Path) -> Result<Vec<Finding>, LaunchError> {
    let program = program.to_owned();
    let tried = tokio::task::spawn_blocking(move || try_layers(&program)).await;
    let output = tried.map_err(|_| LaunchError::NoHandshake)?.map_err(LaunchError::Spawn)?;
    let mut findings: Vec<Finding> =
        serde_json::from_slice(&output).map_err(|_| LaunchError::Protocol)?;
    findings.push(memory_cgroup(&Delegation::of_this_process()));
    Ok(findings)
}

#[expect(clippy::disallowed_methods, reason = "layers are tried in a process of their own")]
fn try_layers(program: &Path) -> std::io::Result<Vec<u8>> {
    let mut command = std::process::Command::new(program);
    command.arg(EXAMINE_ARGUMENT).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    Ok(command.output()?.stdout)
}
