//! The `cpython` engine: the machine's own Python, warmed inside the jail.
//!
//! The zygote is a Python process. It is confined before it starts, imports what agents use, loads
//! the jail as a library, and hands itself over to it: its cells are cloned and confined by the
//! same code as those of any other engine, and then run Python. What runs there is in `guest/`.

use std::{ffi::OsString, path::PathBuf};

use belljar_contract::EngineName;
use belljar_jail::zygote::{self, Successor};
use serde::{Deserialize, Serialize};

use crate::Engine;

/// Python, by the machine's own CPython. Its set-up is a [`PythonSetup`] as JSON.
#[derive(Debug)]
pub(crate) struct CPythonEngine;

impl Engine for CPythonEngine {
    fn name(&self) -> EngineName {
        EngineName::CPython
    }

    /// The zygote becomes a Python process, which continues as one by loading the jail's library:
    /// this program is not started again.
    fn start(&self, setup: &str) -> ! {
        zygote::serve_by(|| successor(setup))
    }
}

/// The Python of this machine, as the host found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonSetup {
    /// The path of the interpreter itself, not of a link or a script.
    pub program: PathBuf,
    /// The directories in which it finds modules.
    pub paths: Vec<PathBuf>,
    /// Whether numpy and pandas are imported in the zygote.
    pub data: bool,
}

/// The jail, as a shared library.
const LIBRARY: &[u8] = include_bytes!(env!("BELLJAR_JAIL_LIBRARY"));

/// The modules of the guest's side, by file name.
const GUEST: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/guest.rs"));

const START: &str = "import sys; sys.path[0] = '/belljar/lib'; \
                     from belljar_guest.zygote import main; main(*sys.argv[1:])";

/// The Python process that takes over a confined zygote.
fn successor(setup: &str) -> Result<Successor, String> {
    let PythonSetup { program, .. } = serde_json::from_str(setup)
        .map_err(|error| format!("the Python set-up is not valid JSON: {error}"))?;
    let modules = GUEST.iter().map(|(name, source)| {
        let path = PathBuf::from("/belljar/lib/belljar_guest").join(name);
        (path, source.as_bytes().to_vec())
    });
    let library = ("/belljar/libjail.so".into(), LIBRARY.to_vec());
    // Not `-I`, which would ignore the seed with the rest of the environment; there is no rest.
    let arguments = ["-s", "-B", "-X", "utf8", "-c", START, setup];
    Ok(Successor {
        path: program,
        arguments: arguments.into_iter().map(OsString::from).collect(),
        // Sets of strings have one order, so that a run can be replayed. A guest that exploits the
        // known seed slows down only itself.
        environment: vec![("PYTHONHASHSEED", "0")],
        files: modules.chain([library]).collect(),
    })
}
