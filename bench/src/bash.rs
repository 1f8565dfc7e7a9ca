//! `bash`: `echo hi`, compared with the plain shell and the shell in bubblewrap.

use std::{path::PathBuf, time::Duration};

use anyhow::ensure;
use belljar_contract::{Language, RunRequest};

use super::{
    Bench,
    host_cases::{HostCases, one_shot},
    peers::time_program,
    rounds::{self, Frequency, TimedCase},
    row::BenchRow,
};

const CODE: &str = "echo hi";
const REST: Duration = Duration::from_millis(10);
const BASH: [&str; 2] = ["-c", CODE];
const BUBBLEWRAP: [&str; 7] = ["--ro-bind", "/", "/", "--unshare-all", "bash", "-c", CODE];

/// Measures the time from request to result.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let request = RunRequest::new(Language::Bash, CODE);
    let ours = HostCases::new(request, REST, |result| {
        ensure!(result.success && result.stdout == "hi\n", "a run failed: {result:?}");
        Ok(())
    })?;
    let mut cases: Vec<TimedCase<'_>> = ours.cases("belljar bash").into();
    cases.push(one_shot("belljar bash", "bash", CODE));
    let peers = [
        ("bash -c", "bash", &bench.peers.bash, &BASH[..]),
        ("bubblewrap bash -c", "bwrap", &bench.peers.bubblewrap, &BUBBLEWRAP[..]),
    ];
    for (case, name, found, arguments) in peers {
        match found {
            Some(tool) => cases.push(peer(case, &tool.version, tool.program.clone(), arguments)),
            None => bench.omissions.missing(name),
        }
    }
    let rows = rounds::measure(bench, "bash", cases)?;
    ours.end();
    Ok(rows)
}

fn peer(
    name: &str,
    version: &str,
    program: PathBuf,
    arguments: &'static [&'static str],
) -> TimedCase<'static> {
    TimedCase::new(name, version, Frequency::Less, move || {
        let (time, output) = time_program(&program, arguments)?;
        ensure!(output == "hi", "it answered {output:?}");
        Ok(time)
    })
}
