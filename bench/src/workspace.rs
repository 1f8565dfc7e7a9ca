//! `workspace`: a script that edits 8 of the 1,000 files of a directory, and the list of changes;
//! compared with copying the directory and comparing both.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use belljar_contract::{Language, RunRequest, Workspace};

use super::{
    Bench,
    host_cases::HostCases,
    peers::{PeerProgram, time_program},
    rounds::{self, Frequency, TimedCase},
    row::BenchRow,
};

const DIRECTORIES: usize = 40;
const FILES_EACH: usize = 25;
const EDITED: usize = 8;
const REST: Duration = Duration::from_millis(10);

/// Edits the first file of every fifth directory.
const EDIT: &str = "for i in 0 5 10 15 20 25 30 35; do echo edited >> $i/0.txt; done";

/// Measures the whole run: view of the directory, edits, list of changes.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let directory = bench.scratch.path().join("workspace");
    fill(&directory).context("cannot create the directory to work on")?;
    let ours = HostCases::new(request(&directory), REST, |result| {
        let changed = result.changes.len();
        ensure!(
            result.success && changed == EDITED,
            "{changed} files changed instead of {EDITED}: {:?}",
            result.error
        );
        Ok(())
    })?;
    let mut cases = vec![ours.case("belljar workspace")];
    match &bench.peers.bash {
        Some(bash) => cases.push(copy_and_compare(bench, bash, &directory)),
        None => bench.omissions.missing("bash"),
    }
    cases.extend(bubblewrap(bench, &directory));
    let rows = rounds::measure(bench, "workspace", cases)?;
    ours.end();
    Ok(rows)
}

fn request(directory: &Path) -> RunRequest {
    let workspace = Workspace { path: directory.to_owned(), ..Workspace::default() };
    RunRequest { workspace: Some(workspace), ..RunRequest::new(Language::Bash, EDIT) }
}

/// About a kilobyte per file, as in a directory of source code.
fn fill(directory: &Path) -> std::io::Result<()> {
    let text = "a line of some length, as there are many\n".repeat(25);
    for number in 0..DIRECTORIES {
        let inner = directory.join(number.to_string());
        fs::create_dir_all(&inner)?;
        for file in 0..FILES_EACH {
            fs::write(inner.join(format!("{file}.txt")), &text)?;
        }
    }
    Ok(())
}

/// The way without a copy-on-write view: copy and compare. Removing the copy is not timed.
fn copy_and_compare(bench: &Bench<'_>, bash: &PeerProgram, directory: &Path) -> TimedCase<'static> {
    let copy = bench.scratch.path().join("copy");
    let script = format!(
        "cp -a '{original}' '{copy}' && cd '{copy}' && {{ {EDIT}; }}; diff -rq '{original}' . || :",
        original = directory.display(),
        copy = copy.display()
    );
    let program = bash.program.clone();
    TimedCase::new("cp -a and diff -r", &bash.version, Frequency::Less, move || {
        let (time, output) = time_program(&program, &["-c", &script])?;
        fs::remove_dir_all(&copy)?;
        is_all_that_changed(&output).map(|()| time)
    })
}

/// An overlay made by bubblewrap, and the list of files in its upper layer.
fn bubblewrap(bench: &Bench<'_>, directory: &Path) -> Option<TimedCase<'static>> {
    let Some(tool) = &bench.peers.bubblewrap else {
        bench.omissions.missing("bwrap");
        return None;
    };
    let (_, help) = time_program(&tool.program, &["--help"]).unwrap_or_default();
    if !help.contains("--overlay ") {
        let reason = format!("bubblewrap {} has no --overlay; 0.11 has it", tool.version);
        bench.omissions.left_out("bubblewrap overlay", &reason);
        return None;
    }
    let layers = bench.scratch.path().join("layers");
    let (upper, work) = (layers.join("upper"), layers.join("work"));
    let arguments = overlay(directory, &upper, &work);
    let program = tool.program.clone();
    Some(TimedCase::new("bubblewrap overlay", &tool.version, Frequency::Less, move || {
        [&upper, &work].into_iter().try_for_each(fs::create_dir_all)?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (edited, _) = time_program(&program, &arguments)?;
        let find = [&upper.to_string_lossy(), "-type", "f"];
        let (listed, output) = time_program(&PathBuf::from("/usr/bin/find"), &find)?;
        fs::remove_dir_all(&layers)?;
        is_all_that_changed(&output).map(|()| edited + listed)
    }))
}

fn overlay(directory: &Path, upper: &Path, work: &Path) -> Vec<String> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let fixed = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let mut arguments = fixed(&["--ro-bind", "/", "/", "--unshare-all", "--overlay-src"]);
    arguments.extend([path(directory), "--overlay".to_owned()]);
    arguments.extend([path(upper), path(work), path(directory), "--chdir".to_owned()]);
    arguments.push(path(directory));
    arguments.extend(fixed(&["bash", "-c", EDIT]));
    arguments
}

fn is_all_that_changed(list: &str) -> anyhow::Result<()> {
    let lines = list.lines().count();
    ensure!(lines == EDITED, "{lines} files changed instead of {EDITED}: {list}");
    Ok(())
}
