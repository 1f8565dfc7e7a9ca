//! The port a language implements, and the table of the engines that implement it.
//!
//! Every engine is an [`Engine`] in [`ENGINES`], whatever language it is written in: it starts a
//! zygote whose cells speak the frames of `belljar-wire`. An engine written in Rust implements
//! [`CodeRunner`] besides, and `CellMain` speaks the frames for it. CPython's cells speak them
//! themselves: `cpython/guest/cell.py` is to them what `cell.rs` is to the others.

use std::path::Path;

use belljar_contract::EngineName;
use belljar_wire::{Event, GuestError, RunCommand, RunValue};

use crate::{HostLink, bash::BashEngine, cpython::CPythonEngine, quickjs::QuickJsEngine};

/// Every engine there is. The first one is started when the host names none.
pub static ENGINES: [&dyn Engine; 3] = [&QuickJsEngine, &CPythonEngine, &BashEngine];

/// An engine: it runs one or more languages.
///
/// The host relies on two promises. A zygote is confined by `belljar-jail` before it loads anything
/// that is not Belljar's own. Each of its cells sends [`Event::Ready`] once it is confined, and
/// answers every [`RunCommand`] with [`Event::Done`] or [`Event::Failed`].
pub trait Engine: Sync {
    /// Its row in the contract: the languages it runs, and its name, which is also the argument after
    /// [`ZYGOTE_ARGUMENT`](crate::ZYGOTE_ARGUMENT) that selects it.
    fn name(&self) -> EngineName;

    /// Turns the calling process, which must be single-threaded, into a zygote. `setup` is the
    /// argument after the name: what the host found out about this machine, as the engine wants it.
    fn start(&self, setup: &str) -> !;

    /// Continues as the zygote, for an engine whose zygote starts this program again once it is
    /// confined. `handover` is the argument that the jail has added. Returns only for an engine
    /// that never does so.
    fn resume(&self, _setup: &str, _handover: &str) {}
}

/// The part of an engine that runs code in a cell, for engines that are written in Rust.
///
/// A runner is warmed in the zygote, before any guest code exists; each cell gets a
/// copy-on-write copy of it and uses it once, a session's cell again and again. It must not start
/// threads and must hold no secret. Between two runs it has no descriptor, thread or process of its
/// own: a session's cell may branch there.
pub trait CodeRunner {
    /// Runs guest code to its end. In a session, the state of earlier runs is there.
    ///
    /// Output goes out through `host` as it is printed, so that a cell killed in the middle of a
    /// run has already sent it.
    fn run(&mut self, run: RunCommand, host: &HostLink) -> Result<RunValue, GuestError>;

    /// Called in a cell that has waited a while for its code: touches what a run is going to
    /// touch, so that the cell has its own copies of those pages when the code arrives.
    fn rehearse(&mut self, _host: &HostLink) {}

    /// Called once in the zygote, after its first cell was cloned: what the first run can do
    /// without is prepared here, so that a single run starts sooner and later ones have it warm.
    fn warm_further(&mut self) {}
}

/// Files in here come back beside the value.
const OUTPUT_DIRECTORY: &str = "/work/out";

/// The directory that code works in.
const WORK: &str = "/work";

/// Tells the host at the end of a run that there are files to collect or to list, if there are: it
/// does not look for them otherwise.
pub(crate) fn name_output(host: &HostLink) {
    if Path::new(WORK).read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        let _ = host.send(&Event::Artifact { path: WORK.to_owned() });
    }
    if Path::new(OUTPUT_DIRECTORY).is_dir() {
        let _ = host.send(&Event::Artifact { path: OUTPUT_DIRECTORY.to_owned() });
    }
}

#[cfg(test)]
mod tests;
