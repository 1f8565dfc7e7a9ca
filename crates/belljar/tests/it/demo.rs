//! The story in one command.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use belljar_testing::sandboxed;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::command::{BELLJAR, Place, belljar, outcome};

#[sandboxed]
#[test]
fn a1_the_demo_turns_a_megabyte_into_a_few_hundred_bytes() {
    let outcome = belljar(&["demo", "--json"]);
    let figures = outcome.json();
    assert_eq!(outcome.status, Some(0), "{outcome:#?}");
    assert_eq!(figures["commits"], 1000);
    assert_eq!(figures["answer"]["commits"], 1000);
    assert_eq!(figures["run"]["isolation"]["tier"], "full");
    assert_eq!(figures["run"]["metrics"]["toolCalls"], 1);
    assert!(figures["tool"].as_str().unwrap().contains("mcp.github.listCommits("), "{figures}");
    let bytes_in = figures["bytes_in"].as_u64().unwrap();
    let bytes_out = figures["bytes_out"].as_u64().unwrap();
    assert!((1_100_000..1_300_000).contains(&bytes_in), "{bytes_in}");
    assert!((400..=600).contains(&bytes_out), "{bytes_out}");
    assert!(figures["saved_percent"].as_f64().unwrap() > 99.9);
}

#[sandboxed]
#[test]
fn a1_the_demo_is_told_to_people_too() {
    let outcome = belljar(&["demo"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""));
    let headings: Vec<&str> =
        outcome.stdout.lines().filter_map(|line| line.strip_prefix("The ")).collect();
    assert_eq!(headings.len(), 4, "{}", outcome.stdout);
}

/// A demo whose files go into `tmp/` of a place.
fn demo(place: &Place) -> (Child, PathBuf) {
    let files = place.path().join("tmp");
    fs::create_dir_all(&files).unwrap();
    let mut command = place.command(BELLJAR);
    command.args(["demo", "--json"]).env("TMPDIR", &files).process_group(0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    (child, files)
}

/// Processes that work in a directory, as the demo's server does.
fn working_in(directory: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let inside = processes.filter(|process| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    });
    inside.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

fn assert_nothing_in(directory: &Path) {
    assert_eq!(working_in(directory), Vec::<String>::new(), "processes are left behind");
    let files: Vec<_> = fs::read_dir(directory).unwrap().flatten().collect();
    assert!(files.is_empty(), "{files:?}");
}

#[sandboxed]
#[test]
fn a1_the_demo_leaves_nothing_behind() {
    let place = Place::new();
    let (child, files) = demo(&place);
    let ended = outcome(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(0), "{ended:#?}");
    assert_nothing_in(&files);
}

/// As Ctrl-C in a terminal does it, at moments all along the way.
#[sandboxed]
#[test]
fn a10_an_interrupted_demo_leaves_nothing_behind() {
    let mut statuses = Vec::new();
    for step in 0..8 {
        let place = Place::new();
        let (child, files) = demo(&place);
        // Not before it listens: until then the signal ends it, as any program.
        let began = Instant::now();
        while fs::read_dir(&files).unwrap().next().is_none() && began.elapsed().as_secs() < 20 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(step * 12));
        let _ = kill_process_group(Pid::from_child(&child), Signal::INT);
        let ended = outcome(child.wait_with_output().unwrap());
        assert!(matches!(ended.status, Some(0 | 130)), "{ended:#?}");
        statuses.push(ended.status);
        assert_nothing_in(&files);
    }
    assert_eq!(statuses.first(), Some(&Some(130)), "{statuses:?}");
}
