//! The roles in which the test program can be started.
#![expect(clippy::disallowed_methods, reason = "the suite starts its own roles")]

use std::{
    fs,
    io::{self, Write},
    process::Command,
    thread,
    time::Duration,
};

use belljar_jail::process_tree::ProcessTreeReport;
use rustix::process::{getpid, getuid, setsid};

use crate::harness::SupervisedCommand;

/// A host-like process with one command, that says when it and its daemon run, and is then killed.
pub(crate) fn own(mark: &str) -> io::Result<()> {
    let mut command = SupervisedCommand::start_here(mark, &["__daemonise", mark, "for ever"])?;
    if command.report()? != Some(ProcessTreeReport::Started) {
        return Err(io::Error::other("the command was not started"));
    }
    let line = command.read_line()?;
    say(&line)?;
    sleep_for_ever()
}

/// A command that leaves a daemon behind.
pub(crate) fn daemonise(mark: &str, life: &str) -> io::Result<()> {
    Command::new("/proc/self/exe").args(["__between", mark]).status()?;
    say("ready\n")?;
    if life == "short" { Ok(()) } else { sleep_for_ever() }
}

/// Ends at once, so that its child is nobody's.
pub(crate) fn between(mark: &str) -> io::Result<()> {
    Command::new("/proc/self/exe").args(["__daemon", mark]).spawn()?;
    Ok(())
}

/// In a session of its own, far from whoever started it.
pub(crate) fn daemon() -> io::Result<()> {
    setsid()?;
    sleep_for_ever()
}

/// Says what it was started with.
pub(crate) fn describe() -> io::Result<()> {
    let mut open = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_string_lossy().parse::<i32>().unwrap_or(-1);
        // The listing itself has one open.
        let target = fs::read_link(format!("/proc/self/fd/{number}"));
        if target.is_ok_and(|target| !target.starts_with("/proc")) {
            open.push(number);
        }
    }
    open.sort_unstable();
    let variables: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    let pid = getpid().as_raw_pid();
    let of_pid = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let found = of_pid == fs::read("/proc/self/cmdline")?;
    let uid = getuid().as_raw();
    say(&format!("fds {open:?} variables {variables:?} uid {uid} pid {pid} found {found}\n"))
}

fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn sleep_for_ever() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}
