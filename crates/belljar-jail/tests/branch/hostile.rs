//! Descriptors and trees that a hostile branch keeps from before, and `chroot`, lead nowhere.

use belljar_jail::{
    Guests,
    sample::{BranchProcesses, CellProcesses, CpuLedger},
    strays::end_strays,
};

use crate::{
    harness::session::{Cell, Result},
    modes::{Test, same, setup},
};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("b4_stale_directories_are_frozen", stale_directories),
    ("b4_a_copy_has_no_descriptors_of_the_other", no_descriptors),
    ("b4_chroot_leads_nowhere", chroot_leads_nowhere),
    ("b4_what_a_guest_may_clone", what_a_guest_may_clone),
    ("b4_signals_between_branches", signals),
    ("b4_strays_are_ended", strays),
];

const READ_ONLY: &str = "30";

/// A directory that was opened before leads to what was there before, and only to look at.
fn stale_directories(guests: Guests) -> Result<()> {
    for (directory, how) in
        [("/work", "directory"), ("/work", "path"), ("/tmp", "directory"), ("/", "path")]
    {
        let (mut cell, mut live) = Cell::start(&setup(guests))?;
        live.run("mkdir /work/sub")?;
        live.run("write /work/before 1")?;
        live.run("write /tmp/before 1")?;
        live.run(&format!("hold stale {how} {directory}"))?;
        let inside = if directory == "/" { "work/" } else { "" };
        // Control: it leads there, and is written through, as long as there is one branch.
        live.run(&format!("open-at stale {inside}early write"))?;
        let mut child = cell.branch(&mut live)?;
        live.run("write /work/secret 1")?;
        live.run("write /tmp/secret 1")?;
        child.run("write /work/other 1")?;
        let what = format!("{directory} as {how}");
        let written = live.run(&format!("open-at stale {inside}late write"));
        same(&what, written, Err(READ_ONLY.into()))?;
        let seen = live.run(&format!("open-at stale {inside}secret read"));
        same(&what, seen, Err("2".into()))?;
        let seen = live.run(&format!("open-at stale {inside}before read"))?;
        same(&what, seen, "1".into())?;
        for up in ["../secret", "../../work/secret", "../work/other"] {
            let seen = live.run(&format!("open-at stale {inside}{up} read"));
            same(&what, seen, Err("2".into()))?;
        }
        same("the child's", child.run(&format!("list {directory}"))?.contains("secret"), false)?;
    }
    Ok(())
}

/// Between the two moments a copy has nothing of the other's, not even its socket.
fn no_descriptors(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    live.run("write /work/a 1")?;
    live.run("hold one read /work/a")?;
    live.run("hold two directory /work")?;
    same("before", live.run("descriptors")?, "3".into())?;
    let mut child = cell.branch_until_reroot(&mut live, |_, child| {
        same("the copy's", child.run("descriptors")?, "1".into())?;
        // The process it believes to have is dead, and is nobody else's.
        child.run("write /work/b 1")?;
        same("its file", child.run("open-at two a read").is_err(), guests == Guests::Script)
            .or_else(|_| same("its own root", child.run("open-at two a read"), Err("2".into())))?;
        same("writing", child.run("use one x"), Err("9".into()))
    })?;
    same("after", live.run("descriptors")?, "3".into())?;
    child.run("hold three read /work/b")?;
    same("its own", child.run("descriptors")?, "2".into())
}

/// No way out of a branch's tree by changing its root, and none into another's.
fn chroot_leads_nowhere(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    let mut child = cell.branch(&mut live)?;
    live.run("write /work/secret 1")?;
    child.run("mkdir /work/a/b")?;
    child.run("hold top path /")?;
    child.run("hold high path /work/a")?;
    // The classic: a root below the directory one is in.
    child.run("call chroot /work/a/b")?;
    for path in ["..", "../..", "../../..", "../../../../../../.."] {
        let seen = child.run(&format!("open-at high {path}/work/secret read"));
        same(path, seen.is_err(), true)?;
        let seen = child.run(&format!("open-at top {path}/work/secret read"));
        same(path, seen.is_err(), true)?;
        let seen = child.run(&format!("open-at top {path}/etc/shadow read"));
        same(path, seen.is_err(), true)?;
        let seen = child.run(&format!("open-at top {path}/tmp/layers/0 read"));
        same(path, seen.is_err(), true)?;
    }
    // Control: it got as far as its own tree's root.
    child
        .run("open-at high ../../work/mine write")
        .map(drop)
        .or_else(|_| child.run("open-at top work/mine write").map(drop))
}

fn what_a_guest_may_clone(guests: Guests) -> Result<()> {
    let (_cell, mut live) = Cell::start(&setup(guests))?;
    let plain = live.run("call clone");
    match guests {
        Guests::Script => same("a child", plain, Err("1".into()))?,
        Guests::Programs => same("a child", plain.is_ok(), true)?,
    }
    // It cannot be told from branching. Whoever does so has a process its host ends.
    same("a sibling", live.run("call clone-parent").is_ok(), true)
}

/// Branches of one session are one trust domain where guests are programs; scripts cannot signal.
fn signals(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    let mut child = cell.branch(&mut live)?;
    let other = live.run("pid")?;
    let sent = child.run(&format!("call kill {other} 0"));
    match guests {
        Guests::Script => same("a signal", sent, Err("1".into()))?,
        Guests::Programs => same("a signal", sent, Ok("0".into()))?,
    }
    // Nobody signals the keeper, or everybody.
    same("the keeper", child.run("call kill 1 9").is_ok() && guests == Guests::Script, false)?;
    same("the other one lives", live.run("list /work")?, String::new())
}

/// Processes that look like branches, or outlived theirs, are found and ended; branches are not.
fn strays(guests: Guests) -> Result<()> {
    let told = |error: std::io::Error| error.to_string();
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    let parked = cell.branch(&mut live)?;
    let processes = CellProcesses::find(&cell.keeper_pidfd, guests).map_err(told)?;
    let of_live = BranchProcesses::of(&live.pidfd, guests).map_err(told)?;
    let of_parked = BranchProcesses::of(&parked.pidfd, guests).map_err(told)?;
    same("two guests", of_live.guest == of_parked.guest, false)?;
    let known = [of_live.guest, of_parked.guest];
    live.run(&format!("swell {}", 20 << 20))?;
    let before = processes.whole_sample().usage.memory_bytes;
    same("memory is counted", (20 << 20..60 << 20).contains(&before), true)?;
    live.run("call hide")?;
    live.run("call hide")?;
    if guests == Guests::Programs {
        // A script has one thread. This one looks as if it had ended (S1).
        live.run("call hide-without-first-thread")?;
        let looks_ended = || leaderless(processes.keeper).len() == 1;
        same("one without its first thread", soon(looks_ended), true)?;
    }
    let with_hidden = processes.whole_sample().usage;
    // Control: while nobody is a stray, they go on.
    end_strays(&cell.keeper_pidfd, |_| false).map_err(|left| left.to_string())?;
    same("they are left alone", processes.whole_sample().usage.memory_bytes > before, true)?;
    let is_stray = |pid| !known.contains(&pid);
    end_strays(&cell.keeper_pidfd, is_stray).map_err(|left| left.to_string())?;
    // Control: there was something to end, and it was not the branches.
    same("hidden ones are measured", with_hidden.memory_bytes > before, true)?;
    same("the live one", live.run("list /work")?, String::new())?;
    let children = format!("/proc/{0}/task/{0}/children", processes.keeper);
    let left = std::fs::read_to_string(children).map_err(told)?;
    same("those without their first thread", leaderless(processes.keeper), Vec::new())?;
    // One that has ended is there until its keeper takes note.
    let has_ended = |pid: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
    };
    same("left", left.split_whitespace().filter(|pid| !has_ended(pid)).count(), 2)?;
    // The resources that one branch uses are its own.
    let alone =
        |branch: BranchProcesses| branch.sample(&mut CpuLedger::default()).usage.memory_bytes;
    same("the parked one alone", alone(of_parked) < alone(of_live), true)
}

/// Children of a keeper whose first thread has ended, and others have not.
fn leaderless(keeper: u32) -> Vec<u32> {
    let children = format!("/proc/{keeper}/task/{keeper}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    children.filter(|pid: &u32| is_leaderless(*pid)).collect()
}

fn is_leaderless(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_zombie = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    is_zombie && threads.is_ok_and(|threads| threads.count() > 1)
}

fn soon(is_so: impl Fn() -> bool) -> bool {
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_secs(10) {
        if is_so() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    false
}
