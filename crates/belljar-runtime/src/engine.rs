//! The port by which the host learns how to start an engine.
//!
//! The contract's table ([`EngineName::row`]) has what is the same on every machine: the engine's name, its
//! languages, its abilities. This port adds what depends on the machine: the program, and what to load into
//! its zygote.

use std::{fmt::Debug, path::PathBuf};

use belljar_contract::EngineName;
use belljar_jail::View;

use crate::ZygoteProgram;

/// A kind of zygote: an engine, and what it loads before it clones cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ZygoteKind {
    /// The engine its cells run.
    pub engine: EngineName,
    /// The modules that the zygote loads once, so that no cell has to.
    pub preload: Preload,
}

/// The modules that a zygote loads before it clones cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preload {
    /// The engine and its own library.
    Standard,
    /// Also the common data libraries. They cost memory, so only code that names one of them gets this
    /// zygote.
    DataLibraries,
}

impl ZygoteKind {
    /// The zygote of an engine that loads nothing but the engine's own library.
    pub const fn standard(engine: EngineName) -> Self {
        Self { engine, preload: Preload::Standard }
    }
}

/// How to start a zygote of an engine.
#[derive(Debug, Clone)]
pub struct EngineLaunch {
    /// The program to start, which becomes the zygote.
    pub program: ZygoteProgram,
    /// The host software that the engine needs to see; `None` for an engine that needs none.
    pub view: Option<View>,
}

/// Finds engines on this machine. The host asks for each once, when it is first needed.
pub trait EngineSource: Debug + Send + Sync {
    /// Chooses the zygote for this code of an engine.
    fn zygote_for(&self, engine: EngineName, code: &str) -> ZygoteKind;

    /// How to start such a zygote. The error says why this machine cannot, and what to do about it; callers
    /// see it as it is. May block: the host does not call it on an asynchronous thread.
    fn find(&self, kind: ZygoteKind) -> Result<EngineLaunch, String>;

    /// The path of a command, if cells can be granted it.
    fn command(&self, name: &str) -> Option<PathBuf>;
}

/// A program that becomes a zygote of `quickjs`, and of no other engine.
impl EngineSource for ZygoteProgram {
    fn zygote_for(&self, engine: EngineName, _code: &str) -> ZygoteKind {
        ZygoteKind::standard(engine)
    }

    fn find(&self, kind: ZygoteKind) -> Result<EngineLaunch, String> {
        if kind.engine == EngineName::QuickJs {
            return Ok(EngineLaunch { program: self.clone(), view: None });
        }
        Err(format!("this host has no engine {}", kind.engine))
    }

    fn command(&self, _name: &str) -> Option<PathBuf> {
        None
    }
}
