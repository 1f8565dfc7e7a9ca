//! The language engines of this machine, and how they are started.

mod python;
mod software;

use std::path::{Path, PathBuf};

use belljar_contract::EngineName;
use belljar_runtime::{EngineLaunch, EngineSource, Preload, View, ZygoteKind, ZygoteProgram};
use belljar_worker::{
    BASH_ARGUMENT, COMMANDS_DIRECTORY, CPYTHON_ARGUMENT, ZYGOTE_ARGUMENT, bash::DEFAULT_COMMANDS,
};

/// Code that uses one of these libraries gets a zygote with numpy and pandas imported.
const DATA_LIBRARIES: [&str; 6] = ["numpy", "pandas", "matplotlib", "scipy", "sklearn", "seaborn"];

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

    fn launch(&self, arguments: &[&str], view: Option<View>) -> EngineLaunch {
        let arguments = [&[ZYGOTE_ARGUMENT], arguments].concat();
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        EngineLaunch { program: ZygoteProgram { path: self.program.clone(), arguments }, view }
    }

    fn bash(&self) -> Result<EngineLaunch, String> {
        let bash = software::command("bash")
            .ok_or("bash is not installed on this machine (Debian: apt-get install bash)")?;
        let mut view = software::view();
        for name in DEFAULT_COMMANDS {
            if let Some(program) = software::command(name) {
                view.links.push((Path::new(COMMANDS_DIRECTORY).join(name), program.clone()));
                view.executable.push(program);
            }
        }
        view.executable.push(bash.clone());
        view.executable.sort();
        view.executable.dedup();
        Ok(self.launch(&[BASH_ARGUMENT, &bash.to_string_lossy()], Some(view)))
    }

    fn python(&self, preload: Preload) -> Result<EngineLaunch, String> {
        let mut found = python::find()?;
        let mut view = software::view();
        found.add_to(&mut view);
        let setup = found.setup(preload == Preload::DataLibraries)?;
        Ok(self.launch(&[CPYTHON_ARGUMENT, &setup], Some(view)))
    }
}

impl EngineSource for MachineEngines {
    fn zygote_for(&self, engine: EngineName, code: &str) -> ZygoteKind {
        let uses_data = || DATA_LIBRARIES.iter().any(|name| code.contains(name));
        match engine {
            EngineName::CPython if uses_data() => {
                ZygoteKind { engine, preload: Preload::DataLibraries }
            }
            EngineName::QuickJs | EngineName::CPython | EngineName::Bash => {
                ZygoteKind::standard(engine)
            }
        }
    }

    fn find(&self, kind: ZygoteKind) -> Result<EngineLaunch, String> {
        match kind.engine {
            EngineName::QuickJs => Ok(self.launch(&[], None)),
            EngineName::CPython => self.python(kind.preload),
            EngineName::Bash => self.bash(),
        }
    }

    fn command(&self, name: &str) -> Option<PathBuf> {
        software::command(name)
    }
}
