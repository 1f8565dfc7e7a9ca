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

use std::path::PathBuf;

use belljar_contract::{EngineName, ErrorCode, Language};
use belljar_wire::{GuestError, GuestGrants, GuestLimits, RunCommand, RunValue};
use outcome::ShellOutcome;
use state::{MAX_STATE_BYTES, ShellState};

use crate::{
    CodeRunner, Engine, HostLink,
    engine::name_output,
    zygote::{RESUME_ARGUMENT, become_zygote_of_programs, resume_zygote},
};

pub use commands::DEFAULT_COMMANDS;

/// The directory of the commands a cell has, if it was granted nothing.
pub const COMMANDS_DIRECTORY: &str = "/belljar/bin";
/// The directory of commands that were granted to one cell.
const GRANTED_COMMANDS_DIRECTORY: &str = "/commands";

/// Where no program is.
const NOWHERE: &str = "/nowhere";

/// Where things are in the cell.
#[derive(Debug, Clone)]
pub struct BashSetup {
    /// The path of bash, as the cell sees it.
    pub bash: PathBuf,
    /// `PATH`: the directory of the granted commands.
    pub default_path: String,
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
            work: "/work".into(),
            tmp: "/tmp".into(),
        }
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
        become_zygote_of_programs(&[RESUME_ARGUMENT, EngineName::Bash.as_str(), bash])
    }

    fn resume(&self, bash: &str, handover: &str) {
        resume_zygote(handover, || {
            let path = format!("{GRANTED_COMMANDS_DIRECTORY}:{COMMANDS_DIRECTORY}");
            Ok(Bash::new(BashSetup::new(bash, path)))
        })
    }
}

/// Runs bash in a cell. There is nothing to warm: bash starts when the code is there.
#[derive(Debug)]
pub struct Bash {
    setup: BashSetup,
    /// What the last run of the session has left.
    state: ShellState,
}

impl Bash {
    /// For the bash of this set-up.
    pub fn new(setup: BashSetup) -> Self {
        Self { setup, state: ShellState::default() }
    }
}

impl CodeRunner for Bash {
    fn run(&mut self, run: RunCommand, host: &HostLink) -> Result<RunValue, GuestError> {
        if run.code.contains('\0') {
            let message = "the code contains a NUL byte, which bash cannot run";
            return Err(GuestError::new(ErrorCode::SyntaxInvalid, message));
        }
        let running = launch::launch(&self.setup, &run, &self.state)?;
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
