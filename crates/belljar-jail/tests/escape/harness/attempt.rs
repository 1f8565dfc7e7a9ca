//! The type of an attempt, and the list of all attempts.

use super::{bait::Bait, outcome::Outcome};
use crate::{
    descriptors, files, frames, ipc, kernel, memory, mounts, namespaces, neighbours, network,
    processes, programs,
};
use belljar_contract::{ErrorCode, Limits};

/// The weakest setting in which an attempt has to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// An ordinary process of an ordinary user.
    User,
    /// That user in plain namespaces of its own, with every capability over them.
    Namespaces,
    /// The control runs as root.
    Root,
    /// A cell: for attempts against the host's end of the socket, whose control is an honest use
    /// of the same route.
    Cell,
}

/// A way an attempt may end inside a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The probe reports that it was refused.
    Blocked,
    /// The kernel kills the guest with this signal.
    Killed(i32),
    /// The host ends the run with this error.
    Error(ErrorCode),
}

/// The sign that an attempt on granted files got through. Outside either is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judge {
    /// It says that it was refused, and the host's files are as they should be.
    ReportAndFiles,
    /// It may say that it succeeded, as long as the host's files are as they should be.
    Files,
}

/// One attempt to get out, or at something.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) control: Setting,
    pub(crate) run: fn(&Bait) -> Outcome,
    pub(crate) ends: &'static [Ending],
    pub(crate) limits: fn(&mut Limits),
    /// The work of another cell meanwhile, for attempts to find a neighbour.
    pub(crate) plant: Option<fn(&Bait) -> Outcome>,
    /// Whether the cell is granted what is in [`Bait::home`].
    pub(crate) granted: Option<Judge>,
    /// Why it may succeed in a cell of programs. What still bounds it there is an attempt of its
    /// own.
    pub(crate) harmless_for_programs: Option<&'static str>,
    /// Why it may succeed in a session's cell.
    pub(crate) harmless_in_sessions: Option<&'static str>,
    /// Why it may succeed in a cell that has a proxy.
    pub(crate) harmless_with_proxy: Option<&'static str>,
}

impl Attempt {
    pub(crate) const fn new(
        name: &'static str,
        control: Setting,
        run: fn(&Bait) -> Outcome,
    ) -> Self {
        Self {
            name,
            control,
            run,
            ends: &[Ending::Blocked],
            limits: |_| {},
            plant: None,
            granted: None,
            harmless_for_programs: None,
            harmless_in_sessions: None,
            harmless_with_proxy: None,
        }
    }

    /// Allowed in a cell that has a proxy, for this reason.
    pub(crate) const fn harmless_with_proxy(mut self, reason: &'static str) -> Self {
        self.harmless_with_proxy = Some(reason);
        self
    }

    /// Other ways to end than by a report.
    pub(crate) const fn ends(mut self, ends: &'static [Ending]) -> Self {
        self.ends = ends;
        self
    }

    /// With limits of its own.
    pub(crate) const fn limits(mut self, limits: fn(&mut Limits)) -> Self {
        self.limits = limits;
        self
    }

    /// In a cell with grants.
    pub(crate) const fn granted(mut self, judge: Judge) -> Self {
        self.granted = Some(judge);
        self
    }

    /// Allowed where guests are programs, for this reason.
    pub(crate) const fn harmless_for_programs(mut self, reason: &'static str) -> Self {
        self.harmless_for_programs = Some(reason);
        self
    }

    /// Allowed in a session's cell, for this reason.
    pub(crate) const fn harmless_in_sessions(mut self, reason: &'static str) -> Self {
        self.harmless_in_sessions = Some(reason);
        self
    }

    /// While a neighbour does this.
    pub(crate) const fn beside(mut self, plant: fn(&Bait) -> Outcome) -> Self {
        self.plant = Some(plant);
        self
    }
}

/// Every attempt on any cell, by what it is aimed at. Cells of programs have more.
pub(crate) const MECHANISMS: &[(&str, &[Attempt])] = &[
    ("namespaces", namespaces::ATTEMPTS),
    ("mounts", mounts::ATTEMPTS),
    ("files", files::ATTEMPTS),
    ("processes", processes::ATTEMPTS),
    ("memory", memory::ATTEMPTS),
    ("network", network::ATTEMPTS),
    ("kernel", kernel::ATTEMPTS),
    ("descriptors", descriptors::ATTEMPTS),
    ("ipc", ipc::ATTEMPTS),
    ("frames", frames::ATTEMPTS),
    ("neighbours", neighbours::ATTEMPTS),
];

/// An attempt by its name, wherever it is listed.
pub(crate) fn find(name: &str) -> Option<&'static Attempt> {
    let tables = [MECHANISMS, programs::MECHANISMS, programs::GRANTED, network::WITH_PROXY];
    let tables = tables.into_iter().flatten();
    let attempts = tables.flat_map(|(_, attempts)| *attempts);
    attempts.chain(frames::HONEST).find(|attempt| attempt.name == name)
}
