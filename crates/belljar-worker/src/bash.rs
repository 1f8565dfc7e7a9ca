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
mod said;
mod state;

use std::path::PathBuf;

use belljar_wire::{ErrorCode, GuestError, GuestGrants, GuestLimits, Language, RunCommand};

use crate::{Done, Engine, HostLink, engine::name_output};
use outcome::Outcome;
use state::{MAX_STATE_BYTES, State};

pub use commands::DEFAULT_COMMANDS;

/// Where no program is.
const NOWHERE: &str = "/nowhere";

/// Where things are in the cell.
#[derive(Debug, Clone)]
pub struct BashSetup {
    /// The program.
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

/// The engine. There is nothing to warm: bash starts when the code is there.
#[derive(Debug)]
pub struct Bash {
    setup: BashSetup,
    /// What the last run of the session has left.
    state: State,
}

impl Bash {
    /// An engine that will run this bash.
    pub fn new(setup: BashSetup) -> Self {
        Self { setup, state: State::default() }
    }
}

impl Engine for Bash {
    fn run(&mut self, run: RunCommand, host: &HostLink) -> Result<Done, GuestError> {
        if run.code.contains('\0') {
            let message = "the code holds a NUL byte, which no shell script can";
            return Err(GuestError::new(ErrorCode::SyntaxInvalid, message));
        }
        let running = launch::launch(&self.setup, &run, &self.state)?;
        let mut ended = pump::pump(running, &run, host).map_err(|error| {
            let message = format!("could not follow what bash does: {error}");
            GuestError::new(ErrorCode::SandboxEngine, message)
        })?;
        name_output(host);
        let left = ended.left.take();
        let is_too_large = left.as_ref().is_some_and(|left| left.len() > MAX_STATE_BYTES);
        if let Some(state) = left.as_deref().and_then(State::read) {
            pump::end_groups(state.jobs());
            if !is_too_large {
                self.state = state;
            }
        }
        let concluded = Outcome { run: &run, ended }.conclude();
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
