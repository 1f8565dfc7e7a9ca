//! Counters and histograms (I1), in the text format that Prometheus reads.
//!
//! Fed from the reports of all runs, however they were started. Labels come from closed sets only.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use belljar_contract::{ErrorKind, RunResult, RunStatus};

use crate::meter::ConnectionMeasurement;

/// Upper bounds of the buckets for times, in milliseconds.
const TIMES_MS: &[f64] =
    &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1e3, 5e3, 30e3, 300e3];
/// Upper bounds of the buckets for memory, in MiB.
const SIZES_MB: &[f64] =
    &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0];
/// Upper bounds of the buckets for counts.
const COUNTS: &[f64] = &[0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0];
/// The most series of answers; routes are few, but clients choose methods.
const MAX_ANSWER_SERIES: usize = 512;
/// All counters and histograms of one server.
#[derive(Debug)]
pub(crate) struct ServerMetrics {
    inner: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    runs: BTreeMap<&'static str, u64>,
    errors: BTreeMap<&'static str, u64>,
    answers: BTreeMap<(String, String, u16), u64>,
    connections: BTreeMap<&'static str, u64>,
    network_bytes: BTreeMap<&'static str, u64>,
    duration: Histogram,
    startup: Histogram,
    execution: Histogram,
    /// Peak memory of the latest run's cell, in MiB.
    memory_now: f64,
    memory: Histogram,
    injected: Histogram,
    discovery: Histogram,
    checkpoint: Histogram,
}

#[derive(Debug)]
struct Histogram {
    name: &'static str,
    help: &'static str,
    bounds: &'static [f64],
    /// One per bound, and one for values above all bounds.
    counts: Vec<u64>,
    sum: f64,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        let times = |name, help| Histogram::new(name, help, TIMES_MS);
        let stopped = RunStatus::ALL.iter().copied().filter(|status| *status != RunStatus::Running);
        let inner = Counts {
            runs: stopped.map(|status| (status.as_str(), 0)).collect(),
            errors: ErrorKind::ALL.iter().map(|kind| (kind.as_str(), 0)).collect(),
            answers: BTreeMap::new(),
            connections: ["allow", "deny", "unreachable"]
                .into_iter()
                .map(|name| (name, 0))
                .collect(),
            network_bytes: ["received", "sent"].into_iter().map(|name| (name, 0)).collect(),
            duration: times("code_execution_duration_ms", "From request to result."),
            startup: times("sandbox_startup_ms", "From admission to a confined cell in hand."),
            execution: times("code_execution_ms", "From code in to answer out."),
            memory_now: 0.0,
            memory: Histogram::new("sandbox_peak_memory_mb", "Peak memory of a cell.", SIZES_MB),
            injected: Histogram::new("tools_injected_count", "Tools offered to a run.", COUNTS),
            discovery: times("tool_discovery_ms", "Time to find tools by intent."),
            checkpoint: times("checkpoint_save_ms", "Time to take a checkpoint."),
        };
        Self { inner: Mutex::new(inner) }
    }
}

impl ServerMetrics {
    /// A run ended or stopped.
    pub(crate) fn run_ended(&self, status: RunStatus, result: Option<&RunResult>, took: Duration) {
        self.with(|inner| {
            *inner.runs.entry(status.as_str()).or_default() += 1;
            inner.duration.add(milliseconds(took));
            let Some(result) = result else { return };
            if let Some(error) = &result.error {
                *inner.errors.entry(error.kind.as_str()).or_default() += 1;
            }
            let metrics = &result.metrics;
            inner.memory_now = metrics.memory_mb;
            inner.startup.add(metrics.startup_ms);
            inner.execution.add(metrics.execution_ms);
            inner.memory.add(metrics.memory_mb);
            inner.injected.add(result.tools.injected.len() as f64);
        });
    }

    /// A run that no host had under way was given up. It has no duration.
    pub(crate) fn given_up(&self) {
        self.with(|inner| {
            *inner.runs.entry(RunStatus::Aborted.as_str()).or_default() += 1;
            *inner.errors.entry(ErrorKind::SandboxError.as_str()).or_default() += 1;
        });
    }

    /// A search for tools took this long.
    pub(crate) fn discovered(&self, took: Duration) {
        self.with(|inner| inner.discovery.add(milliseconds(took)));
    }

    /// Taking a checkpoint took this long.
    pub(crate) fn checkpointed(&self, took: Duration) {
        self.with(|inner| inner.checkpoint.add(milliseconds(took)));
    }

    /// Guest code connected to a host, or was refused. A connection that was allowed may fail later.
    pub(crate) fn connected(&self, connection: ConnectionMeasurement) {
        self.with(|inner| {
            let decision = match connection {
                ConnectionMeasurement::Allowed => "allow",
                ConnectionMeasurement::Refused => "deny",
                ConnectionMeasurement::Failed => "unreachable",
                ConnectionMeasurement::Closed { sent, received } => {
                    *inner.network_bytes.entry("sent").or_default() += sent;
                    *inner.network_bytes.entry("received").or_default() += received;
                    return;
                }
            };
            *inner.connections.entry(decision).or_default() += 1;
        });
    }

    /// Counts an answer by route, method and status.
    pub(crate) fn answered(&self, route: &str, method: &str, status: u16) {
        const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"];
        let method = one_of(METHODS, Some(method), "other");
        self.with(|inner| {
            let key = (route.to_owned(), method.to_owned(), status);
            if inner.answers.len() < MAX_ANSWER_SERIES || inner.answers.contains_key(&key) {
                *inner.answers.entry(key).or_default() += 1;
            }
        });
    }

    /// All metrics, in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        self.with(|inner| {
            let mut text = String::new();
            let head = |text: &mut String, name: &str, help: &str| {
                let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
            };
            head(&mut text, "code_execution_total", "Runs, by how they ended.");
            for (status, count) in &inner.runs {
                let _ = writeln!(text, "code_execution_total{{status=\"{status}\"}} {count}");
            }
            head(&mut text, "code_execution_errors_total", "Runs with an error, by its type.");
            for (kind, count) in &inner.errors {
                let _ = writeln!(text, "code_execution_errors_total{{type=\"{kind}\"}} {count}");
            }
            head(&mut text, "http_requests_total", "Requests, by how they were answered.");
            for ((route, method, status), count) in &inner.answers {
                let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
                let _ = writeln!(text, "http_requests_total{{{labels}}} {count}");
            }
            let name = "network_connections_total";
            head(&mut text, name, "Connections of code to hosts, by outcome.");
            for (decision, count) in &inner.connections {
                let _ = writeln!(text, "{name}{{decision=\"{decision}\"}} {count}");
            }
            let name = "network_bytes_total";
            head(&mut text, name, "Bytes of the connections that have ended.");
            for (direction, count) in &inner.network_bytes {
                let _ = writeln!(text, "{name}{{direction=\"{direction}\"}} {count}");
            }
            let name = "sandbox_memory_mb";
            let help = "Peak memory of the cell of the latest run, in MiB.";
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            let _ = writeln!(text, "{name} {}", inner.memory_now);
            for histogram in [
                &inner.duration,
                &inner.startup,
                &inner.execution,
                &inner.memory,
                &inner.injected,
                &inner.discovery,
                &inner.checkpoint,
            ] {
                histogram.write(&mut text);
            }
            text
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Histogram {
    fn new(name: &'static str, help: &'static str, bounds: &'static [f64]) -> Self {
        Self { name, help, bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    fn add(&mut self, number: f64) {
        let place = self.bounds.iter().position(|bound| number <= *bound);
        if let Some(count) = self.counts.get_mut(place.unwrap_or(self.bounds.len())) {
            *count += 1;
        }
        self.sum += number;
    }

    fn write(&self, text: &mut String) {
        let Self { name, help, .. } = self;
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut below = 0;
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            below += count;
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        let all: u64 = self.counts.iter().sum();
        let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {all}");
        let _ = writeln!(text, "{name}_sum {}\n{name}_count {all}", self.sum);
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn one_of(known: &[&'static str], given: Option<&str>, otherwise: &'static str) -> &'static str {
    known.iter().find(|one| Some(**one) == given).copied().unwrap_or(otherwise)
}
