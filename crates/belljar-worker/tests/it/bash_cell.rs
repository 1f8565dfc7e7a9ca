//! A directory laid out as a cell is, and scripts run in it by the machine's own bash.

use std::{fs, os::unix::fs::symlink, path::Path};

use belljar_contract::Language;
use belljar_wire::RunCommand;
use belljar_worker::bash::{Bash, BashSetup, DEFAULT_COMMANDS, REMOVING_COMMANDS};

use crate::harness::{Outcome, Place, command, run_on, run_session};

const BASH: &str = "/bin/bash";

/// The cell of a script: `work`, `tmp`, and the default commands this machine has.
#[derive(Debug)]
pub(crate) struct ShellCell {
    place: Place,
}

impl ShellCell {
    pub(crate) fn new() -> Self {
        let place = Place::new();
        for directory in ["work", "tmp", "bin", "removing"] {
            fs::create_dir(place.path().join(directory)).expect("a directory can be made");
        }
        let cell = Self { place };
        DEFAULT_COMMANDS.iter().for_each(|name| cell.link(name, "bin"));
        REMOVING_COMMANDS.iter().for_each(|name| cell.link(name, "removing"));
        cell
    }

    /// Makes a command available, if the machine has it.
    pub(crate) fn grant(&self, name: &str) {
        self.link(name, "bin");
    }

    fn link(&self, name: &str, directory: &str) {
        let found = ["/usr/bin", "/bin"].iter().map(|at| Path::new(at).join(name));
        if let Some(program) = found.into_iter().find(|program| program.exists()) {
            symlink(program, self.place.path().join(directory).join(name))
                .expect("a link can be made");
        }
    }

    /// The path of something in the cell.
    pub(crate) fn at(&self, name: &str) -> String {
        self.place.at(name)
    }

    fn setup(&self) -> BashSetup {
        BashSetup {
            bash: BASH.into(),
            default_path: self.at("bin"),
            removing: Some(self.at("removing")),
            work: self.at("work").into(),
            tmp: self.at("tmp").into(),
        }
    }

    pub(crate) fn run_command(&self, command: RunCommand) -> Outcome {
        let setup = self.setup();
        run_on(|| Bash::new(setup), command)
    }

    /// Runs scripts one after the other, as a session.
    pub(crate) fn run_session(&self, commands: Vec<RunCommand>) -> Vec<Outcome> {
        let setup = self.setup();
        let nobody = |ask| unreachable!("nobody answers {ask:?}");
        run_session(|| Bash::new(setup), commands, nobody)
    }

    pub(crate) fn run(&self, code: &str) -> Outcome {
        self.run_command(script(code))
    }
}

/// A script with limits nothing here reaches.
pub(crate) fn script(code: &str) -> RunCommand {
    RunCommand { language: Language::Bash, file_name: "main.sh".into(), ..command(code) }
}

/// Runs a script in a cell of its own.
pub(crate) fn run(code: &str) -> Outcome {
    ShellCell::new().run(code)
}
