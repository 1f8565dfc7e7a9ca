//! The port every language implements.

use std::path::Path;

use belljar_wire::{Event, GuestError, RunCommand};

use crate::HostLink;

/// What runs a language inside a cell.
///
/// An engine is warmed in the zygote, before any guest code exists; each cell gets a
/// copy-on-write copy of it and uses it once, a session's cell again and again. It must not start
/// threads and must hold no secret. Between two runs it has no descriptor, thread or process of its
/// own: a session's cell may become two there.
pub trait Engine {
    /// Runs guest code to its end. In a run of a session, what earlier ones left is there.
    ///
    /// What the code prints goes out through `host` as it happens, so that a cell killed in the
    /// middle has already said what it had to say.
    fn run(&mut self, run: RunCommand, host: &HostLink) -> Result<Done, GuestError>;

    /// Called in a cell that has waited a while for its code: touches what a run is going to
    /// touch, so that the cell has its own copies of those pages when the code arrives.
    fn rehearse(&mut self, _host: &HostLink) {}

    /// Called once in the zygote, after its first cell was cloned: what the first run can do
    /// without is prepared here, so that a single run starts sooner and later ones have it warm.
    fn warm_further(&mut self) {}
}

/// Files in here come back beside the value.
const OUTPUT_DIRECTORY: &str = "/work/out";

/// Tells the host at the end of a run that there are files to come back, if there are: it does not
/// look for them unless it is told.
pub(crate) fn name_output(host: &HostLink) {
    if Path::new(OUTPUT_DIRECTORY).is_dir() {
        let _ = host.send(&Event::Artifact { path: OUTPUT_DIRECTORY.to_owned() });
    }
}

/// How a run ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Some number was NaN or infinite and became null.
    pub lossy: bool,
    /// A table had more rows than come back.
    pub cut: bool,
    /// The value as JSON.
    pub value: Vec<u8>,
}
