//! Branches of a cell that has a proxy: each connects for itself, to the same listener.

use std::{
    io::Read,
    net::{TcpListener, TcpStream},
};

use belljar_jail::{Guests, NetworkAccess};

use crate::{
    harness::session::{Cell, Result, Setup},
    modes::{Test, same, setup},
};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("n1_a_copy_has_no_connection_of_the_other", connections_stay),
    ("n1_branches_share_the_listener_of_their_cell_only", the_same_listener),
];

const NO_DESCRIPTOR: &str = "9";

/// A session's cell with a listener, if guests of this kind have one.
fn granted(guests: Guests) -> Option<Setup> {
    let setup = setup(guests);
    let plan = setup.plan.with_network(NetworkAccess::Proxy);
    (guests == Guests::Programs).then_some(Setup { plan, ..setup })
}

fn listener(cell: &mut Cell) -> Result<TcpListener> {
    Ok(cell.listener.take().ok_or("no listener")?.into())
}

fn accept(listener: &TcpListener) -> Result<TcpStream> {
    Ok(listener.accept().map_err(|error| error.to_string())?.0)
}

fn read(mut stream: &TcpStream, bytes: usize) -> Result<String> {
    let mut text = vec![0; bytes];
    stream.read_exact(&mut text).map_err(|error| error.to_string())?;
    String::from_utf8(text).map_err(|error| error.to_string())
}

fn connections_stay(guests: Guests) -> Result<()> {
    let Some(setup) = granted(guests) else { return Ok(()) };
    let (mut cell, mut live) = Cell::start(&setup)?;
    let listener = listener(&mut cell)?;
    live.run("connect before")?;
    let before = accept(&listener)?;
    // Control: it leads to the host.
    live.run("use before a")?;
    same("before", read(&before, 1)?, "a".into())?;
    let mut child = cell.branch(&mut live)?;
    same("the child's", child.run("use before b"), Err(NO_DESCRIPTOR.into()))?;
    // The parent's is its own again, so the host has to reset it: the child may be hostile.
    live.run("use before c")?;
    same("the parent's", read(&before, 1)?, "c".into())?;
    child.run("connect after")?;
    let after = accept(&listener)?;
    child.run("use after d")?;
    same("the child's own", read(&after, 1)?, "d".into())?;
    cell.end(child)?;
    let mut rest = String::new();
    let ended = (&after).read_to_string(&mut rest);
    same("the end of the child's", ended.map_err(|error| error.to_string())?, 0)
}

fn the_same_listener(guests: Guests) -> Result<()> {
    let Some(setup) = granted(guests) else { return Ok(()) };
    let (mut cell, mut live) = Cell::start(&setup)?;
    let (mut beside, mut other) = cell.beside(&setup)?;
    let (own, others) = (listener(&mut cell)?, listener(&mut beside)?);
    let mut child = cell.branch(&mut live)?;
    for (branch, text, listener) in
        [(&mut live, "live", &own), (&mut child, "child", &own), (&mut other, "other", &others)]
    {
        branch.run("connect it")?;
        branch.run(&format!("use it {text}"))?;
        same("what arrives", read(&accept(listener)?, text.len())?, text.into())?;
    }
    // Nobody else has connected to either of them.
    for listener in [own, others] {
        listener.set_nonblocking(true).map_err(|error| error.to_string())?;
        let more = listener.accept().map_err(|error| error.kind());
        same("more", more.err(), Some(std::io::ErrorKind::WouldBlock))?;
    }
    Ok(())
}
