//! The language engines of this machine, and how they are started.

mod python;
mod software;

use std::path::{Path, PathBuf};

use belljar_contract::EngineName;
use belljar_runtime::{EngineLaunch, EngineSource, Preload, View, ZygoteKind, ZygoteProgram};
use belljar_worker::{
    COMMANDS_DIRECTORY, ZYGOTE_ARGUMENT,
    bash::{DEFAULT_COMMANDS, REMOVING_COMMANDS, REMOVING_DIRECTORY, own_commands},
};

/// The engines that are programs of the machine, each with its finder. Every other engine is part of
/// Belljar's own program and needs none.
const FINDERS: [(EngineName, Finder); 2] =
    [(EngineName::CPython, find_python), (EngineName::Bash, find_bash)];

/// Finds the program of an engine. The error says what is missing and how to install it.
type Finder = fn(Preload) -> Result<FoundEngine, String>;

/// An engine that this machine has.
#[derive(Debug, Default)]
struct FoundEngine {
    /// The program; `None` for a part of Belljar's own.
    program: Option<PathBuf>,
    /// The facts about this machine that the engine's worker needs.
    setup: String,
    /// The software of the host that its cells see.
    view: Option<View>,
}

/// Where the program of an engine is on this machine: `None` for an engine that is part of Belljar's own
/// program.
///
/// # Errors
/// If this machine lacks the engine; the text says what to install.
pub fn locate_engine(engine: EngineName) -> Result<Option<PathBuf>, String> {
    find(engine, Preload::Standard).map(|found| found.program)
}

fn find(engine: EngineName, preload: Preload) -> Result<FoundEngine, String> {
    match FINDERS.iter().find(|(name, _)| *name == engine) {
        Some((_, finder)) => finder(preload),
        None => Ok(FoundEngine::default()),
    }
}

fn find_python(preload: Preload) -> Result<FoundEngine, String> {
    let mut found = python::find()?;
    let mut view = software::view();
    found.add_to(&mut view);
    let program = Some(found.program().to_owned());
    let setup = found.setup(preload == Preload::DataLibraries)?;
    Ok(FoundEngine { program, setup, view: Some(view) })
}

fn find_bash(_preload: Preload) -> Result<FoundEngine, String> {
    let bash = software::command("bash")
        .ok_or("bash is not installed on this machine (Debian: apt-get install bash)")?;
    let mut view = software::view();
    for (directory, names) in
        [(COMMANDS_DIRECTORY, DEFAULT_COMMANDS), (REMOVING_DIRECTORY, REMOVING_COMMANDS)]
    {
        for name in names {
            if let Some(program) = software::command(name) {
                view.links.push((Path::new(directory).join(name), program.clone()));
                view.executable.push(program);
            }
        }
    }
    view.executable.push(bash.clone());
    view.executable.extend(own_commands());
    view.executable.sort();
    view.executable.dedup();
    let setup = bash.to_string_lossy().into_owned();
    Ok(FoundEngine { program: Some(bash), setup, view: Some(view) })
}

/// Finds the engines on this machine.
#[derive(Debug)]
pub(crate) struct MachineEngines {
    /// The program that becomes the zygotes.
    program: PathBuf,
}

impl MachineEngines {
    /// `program` becomes the zygotes.
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program }
    }
}

impl EngineSource for MachineEngines {
    fn zygote_for(&self, engine: EngineName, code: &str) -> ZygoteKind {
        let uses_data = engine.row().data_libraries.iter().any(|name| code.contains(name));
        let preload = if uses_data { Preload::DataLibraries } else { Preload::Standard };
        ZygoteKind { engine, preload }
    }

    fn find(&self, kind: ZygoteKind) -> Result<EngineLaunch, String> {
        let FoundEngine { setup, view, .. } = find(kind.engine, kind.preload)?;
        let arguments = vec![ZYGOTE_ARGUMENT.to_owned(), kind.engine.as_str().to_owned(), setup];
        Ok(EngineLaunch { program: ZygoteProgram { path: self.program.clone(), arguments }, view })
    }

    fn command(&self, name: &str) -> Option<PathBuf> {
        software::command(name)
    }
}

#[cfg(test)]
mod tests;
