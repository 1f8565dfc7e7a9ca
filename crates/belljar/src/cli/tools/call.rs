//! `belljar tools call`: makes one call, as code does.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use belljar_project::{Project, config::ProjectSettings};
use belljar_runtime::{ToolFault, run_id};
use belljar_tools::{RunContext, Tool, ToolGrants, ToolValue, read_arguments};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{ToolAccess, print_fault};
use crate::cli::{
    approvals::prompt::{self, ApprovalWait},
    arguments::ToolsCallArguments,
    print_json,
    run::CALLER,
    terminal::{
        json_text::{Layout, lay_out},
        style::TextStyle,
        visible::for_stream,
    },
};

/// Runs `belljar tools call`.
pub(super) async fn call(
    arguments: &ToolsCallArguments,
    settings: &ProjectSettings,
    project: &Project,
    access: &ToolAccess,
) -> anyhow::Result<ExitCode> {
    let given = match arguments.arguments.as_slice() {
        [one] if is_object(one) && !arguments.argument.is_empty() => {
            bail!("give the arguments as one JSON object or as KEY=VALUE, not as both")
        }
        [one] if is_object(one) => Some(read(one)?),
        _ => None,
    };
    let outcome = match access.waiting(access.bridge.tool(&arguments.name)).await {
        Err(fault) => Err(fault),
        Ok(tool) => {
            let given = match given {
                Some(given) => given,
                None => {
                    let all = arguments.arguments.iter().chain(&arguments.argument);
                    named(all, &tool)?
                }
            };
            let context = RunContext {
                session: None,
                run_id: run_id(),
                caller: CALLER.to_owned(),
                grants: ToolGrants::default(),
                tool_timeout: arguments.timeout.unwrap_or(settings.limits(&[]).tool_timeout),
                code: String::new(),
                observer: prompt::observer(
                    access.bridge.decisions(),
                    project,
                    ApprovalWait::of(arguments.no_wait),
                ),
            };
            let called = access.bridge.call(&context, &tool.qualified_name(), given.into()).await;
            called.map(ToolValue::into_json)
        }
    };
    if arguments.json {
        print_json(&CallReport::of(&outcome))?;
    } else {
        match &outcome {
            Ok(value) => show(value)?,
            Err(fault) => print_fault(fault)?,
        }
    }
    Ok(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The outcome of a call in the JSON output.
#[derive(Debug, Serialize)]
struct CallReport<'a> {
    success: bool,
    result: &'a RawValue,
    error: Option<&'a ToolFault>,
}

impl<'a> CallReport<'a> {
    fn of(outcome: &'a Result<Vec<u8>, ToolFault>) -> Self {
        match outcome {
            Ok(value) => {
                // The bridge has checked that it is JSON.
                let result = serde_json::from_slice(value).unwrap_or(RawValue::NULL);
                Self { success: true, result, error: None }
            }
            Err(fault) => Self { success: false, result: RawValue::NULL, error: Some(fault) },
        }
    }
}

fn show(value: &[u8]) -> anyhow::Result<()> {
    let style = TextStyle::of_stdout();
    let json = std::str::from_utf8(value)?;
    let text = match serde_json::from_str::<String>(json) {
        Ok(text) => for_stream(&text, style).into_owned(),
        Err(_) => lay_out(json, Layout::Fitted, style),
    };
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// Whether an argument is all arguments of the tool, as JSON or in a file. Any other one is a single
/// `KEY=VALUE`.
fn is_object(text: &str) -> bool {
    text.starts_with('@') || text.trim_start().starts_with('{') || !text.contains('=')
}

/// Reads the arguments from the command line, a file or standard input.
fn read(given: &str) -> anyhow::Result<Map<String, Value>> {
    let (json, name) = match given.strip_prefix('@') {
        None => (given.to_owned(), "the arguments"),
        Some("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
            (text, "standard input")
        }
        Some(path) => {
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
            (text, path)
        }
    };
    checked(name, &json)
}

/// Parses the arguments if they can be sent.
fn checked(name: &str, json: &str) -> anyhow::Result<Map<String, Value>> {
    match read_arguments(json.as_bytes()) {
        Ok(arguments) => Ok(arguments),
        Err(error) if !json.trim_start().starts_with('{') => {
            bail!("{name}: {error}; write a JSON object, @FILE, or KEY=VALUE")
        }
        Err(error) => bail!("{name}: {error}"),
    }
}

/// Arguments given one by one. A value is JSON; it stays text if the tool expects text, or if it is
/// not valid JSON.
fn named<'a>(
    given: impl IntoIterator<Item = &'a String>,
    tool: &Tool,
) -> anyhow::Result<Map<String, Value>> {
    let mut arguments: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
    for argument in given {
        let Some((key, text)) = argument.split_once('=') else {
            bail!("{argument}: expected KEY=VALUE");
        };
        let schema = tool.input_schema.get("properties").and_then(|all| all.get(key));
        let wants_text = schema.and_then(|schema| schema.get("type")) == Some(&"string".into());
        // Unparsed: the check below covers all arguments.
        let value = match serde_json::from_str(text) {
            Ok(value) if !wants_text => value,
            _ => serde_json::value::to_raw_value(text)?,
        };
        if arguments.insert(key, value).is_some() {
            bail!("{key} is given twice");
        }
    }
    checked("the arguments", &serde_json::to_string(&arguments)?)
}

#[cfg(test)]
mod tests;
