//! The cached list of a server's tools on disk, so that listing them does not start the server.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{
    connection::ServerVersion,
    listing::{MAX_LIST_BYTES, is_name},
};
use crate::{ServerSpec, Tool};

/// Files of another format are not read.
const FORMAT: u32 = 1;
/// An older list is still used, and refreshed in the background.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// The tools of one server, as its file holds them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CachedTools {
    format: u32,
    /// When the server listed them, in milliseconds since 1970.
    asked_ms: u64,
    pub(super) version: ServerVersion,
    pub(super) tools: Vec<Tool>,
}

impl CachedTools {
    pub(super) fn now(version: ServerVersion, tools: Vec<Tool>) -> Self {
        Self { format: FORMAT, asked_ms: now_ms(), version, tools }
    }

    /// Whether the list should be refreshed. A time in the future counts as old.
    pub(super) fn is_old(&self) -> bool {
        let age = now_ms().checked_sub(self.asked_ms);
        age.is_none_or(|age| u128::from(age) > FRESH.as_millis())
    }
}

/// The file for one server.
#[derive(Debug)]
pub(super) struct CacheFile {
    path: PathBuf,
    server: String,
}

impl CacheFile {
    pub(super) fn new(directory: &Path, spec: &ServerSpec) -> Self {
        let server = spec.name().to_owned();
        let name = format!("tools-{server}-{}.json", spec.fingerprint());
        Self { path: directory.join(name), server }
    }

    /// Reads the file; `None` if it is missing or not valid.
    pub(super) fn read(&self) -> Option<CachedTools> {
        let bytes = fs::metadata(&self.path).ok()?.len();
        if bytes > 2 * MAX_LIST_BYTES as u64 {
            return None;
        }
        let remembered: CachedTools = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        let is_ours = |tool: &Tool| tool.server == self.server && is_name(&tool.name);
        let is_valid = remembered.format == FORMAT && remembered.tools.iter().all(is_ours);
        is_valid.then_some(remembered)
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, remembered: &CachedTools) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let temporary = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut options = fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        let written = serde_json::to_vec(remembered)
            .map_err(io::Error::from)
            .and_then(|json| file.write_all(&json))
            .and_then(|()| fs::rename(&temporary, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
