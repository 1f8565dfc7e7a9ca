//! When branching is refused, and that the session goes on as if nobody had asked.

use belljar_jail::Guests;

use crate::{
    harness::session::{Branch, Cell, Result, copy, reroot, wait_for_end},
    modes::{PROGRAM, Test, same, setup},
};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("b4_a_file_open_for_writing", open_for_writing),
    ("b4_a_file_without_a_name", without_a_name),
    ("b4_a_shared_mapping", shared_mapping),
    ("b4_a_second_thread", second_thread),
    ("b4_a_live_child", live_child),
    ("b4_too_many_branches", too_many),
    ("b4_no_such_branch", no_such_branch),
    ("b4_a_copy_that_gets_no_files_ends", no_files),
];

/// Refused for a reason that has this in it; and then everything goes on, with files written and
/// memory changed. Once `cure` is done, branching works.
fn refused(cell: &mut Cell, live: &mut Branch, reason: &str, cure: &str) -> Result<()> {
    for round in 0..2 {
        let told = cell.branch(live).err().unwrap_or_default();
        same(&format!("refused with {told:?}"), told.contains(reason), true)?;
        live.run(&format!("write /work/after {round}"))?;
        live.run(&format!("write /tmp/after {round}"))?;
        same("goes on", live.run("read /work/after")?, round.to_string())?;
    }
    live.run(cure)?;
    // Control: it was that and nothing else. A thread is gone only some time after it was let go.
    let mut last = String::new();
    for _ in 0..200 {
        match cell.branch(live) {
            Ok(mut branch) => return same("branched", branch.run("read /work/after")?, "1".into()),
            Err(error) => last = error,
        }
        std::thread::yield_now();
    }
    Err(format!("still refused: {last}"))
}

fn open_for_writing(guests: Guests) -> Result<()> {
    for path in ["/work/open", "/tmp/open"] {
        let (mut cell, mut live) = Cell::start(&setup(guests))?;
        live.run(&format!("hold file write {path}"))?;
        refused(&mut cell, &mut live, "open for writing", "let-go file")?;
    }
    Ok(())
}

fn without_a_name(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    live.run("hold file nameless /work")?;
    refused(&mut cell, &mut live, "open for writing", "let-go file")?;
    // One that was removed, and is only read, is as bad: it has no place in a layer.
    live.run("write /work/gone 1")?;
    live.run("hold file read /work/gone")?;
    live.run("remove /work/gone")?;
    refused(&mut cell, &mut live, "deleted and still open", "let-go file")
}

fn shared_mapping(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    if guests == Guests::Script {
        return same("a script's mapping", live.run("map-shared /work/m"), Err("1".into()));
    }
    live.run("map-shared /work/m")?;
    let told = cell.branch(&mut live).err().unwrap_or_default();
    same(&told, told.contains("open for writing"), true)?;
    live.run("write /work/after 1")?;
    same("goes on", live.run("list /work")?, "after m".into())
}

fn second_thread(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    if guests == Guests::Script {
        return same("a script's thread", live.run("thread").is_err(), true);
    }
    live.run("thread")?;
    refused(&mut cell, &mut live, "2 threads are running", "alone")
}

fn live_child(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    let child = format!("child {PROGRAM}");
    if guests == Guests::Script {
        return same("a script's child", live.run(&child).is_err(), true);
    }
    live.run(&child)?;
    refused(&mut cell, &mut live, "a child process is running", "alone")
}

fn too_many(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    let mut parked = Vec::new();
    while parked.len() < belljar_jail::session::MAX_BRANCHES - 1 {
        parked.push(cell.branch(&mut live)?);
    }
    let told = cell.branch(&mut live).err().unwrap_or_default();
    same(&told, told.contains("already has 64 branches"), true)?;
    same("the live one goes on", live.run("list /work")?, String::new())?;
    // Control: with one less there is room again.
    let oldest = parked.remove(0);
    cell.end(oldest)?;
    cell.branch(&mut live).map(drop)
}

fn no_such_branch(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    let number = std::mem::replace(&mut live.number, 99);
    let told = cell.branch(&mut live).err().unwrap_or_default();
    same(&told, told.contains("no branch 99"), true)?;
    live.number = number;
    cell.branch(&mut live).map(drop)
}

/// A copy does nothing without files of its own, and the other one goes on without it.
fn no_files(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    for round in 0..3 {
        let (socket, pidfd) = copy(&mut live)??;
        // Control: it waits.
        same("waits", belljar_jail::strays::has_ended(&pidfd).ok(), Some(false))?;
        drop(socket);
        wait_for_end(&pidfd)?;
        reroot(&mut live, None)?;
        live.run(&format!("write /work/after {round}"))?;
        same("goes on", live.run("read /work/after")?, round.to_string())?;
    }
    let mut branch = cell.branch(&mut live)?;
    same("branched", branch.run("read /work/after")?, "2".into())
}
