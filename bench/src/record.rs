//! Records of measurements with machine and versions: one file per release in `docs/benchmarks/`.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{peers, row::BenchRow};

/// Everything needed to interpret the figures later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BenchRecord {
    /// Time of the measurement, in milliseconds since 1970.
    recorded_ms: i64,
    belljar: Build,
    pub(super) machine: MachineInfo,
    /// The peers that were measured, with versions.
    versions: BTreeMap<String, String>,
    pub(super) rows: Vec<BenchRow>,
}

/// The Belljar build that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Build {
    version: String,
    /// `release` or `debug`; figures of the two cannot be compared.
    profile: String,
    /// The commit of the checkout in the current directory, if it is one; ends with `+` if files
    /// were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
}

/// The machine that the benchmarks ran on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MachineInfo {
    processor: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
    architecture: String,
}

impl MachineInfo {
    /// Describes the machine this process runs on.
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

    /// A description of the machine in one line.
    pub(super) fn text(&self) -> String {
        format!("{} × {}, Linux {}", self.cores, self.processor, self.kernel)
    }
}

impl BenchRecord {
    /// A record of rows that were measured just now.
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

    /// Writes the record to a new file; in a directory, under the version's name. An existing file
    /// is never overwritten.
    pub(super) fn write(&self, to: &Path) -> anyhow::Result<PathBuf> {
        let path = match to.is_dir() {
            true => to.join(format!("{}.json", self.belljar.version)),
            false => to.to_owned(),
        };
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let written =
            fs::File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write {}", path.display()))?;
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
