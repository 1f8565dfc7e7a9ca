//! What was measured, kept with where and of what (K1): one file per release in `docs/benchmarks/`.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{peers, row::BenchRow};

/// Everything needed to read figures again later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BenchRecord {
    /// When, in milliseconds since 1970.
    recorded_ms: i64,
    belljar: Build,
    pub(super) machine: MachineInfo,
    /// What was measured beside Belljar, with versions.
    versions: BTreeMap<String, String>,
    pub(super) rows: Vec<BenchRow>,
}

/// Which Belljar it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Build {
    version: String,
    /// `release` or `debug`; figures of the two do not compare.
    profile: String,
    /// The commit of the current directory, if that is a checkout; `+` if files were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
}

/// Where it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MachineInfo {
    processor: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
    architecture: String,
}

impl MachineInfo {
    /// This machine.
    pub(super) fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let model = cpu
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or("unknown processor", |(_, model)| model.trim());
        let memory = read("/proc/meminfo");
        let kibibytes = memory
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))
            .and_then(|number| number.trim().parse::<u64>().ok());
        Self {
            processor: model.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kibibytes.unwrap_or_default() / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
        }
    }

    /// On one line.
    pub(super) fn text(&self) -> String {
        format!("{} × {}, Linux {}", self.cores, self.processor, self.kernel)
    }
}

impl BenchRecord {
    /// Of these rows, measured just now.
    pub(super) fn new(rows: &[BenchRow]) -> Self {
        let others = rows.iter().filter(|row| !row.is_ours() && !row.version.is_empty());
        let versions = others.map(|row| (row.case.clone(), row.version.clone())).collect();
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        Self {
            recorded_ms: belljar_project::now_ms(),
            belljar: Build {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                profile: profile.to_owned(),
                commit: commit(),
            },
            machine: MachineInfo::this(),
            versions,
            rows: rows.to_vec(),
        }
    }

    /// Writes it to a file, which is not to be there yet; into a directory, under the version's name.
    pub(super) fn write(&self, to: &Path) -> anyhow::Result<PathBuf> {
        let path = match to.is_dir() {
            true => to.join(format!("{}.json", self.belljar.version)),
            false => to.to_owned(),
        };
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let written =
            fs::File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("could not write {}", path.display()))?;
        Ok(path)
    }
}

/// The commit of the checkout in the current directory.
fn commit() -> Option<String> {
    let git = peers::on_path("git").next()?;
    let (_, commit) = peers::time_program(&git, &["rev-parse", "--short=12", "HEAD"]).ok()?;
    let (_, changed) = peers::time_program(&git, &["status", "--porcelain"]).ok()?;
    let mark = if changed.trim().is_empty() { "" } else { "+" };
    Some(format!("{}{mark}", commit.trim()))
}
