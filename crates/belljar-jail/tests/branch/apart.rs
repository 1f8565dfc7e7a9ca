//! Branches are apart: memory, files, lives.

use std::time::Duration;

use belljar_jail::{CellLimits, Guests, session::guest_end};

use crate::{
    harness::session::{Cell, LIMITS, Result, Setup, ends_within, wait_for_end},
    modes::{Test, same, setup},
};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("b4_memory_and_files_are_independent", memory_and_files_are_independent),
    ("b4_a_removed_file_comes_back_with_its_branch", a_removed_file_comes_back),
    ("b4_a_hundred_and_fifty_branches_in_a_row", many_in_a_row),
    ("b4_rollback_twice_to_one_parked_branch", rollback_twice),
    ("b4_one_branch_ends_and_the_others_go_on", one_ends),
    ("b4_the_keepers_end_is_the_end_of_all", keeper_ends),
    ("b4_a_branch_under_a_memory_limit", under_a_memory_limit),
    ("b4_directories_are_what_they_were", directories_are_what_they_were),
    ("b4_room_comes_back_with_dropped_branches", room_comes_back),
    ("b4_there_is_an_end_to_layers", an_end_to_layers),
];

fn memory_and_files_are_independent(guests: Guests) -> Result<()> {
    let (mut cell, mut parent) = Cell::start(&setup(guests))?;
    parent.run("set x 1")?;
    parent.run("write /work/a 1")?;
    parent.run("write /tmp/t 1")?;
    let mut child = cell.branch(&mut parent)?;
    same("the child's x", child.run("get x")?, "1".into())?;
    same("the child's file", child.run("read /work/a")?, "1".into())?;
    child.run("set x 2")?;
    child.run("write /work/a 2")?;
    child.run("write /work/only-child 2")?;
    child.run("write /tmp/t 2")?;
    same("the parent's x", parent.run("get x")?, "1".into())?;
    same("the parent's file", parent.run("read /work/a")?, "1".into())?;
    parent.run("write /work/a 3")?;
    parent.run("set x 3")?;
    same("the child's x", child.run("get x")?, "2".into())?;
    same("the child's file", child.run("read /work/a")?, "2".into())?;
    same("the parent's files", parent.run("list /work")?, "a".into())?;
    same("the child's files", child.run("list /work")?, "a only-child".into())?;
    same("the parent's /tmp", parent.run("read /tmp/t")?, "1".into())?;
    same("the child's /tmp", child.run("read /tmp/t")?, "2".into())
}

fn a_removed_file_comes_back(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    live.run("mkdir /work/d/e")?;
    live.run("write /work/d/e/f 1")?;
    live.run("cd /work/d/e")?;
    let mut parked = cell.branch(&mut live)?;
    // Where it is cannot go: it would be open, and removed.
    live.run("cd /work")?;
    live.run("remove /work/d")?;
    let mut later = cell.branch(&mut live)?;
    same("after removal", later.run("list /work")?, String::new())?;
    same("the live one is in", live.run("cwd")?, "/work".into())?;
    cell.end(live)?;
    same("the parked one's file", parked.run("read /work/d/e/f")?, "1".into())?;
    same("the parked one is in", parked.run("cwd")?, "/work/d/e".into())
}

fn many_in_a_row(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    let mut parked = Vec::new();
    for round in 0..150 {
        live.run(&format!("set round {round}"))?;
        // Not all of them leave a layer of their own.
        if round % 3 == 0 {
            live.run(&format!("write /work/f{round} {round}"))?;
        }
        parked.push((round, cell.branch(&mut live).map_err(|e| format!("round {round}: {e}"))?));
        if parked.len() > 16 {
            let (_, oldest) = parked.remove(0);
            cell.end(oldest)?;
        }
    }
    for (round, branch) in &mut parked {
        same("a parked round", branch.run("get round")?, round.to_string())?;
        let newest = *round / 3 * 3;
        same("its file", branch.run(&format!("read /work/f{newest}"))?, newest.to_string())?;
        let next = newest + 3;
        same("no later file", branch.run(&format!("read /work/f{next}")), Err("2".into()))?;
    }
    same("the live one's files", live.run("list /work")?.split(' ').count(), 50)
}

fn rollback_twice(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    live.run("set x 1")?;
    live.run("write /work/a 1")?;
    let mut parked = cell.branch(&mut live)?;
    for _ in 0..2 {
        live.run("set x 9")?;
        live.run("write /work/a 9")?;
        cell.end(live)?;
        // The parked one becomes the live one, and is parked once more.
        live = parked;
        parked = cell.branch(&mut live)?;
        same("x", live.run("get x")?, "1".into())?;
        same("the file", live.run("read /work/a")?, "1".into())?;
    }
    same("x of the parked one", parked.run("get x")?, "1".into())
}

fn one_ends(guests: Guests) -> Result<()> {
    let (mut cell, mut first) = Cell::start(&setup(guests))?;
    let mut second = cell.branch(&mut first)?;
    let mut third = cell.branch(&mut second)?;
    second.run("write /work/second 1")?;
    let pidfd = second.pidfd.try_clone().map_err(|error| error.to_string())?;
    same("an end before the end", guest_end(&pidfd).map_err(|e| e.to_string())?, None)?;
    cell.end(second)?;
    let end = guest_end(&pidfd).map_err(|error| error.to_string())?;
    same("its end", end, Some(belljar_jail::GuestEnd::Killed(9)))?;
    same("the first", first.run("list /work")?, String::new())?;
    third.run("write /work/third 1")?;
    same("the third", third.run("list /work")?, "third".into())?;
    // The first guest of all is no more than any other.
    cell.end(first)?;
    same("the third", third.run("list /work")?, "third".into())
}

fn keeper_ends(guests: Guests) -> Result<()> {
    let (mut cell, mut first) = Cell::start(&setup(guests))?;
    let second = cell.branch(&mut first)?;
    let third = cell.branch(&mut first)?;
    same(
        "before",
        [&first, &second, &third].map(|branch| ends_within(&branch.pidfd, Duration::ZERO)),
        [false; 3],
    )?;
    belljar_jail::kill_by_pidfd(&cell.keeper_pidfd).map_err(|error| error.to_string())?;
    [first, second, third].iter().try_for_each(|branch| wait_for_end(&branch.pidfd))
}

fn under_a_memory_limit(guests: Guests) -> Result<()> {
    let limits = CellLimits { memory_bytes: 64 << 20, ..LIMITS };
    let (mut cell, mut parent) = Cell::start(&Setup { limits, ..setup(guests) })?;
    parent.run(&format!("swell {}", 40 << 20))?;
    let mut child = cell.branch(&mut parent)?;
    // Both have the limit, for what they have together and for what either adds.
    same("too much", child.run(&format!("swell {}", 200 << 20)), Err("12".into()))?;
    same("too much", parent.run(&format!("swell {}", 200 << 20)), Err("12".into()))?;
    child.run("set x 1")?;
    same("it goes on", child.run("get x")?, "1".into())
}

fn directories_are_what_they_were(guests: Guests) -> Result<()> {
    let (mut cell, mut live) = Cell::start(&setup(guests))?;
    let before = [live.run("mode /work")?, live.run("mode /tmp")?];
    same("modes", before.clone(), ["700".to_owned(), "700".to_owned()])?;
    if guests == Guests::Programs {
        live.run("chmod /work 750")?;
    }
    let changed = live.run("mode /work")?;
    let mut child = cell.branch(&mut live)?;
    same("the child's", child.run("mode /work")?, changed.clone())?;
    same("the parent's", live.run("mode /work")?, changed)
}

/// Files of branches that are gone take up no room.
fn room_comes_back(guests: Guests) -> Result<()> {
    let limits = CellLimits { disk_bytes: 1 << 20, inodes: 256, ..LIMITS };
    let (mut cell, mut live) = Cell::start(&Setup { limits, ..setup(guests) })?;
    live.run("mkdir /work/d/e/f")?;
    let text = "x".repeat(300 << 10);
    for round in 0..20 {
        let mut branch = cell.branch(&mut live)?;
        branch.run("mkdir /work/d/e/f/g/h")?;
        let wrote = branch.run(&format!("write /work/d/e/f/g/h/large {text}"));
        same(&format!("round {round}"), wrote, Ok("done".into()))?;
        branch.run(&format!("write /tmp/large {text}"))?;
        // Control: there is an end to the room.
        same("full", branch.run(&format!("write /tmp/larger {text}{text}")), Err("28".into()))?;
        branch.run(&format!("set round {round}"))?;
        cell.end(branch)?;
    }
    Ok(())
}

fn an_end_to_layers(guests: Guests) -> Result<()> {
    let limits = CellLimits { inodes: 100_000, ..LIMITS };
    let (mut cell, mut live) = Cell::start(&Setup { limits, ..setup(guests) })?;
    for round in 0..128 {
        live.run(&format!("write /work/f {round}"))?;
        let branch = cell.branch(&mut live).map_err(|error| format!("round {round}: {error}"))?;
        cell.end(branch)?;
    }
    live.run("write /work/f last")?;
    let refused = cell.branch(&mut live).err().unwrap_or_default();
    same("refused", refused.contains("128 layers"), true)?;
    live.run("write /work/g 1")?;
    same("the session goes on", live.run("list /work")?, "f g".into())
}
