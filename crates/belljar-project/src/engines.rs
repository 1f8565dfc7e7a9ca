//! The language engines of this machine, and how they are started.

mod python;
mod software;

use std::path::{Path, PathBuf};

use belljar_runtime::{EngineKind, EngineLaunch, EngineSource, Language, View, ZygoteProgram};
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

    fn python(&self, data: bool) -> Result<EngineLaunch, String> {
        let mut found = python::find()?;
        let mut view = software::view();
        found.add_to(&mut view);
        let setup = found.setup(data)?;
        Ok(self.launch(&[CPYTHON_ARGUMENT, &setup], Some(view)))
    }
}

impl EngineSource for MachineEngines {
    fn choose(&self, language: Language, code: &str) -> EngineKind {
        match language {
            Language::TypeScript | Language::JavaScript => EngineKind::QuickJs,
            Language::Python if DATA_LIBRARIES.iter().any(|name| code.contains(name)) => {
                EngineKind::CPythonData
            }
            Language::Python => EngineKind::CPython,
            Language::Bash => EngineKind::Bash,
        }
    }

    fn find(&self, engine: EngineKind) -> Result<EngineLaunch, String> {
        match engine {
            EngineKind::QuickJs => Ok(self.launch(&[], None)),
            EngineKind::CPython => self.python(false),
            EngineKind::CPythonData => self.python(true),
            EngineKind::Bash => self.bash(),
        }
    }

    fn command(&self, name: &str) -> Option<PathBuf> {
        software::command(name)
    }
}
