//! Belljar's side of the benchmarks that run programs: a warm host, measured in three ways.

use std::time::{Duration, Instant};

use anyhow::ensure;
use belljar_contract::{RunRequest, RunResult};
use belljar_project::Sandbox;
use tokio::runtime::Runtime;

use super::{
    peers::time_program,
    program,
    rounds::{Frequency, TimedCase},
    warm_host_of,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A warm host, and the request that is repeated.
pub(super) struct HostCases {
    runtime: Runtime,
    sandbox: Sandbox,
    request: RunRequest,
    /// Long enough for the host to remove the used cell and park another one.
    rest: Duration,
    /// Returns an error if the result is wrong; then the figure does not count.
    check: fn(&RunResult) -> anyhow::Result<()>,
}

impl HostCases {
    /// Starts a host and fills its pool for the request's engine.
    pub(super) fn new(
        request: RunRequest,
        rest: Duration,
        check: fn(&RunResult) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let (runtime, sandbox) = warm_host_of([request.engine()])?;
        Ok(Self { runtime, sandbox, request, rest, check })
    }

    /// Times runs back to back, and runs with a pause between them. After a pause each run finds a
    /// parked cell, just as a pre-started peer is already waiting.
    pub(super) fn cases(&self, name: &str) -> [TimedCase<'_>; 2] {
        let back_to_back = format!("{name}, back to back");
        [
            TimedCase::new(name, VERSION, Frequency::Always, || self.once(self.rest)),
            TimedCase::new(&back_to_back, VERSION, Frequency::Always, || self.once(Duration::ZERO)),
        ]
    }

    /// Times only runs with a pause between them, for requests that no parked cell can serve.
    pub(super) fn case(&self, name: &str) -> TimedCase<'_> {
        TimedCase::new(name, VERSION, Frequency::Less, || self.once(self.rest))
    }

    /// Ends the host and all its processes.
    pub(super) fn end(self) {
        self.runtime.block_on(self.sandbox.shutdown());
    }

    fn once(&self, rest: Duration) -> anyhow::Result<Duration> {
        let request = self.request.clone();
        let (time, result) = self.runtime.block_on(async {
            if !rest.is_zero() {
                tokio::time::sleep(rest).await;
            }
            let began = Instant::now();
            let result = self.sandbox.run_request(request).await;
            (began.elapsed(), result)
        });
        (self.check)(&result)?;
        Ok(time)
    }
}

/// Times the whole `belljar run` command, from process start to exit.
pub(super) fn one_shot(
    name: &str,
    language: &'static str,
    code: &'static str,
) -> TimedCase<'static> {
    let name = format!("{name}, one-shot");
    TimedCase::new(&name, VERSION, Frequency::Seldom, move || {
        let arguments = ["run", "-l", language, "-c", code, "--json"];
        let (time, output) = time_program(&program::belljar()?, &arguments)?;
        ensure!(output.contains("\"success\": true"), "the run failed: {output}");
        Ok(time)
    })
}
