//! The `bash` engine: shell scripts, by the machine's own bash.
//!
//! The engine itself stays in the cell's guest process: it starts bash as a child, forwards what
//! the script prints as it happens, and turns the way it ended into a value or an error. Which
//! commands exist, and which files, is the jail's business; this module only makes good messages
//! of what the jail refuses.

mod commands;
mod json_line;
mod launch;
mod lines;
mod outcome;
mod paths;
mod pump;
mod refusals;
mod state;
mod stderr;

use std::path::{Path, PathBuf};

use belljar_contract::{EngineName, ErrorCode, Language};
use belljar_wire::{GuestError, GuestGrants, GuestLimits, RunCommand, RunValue};
use outcome::ShellOutcome;
use state::{MAX_STATE_BYTES, ShellState};

use crate::{
    CodeRunner, Engine, HostLink,
    engine::name_output,
    zygote::{RESUME_ARGUMENT, become_zygote_of_programs, resume_zygote},
};

pub use commands::{DEFAULT_COMMANDS, REMOVING_COMMANDS};

/// The programs of Belljar's own that a cell may execute.
pub fn own_commands() -> impl Iterator<Item = PathBuf> {
    commands::OWN_COMMANDS.iter().map(|(name, _)| Path::new(OWN_DIRECTORY).join(name))
}

/// The directory of the commands a cell has, if it was granted nothing.
pub const COMMANDS_DIRECTORY: &str = "/belljar/bin";
/// The directory of the commands among them that restricted mode goes without.
pub const REMOVING_DIRECTORY: &str = "/belljar/removing";
/// The directory of commands that are scripts of Belljar's own.
const OWN_DIRECTORY: &str = "/belljar/own";
/// The beginning of the code of a YAML agent in restricted mode.
pub const RESTRICTED_CALL: &str = "__belljar_restricted__; ";
/// The directory of commands that were granted to one cell.
const GRANTED_COMMANDS_DIRECTORY: &str = "/commands";

/// Where no program is.
const NOWHERE: &str = "/nowhere";

/// Where things are in the cell.
#[derive(Debug, Clone)]
pub struct BashSetup {
    /// The path of bash, as the cell sees it.
    pub bash: PathBuf,
    /// `PATH` in restricted mode: the directories of the granted commands.
    pub default_path: String,
    /// The end of `PATH` in any other mode: the directory of commands that remove files.
    pub removing: Option<String>,
    /// The directory the script starts in, which is also its `HOME`.
    pub work: PathBuf,
    /// `TMPDIR`, where the context is put too.
    pub tmp: PathBuf,
}

impl BashSetup {
    /// The paths every cell has, and these two.
    pub fn new(bash: impl Into<PathBuf>, default_path: impl Into<String>) -> Self {
        Self {
            bash: bash.into(),
            default_path: default_path.into(),
            removing: None,
            work: "/work".into(),
            tmp: "/tmp".into(),
        }
    }

    fn path(&self) -> String {
        let removing = self.removing.iter().map(String::as_str);
        [self.default_path.as_str()].into_iter().chain(removing).collect::<Vec<_>>().join(":")
    }
}

/// Shell scripts, by the machine's own bash. Its set-up is the path of bash.
#[derive(Debug)]
pub(crate) struct BashEngine;

impl Engine for BashEngine {
    fn name(&self) -> EngineName {
        EngineName::Bash
    }

    fn start(&self, bash: &str) -> ! {
        let script = |(name, text): &(&str, &str)| {
            let path = Path::new(OWN_DIRECTORY).join(name);
            (path, format!("#!{bash}\n{text}\n").into_bytes())
        };
        let own = commands::OWN_COMMANDS.iter().map(script).collect();
        become_zygote_of_programs(&[RESUME_ARGUMENT, EngineName::Bash.as_str(), bash], own)
    }

    fn resume(&self, bash: &str, handover: &str) {
        resume_zygote(handover, || {
            let path = format!("{GRANTED_COMMANDS_DIRECTORY}:{OWN_DIRECTORY}:{COMMANDS_DIRECTORY}");
            let removing = Some(REMOVING_DIRECTORY.to_owned());
            Ok(Bash::new(BashSetup { removing, ..BashSetup::new(bash, path) }))
        })
    }
}

/// Runs bash in a cell. There is nothing to warm: bash starts when the code is there.
#[derive(Debug)]
pub struct Bash {
    setup: BashSetup,
    /// The shell state that the last run of the session has left.
    state: ShellState,
}

impl Bash {
    /// For the bash of this set-up.
    pub fn new(setup: BashSetup) -> Self {
        Self { setup, state: ShellState::default() }
    }
}

impl CodeRunner for Bash {
    fn run(&mut self, mut run: RunCommand, host: &HostLink) -> Result<RunValue, GuestError> {
        let mut setup = self.setup.clone();
        if let Some(code) = run.code.strip_prefix(RESTRICTED_CALL) {
            (run.code, setup.removing) = (code.to_owned(), None);
        }
        if run.code.contains('\0') {
            let message = "the code contains a NUL byte, which bash cannot run";
            return Err(GuestError::new(ErrorCode::SyntaxInvalid, message));
        }
        let running = launch::launch(&setup, &run, &self.state)?;
        let mut ended = pump::pump(running, &run, host).map_err(|error| {
            let message = format!("could not read the output of bash: {error}");
            GuestError::new(ErrorCode::SandboxEngine, message)
        })?;
        name_output(host);
        let left = ended.left.take();
        let is_too_large = left.as_ref().is_some_and(|left| left.len() > MAX_STATE_BYTES);
        if let Some(state) = left.as_deref().and_then(ShellState::read) {
            pump::end_groups(state.jobs());
            if !is_too_large {
                self.state = state;
            }
        }
        let concluded = ShellOutcome { run: &run, ended }.conclude();
        if is_too_large { concluded.and_then(|_| Err(state::too_large())) } else { concluded }
    }

    /// Goes all the way to starting a program, which is not there.
    fn rehearse(&mut self, _host: &HostLink) {
        let setup = BashSetup { bash: NOWHERE.into(), ..self.setup.clone() };
        let limits = GuestLimits {
            memory_bytes: 0,
            wall_ms: 0,
            cpu_ms: 0,
            result_bytes: 0,
            processes: 1,
            open_files: 1,
        };
        let run = RunCommand {
            language: Language::Bash,
            file_name: "main.sh".to_owned(),
            arguments: Vec::new(),
            limits,
            grants: GuestGrants::default(),
            code: ":".to_owned(),
            context: Vec::new(),
            durable: None,
            session: false,
        };
        let _ = launch::launch(&setup, &run, &self.state);
    }
}
