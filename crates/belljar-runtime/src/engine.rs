//! The port by which the host learns how to start an engine.
//!
//! What an engine is called, which languages it runs and what it can do is a row of the contract's table
//! ([`EngineName::row`]). This port adds what depends on the machine: where its program is, and with what
//! its zygote is warmed.

use std::{fmt::Debug, path::PathBuf};

use belljar_contract::EngineName;
use belljar_jail::View;

use crate::ZygoteProgram;

/// A kind of zygote: an engine, and what is loaded into it before it clones cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ZygoteKind {
    /// The engine its cells run.
    pub engine: EngineName,
    /// What is loaded beforehand.
    pub preload: Preload,
}

/// What is loaded into a zygote beforehand, so that cells need not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preload {
    /// The engine and its own library.
    Standard,
    /// The libraries for data that code commonly imports, too: worth their memory only to code that
    /// names one of them.
    DataLibraries,
}

impl ZygoteKind {
    /// The engine with its own library.
    pub const fn standard(engine: EngineName) -> Self {
        Self { engine, preload: Preload::Standard }
    }
}

/// How to start a zygote of an engine.
#[derive(Debug, Clone)]
pub struct EngineLaunch {
    /// The program that becomes it.
    pub program: ZygoteProgram,
    /// What it needs to see of the host's software; `None` for an engine that needs nothing.
    pub view: Option<View>,
}

/// Where engines come from. Each is found once, when it is first needed.
pub trait EngineSource: Debug + Send + Sync {
    /// The zygote that suits a piece of code of an engine.
    fn zygote_for(&self, engine: EngineName, code: &str) -> ZygoteKind;

    /// How to start such a zygote, or why that cannot be done here and what to do about it. May
    /// take a while: it is not called on an asynchronous thread.
    fn find(&self, kind: ZygoteKind) -> Result<EngineLaunch, String>;

    /// The program a command's name means, if cells can be given it.
    fn command(&self, name: &str) -> Option<PathBuf>;
}

/// A program that becomes a zygote of TypeScript and JavaScript, and of nothing else.
impl EngineSource for ZygoteProgram {
    fn zygote_for(&self, engine: EngineName, _code: &str) -> ZygoteKind {
        ZygoteKind::standard(engine)
    }

    fn find(&self, kind: ZygoteKind) -> Result<EngineLaunch, String> {
        if kind.engine == EngineName::QuickJs {
            return Ok(EngineLaunch { program: self.clone(), view: None });
        }
        Err(format!("this host has no {}", kind.engine))
    }

    fn command(&self, _name: &str) -> Option<PathBuf> {
        None
    }
}
