//! Branches of a Python, in its own cell, confined and cloned by the jail as a library.
#![expect(clippy::disallowed_methods, reason = "asks the machine's Python where it is")]

use std::process::Command;

use belljar_jail::{CellGrants, CellLimits, Guests, ZygotePlan};
use belljar_worker::cpython::PythonSetup;

use crate::{
    harness::session::{Branch, Cell, LIMITS, Result, Setup},
    modes::{Test, same, view},
};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("b4_python_branches", branches),
    ("b4_python_is_refused_with_threads_and_children", refused),
    ("b4_python_descriptors_of_the_other_are_dead", descriptors),
    ("b4_python_draws_other_numbers", randomness),
    ("s11_standard_streams_of_branches_are_their_own", streams),
];

const FIND: &str = "import json, os, sys
paths = [path for path in sys.path if os.path.isdir(path)]
print(json.dumps([os.path.realpath(sys.executable), paths]))";

/// A cell of the machine's Python; scripts of that kind there are none.
fn start(guests: Guests) -> Result<Option<(Cell, Branch)>> {
    setup(guests)?.map(|setup| Cell::start(&setup)).transpose()
}

fn setup(guests: Guests) -> Result<Option<Setup>> {
    if guests == Guests::Script {
        return Ok(None);
    }
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let found = Command::new("/usr/bin/python3").args(["-I", "-c", FIND]).output();
    let found = found.map_err(|error| told(&error))?.stdout;
    let (program, paths): (std::path::PathBuf, Vec<std::path::PathBuf>) =
        serde_json::from_slice(&found).map_err(|error| told(&error))?;
    let mut view = view();
    view.executable.push(program.clone());
    for path in paths.iter().chain([&program]).filter(|path| !path.starts_with("/usr")) {
        view.trees.push(path.clone());
        view.readable.push(path.clone());
    }
    let setup = PythonSetup { program, paths, data: false };
    let setup = serde_json::to_string(&setup).map_err(|error| told(&error))?;
    let zygote = vec!["__zygote".to_owned(), "cpython".to_owned(), setup];
    let plan = ZygotePlan::full().for_programs(view);
    let limits = CellLimits { memory_bytes: 512 << 20, processes: 16, ..LIMITS };
    Ok(Some(Setup { zygote, plan, limits, grants: CellGrants::default() }))
}

fn branches(guests: Guests) -> Result<()> {
    let Some((mut cell, mut live)) = start(guests)? else { return Ok(()) };
    // Not a variable of the program: how those are kept is not this test's business.
    live.run("import json\njson.kept = 1")?;
    live.run("open('/work/a', 'w').write('1')")?;
    let mut child = cell.branch(&mut live)?;
    child.run("import json\njson.kept += 1\nopen('/work/a', 'w').write('2')")?;
    let both = "import json\n[json.kept, open('/work/a').read()]";
    same("the parent", live.run(both)?, "[1,\"1\"]".into())?;
    same("the child", child.run(both)?, "[2,\"2\"]".into())?;
    // Branches of branches, and the garbage collector, threads and signals after that.
    let mut third = cell.branch(&mut child)?;
    let code = "import gc, json, threading
gc.collect()
seen = []
thread = threading.Thread(target=lambda: seen.append(json.kept))
thread.start()
thread.join()
seen";
    same("the third", third.run(code)?, "[2]".into())?;
    cell.end(child)?;
    same("the third", third.run(both)?, "[2,\"2\"]".into())?;
    let mut fourth = cell.branch(&mut third)?;
    same("the fourth", fourth.run(both)?, "[2,\"2\"]".into())
}

fn refused(guests: Guests) -> Result<()> {
    let Some((mut cell, mut live)) = start(guests)? else { return Ok(()) };
    live.run(
        "import threading, json\njson.stop = threading.Event()\n\
         json.thread = threading.Thread(target=json.stop.wait, daemon=True)\njson.thread.start()",
    )?;
    let told = cell.branch(&mut live).err().unwrap_or_default();
    same(&told, told.contains("2 threads are running"), true)?;
    live.run("import json\njson.stop.set()\njson.thread.join()")?;
    cell.branch(&mut live)?;
    live.run("import json\njson.file = open('/work/a', 'w')")?;
    let told = cell.branch(&mut live).err().unwrap_or_default();
    same(&told, told.contains("open for writing"), true)?;
    live.run("import json\njson.file.close()")?;
    cell.branch(&mut live).map(drop)
}

fn descriptors(guests: Guests) -> Result<()> {
    let Some((mut cell, mut live)) = start(guests)? else { return Ok(()) };
    live.run("import json\nopen('/work/a', 'w').write('abc')\njson.file = open('/work/a')\nNone")?;
    let mut child = cell.branch(&mut live)?;
    let read =
        "import json\ntry:\n    r = json.file.read()\nexcept OSError as e:\n    r = e.errno\nr";
    same("the child's file", child.run(read)?, "9".into())?;
    // Another file is not taken for it, and is not closed with it.
    let other = "import json\nf = open('/work/a')\ndel json.file\nf.read()";
    same("another file", child.run(other)?, "\"abc\"".into())?;
    same("the parent's file", live.run(read)?, "\"abc\"".into())
}

fn streams(guests: Guests) -> Result<()> {
    let Some((mut cell, mut live)) = start(guests)? else { return Ok(()) };
    let mut first = cell.branch(&mut live)?;
    let mut second = cell.branch(&mut live)?;
    let own = "import os\n[os.fstat(number).st_ino for number in range(3)]";
    let (own_of_live, own_of_first) = (live.run(own)?, first.run(own)?);
    let own_of_second = second.run(own)?;
    same("a branch shares streams", own_of_first == own_of_live, false)?;
    same("siblings share streams", own_of_first == own_of_second, false)?;
    // Control: who opens its own for writing can talk to itself, but not to a sibling.
    let say = "import os\nend = os.open('/proc/self/fd/0', os.O_RDWR)\nos.write(end, b'hello')";
    same("what was written", first.run(say)?, "5".into())?;
    let hear = "import os\nos.set_blocking(0, False)\ntry:\n    heard = os.read(0, 9).decode()\n\
                except BlockingIOError:\n    heard = 'nothing'\nheard";
    same("the one that spoke", first.run(hear)?, "\"hello\"".into())?;
    same("its sibling", second.run(hear)?, "\"\"".into())?;
    same("the one they come from", live.run(hear)?, "\"\"".into())
}

fn randomness(guests: Guests) -> Result<()> {
    let Some(setup) = setup(guests)? else { return Ok(()) };
    let (mut first, mut live) = Cell::start(&setup)?;
    draws_apart(&mut first, &mut live)?;
    // By now the zygote has imported it, and what is done after a fork is the runtime's to do.
    let (mut second, mut live) = first.beside(&setup)?;
    same("imported", live.run("import sys\n'random' in sys.modules")?, "true".into())?;
    draws_apart(&mut second, &mut live)
}

fn draws_apart(cell: &mut Cell, live: &mut Branch) -> Result<()> {
    live.run("import random\nrandom.gauss(0, 1)")?;
    let mut child = cell.branch(live)?;
    let draw = "import random\n[random.random(), random.gauss(0, 1)]";
    let (one, other) = (live.run(draw)?, child.run(draw)?);
    same("the same numbers", one == other, false)
}
