//! A grant that a run lacked, as data, and the words by which each reader asks for it.
//!
//! A guest knows that a module, a command or a path was not granted. It does not know who reads its error:
//! a person at a command line has flags, a model has fields of a request, an operator has a file. So the
//! guest names the grant, and the sentence about it is made here.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::{ErrorCode, Grant, Limit, RunError, shell_word};

/// A grant that the code reached for and did not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingGrant {
    /// Which grant, by its name in requests.
    #[serde(deserialize_with = "missing_grant")]
    #[schemars(schema_with = "missing_keys")]
    pub kind: Grant,
    /// The path, the variable, the module, the command or the host with its port.
    pub name: String,
}

/// The reader of a hint. Each kind of reader asks for a grant in other words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Audience {
    /// A person at a command line, who has flags.
    #[default]
    CommandLine,
    /// A model or a program, which has the fields of a request.
    Client,
    /// A model or a program that may not ask for it: only the operator can allow it.
    Operator,
    /// The author of a workflow file.
    WorkflowFile,
}

impl MissingGrant {
    /// The flag, field or key that grants it, in the words of the reader.
    pub fn phrase(&self, audience: Audience) -> String {
        let Self { kind, name } = self;
        let (flag, key) = (kind.flag_name(), kind.key());
        match audience {
            Audience::WorkflowFile if *kind == Grant::Net => {
                format!("`allow_network: [{name:?}]` (in a DAG file: `net` in `grants`)")
            }
            // The guest chose the name, and a person may paste this.
            Audience::CommandLine => format!("--{flag} {}", shell_word(name)),
            Audience::Client if *kind == Grant::Net => {
                format!("`network: [{name:?}]` (HTTP: `{key}` in `grants`)")
            }
            Audience::Client => {
                format!("`{key}: [{name:?}]` in `sandbox_config` (HTTP: in `grants`)")
            }
            Audience::Operator if *kind == Grant::Net => {
                operator_phrase(flag, ("net", "allow"), name)
            }
            Audience::Operator => operator_phrase(flag, ("grants", key), name),
            Audience::WorkflowFile if *kind == Grant::Modules => {
                format!("`allowed_modules: [{name}]`")
            }
            Audience::WorkflowFile => format!("`{key}: [{name:?}]`"),
        }
    }

    fn sentence(&self, audience: Audience) -> String {
        let phrase = self.phrase(audience);
        if audience == Audience::Operator {
            return format!("Only the operator can allow it, with {phrase}.");
        }
        if self.kind == Grant::Modules {
            return format!("Ask for {phrase} if there is no other way.");
        }
        format!("Grant it with {phrase}.")
    }
}

/// The flag and the key, with its table, by which the operator allows a value.
pub fn operator_phrase(flag: &str, (table, key): (&str, &str), value: &str) -> String {
    let word = shell_word(value);
    format!(
        "`belljar serve --{flag} {word}`, or `{key} = [{value:?}]` under [{table}] in the user's belljar.toml"
    )
}

fn missing_keys(_: &mut SchemaGenerator) -> Schema {
    let keys =
        Grant::ALL.iter().map(|grant| grant.key()).filter(|key| Grant::of_missing(key).is_some());
    json_schema!({"type": "string", "enum": keys.collect::<Vec<_>>()})
}

fn missing_grant<'de, D: Deserializer<'de>>(json: D) -> Result<Grant, D::Error> {
    let key = Cow::<str>::deserialize(json)?;
    let unknown = || de::Error::custom(format!("`{key}` is no grant that code can miss"));
    Grant::of_missing(&key).ok_or_else(unknown)
}

impl Limit {
    /// The sentence that asks for more of it, in the words of the reader.
    pub fn advice(self, audience: Audience) -> String {
        format!("Or ask for more with {}.", self.phrase(audience))
    }

    /// The flag, field or key that raises it, in the words of the reader.
    pub fn phrase(self, audience: Audience) -> String {
        match audience {
            Audience::CommandLine => format!("--{}", self.flag()),
            Audience::Client => {
                format!("`{}` in `sandbox_config` (HTTP: in `limits`)", self.json_key())
            }
            Audience::Operator => format!("`{}` under [limits] in belljar.toml", self.key()),
            Audience::WorkflowFile => format!("`{}` under `limits`", self.json_key()),
        }
    }

    /// The limit that was reached, if this code says that one was.
    fn of(code: ErrorCode) -> Option<Self> {
        REACHED.iter().find(|(reached, _)| *reached == code).map(|(_, limit)| *limit)
    }
}

/// The codes for limits that a reader can ask to have raised.
const REACHED: [(ErrorCode, Limit); 14] = [
    (ErrorCode::LimitTimeout, Limit::Timeout),
    (ErrorCode::LimitCpu, Limit::Cpu),
    (ErrorCode::LimitMemory, Limit::Memory),
    (ErrorCode::LimitProcesses, Limit::Processes),
    (ErrorCode::LimitDisk, Limit::Disk),
    (ErrorCode::LimitInodes, Limit::Inodes),
    (ErrorCode::LimitOpenFiles, Limit::OpenFiles),
    (ErrorCode::LimitOutput, Limit::OutputBytes),
    (ErrorCode::LimitToolCalls, Limit::ToolCalls),
    (ErrorCode::LimitNetConnections, Limit::NetConnections),
    (ErrorCode::LimitNetBytes, Limit::NetBytes),
    (ErrorCode::LimitCode, Limit::CodeBytes),
    (ErrorCode::LimitContext, Limit::ContextBytes),
    (ErrorCode::LimitResult, Limit::ResultBytes),
];

impl RunError {
    /// Adds to the hint how to ask for what was missing, or for more of what ran out, in the words of the
    /// command line. A hint that says so already stays as it is.
    #[must_use]
    pub fn with_advice(mut self) -> Self {
        let Some((phrase, sentence)) = self.asking(Audience::CommandLine) else { return self };
        self.hint = Some(match self.hint.take() {
            Some(hint) if hint.contains(&phrase) => hint,
            Some(hint) if !hint.is_empty() => format!("{hint} {sentence}"),
            Some(_) | None => sentence,
        });
        self
    }

    /// The hint for another reader than one at a command line: what the guest advised, and how this reader
    /// asks for what was missing.
    pub fn hint_for(&self, audience: Audience) -> Option<String> {
        let hint = self.hint.as_deref()?;
        if self.code == ErrorCode::ToolTimeout {
            // The server may have set the time. Then the hint does not name the limit of the request.
            let limit = Limit::ToolTimeout;
            let own = hint.strip_suffix(&limit.advice(Audience::CommandLine));
            return Some(
                own.map_or_else(|| hint.to_owned(), |own| own.to_owned() + &limit.advice(audience)),
            );
        }
        let asking = (self.asking(Audience::CommandLine), self.asking(audience));
        let (Some((_, of_command_line)), Some((_, sentence))) = asking else {
            return Some(hint.to_owned());
        };
        // The guest's own words may end differently; then they stand alone.
        let own = hint.strip_suffix(&of_command_line);
        Some(own.map_or_else(|| hint.to_owned(), |own| format!("{own}{sentence}")))
    }

    /// The words that ask for the missing grant or for a higher limit, and a sentence with them.
    fn asking(&self, audience: Audience) -> Option<(String, String)> {
        if let Some(missing) = &self.missing {
            return Some((missing.phrase(audience), missing.sentence(audience)));
        }
        let limit = Limit::of(self.code)?;
        Some((limit.phrase(audience), limit.advice(audience)))
    }
}
