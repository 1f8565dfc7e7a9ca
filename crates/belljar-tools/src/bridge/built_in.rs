//! The built-in tools: `tools.search`, `tools.describe`, `tools.list` and `load`.

use std::fmt::Display;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use belljar_catalogue::visible::line;
use belljar_contract::ErrorCode;
use belljar_wire::{ToolCall, ToolFault};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{Bridge, RunContext, call::how_to_get};
use crate::{
    Catalogue, LISTING_TIMEOUT, Tool, ToolQuery, ToolValue, ValueShapes, arguments::ReadArguments,
    describe,
};

/// The server of the built-in tools; no configured server may have its name.
pub(super) const SERVER: &str = "belljar";
/// The most results of one search.
const MOST_FOUND: usize = 50;

#[derive(Deserialize)]
struct Search {
    intent: String,
    #[serde(default = "five")]
    k: f64,
}

fn five() -> f64 {
    5.0
}

#[derive(Deserialize)]
struct Describe {
    name: String,
}

#[derive(Deserialize)]
struct Load {
    handle: Value,
}

impl Bridge {
    /// Answers a call of a built-in tool.
    pub(super) async fn built_in(
        &self,
        run: &RunContext,
        call: &ToolCall,
        given: ReadArguments,
    ) -> Result<ToolValue, ToolFault> {
        match call.tool.as_str() {
            "search" => {
                let Search { intent, k } = arguments(call, given)?;
                let k = if k.is_finite() { k.clamp(1.0, MOST_FOUND as f64) as usize } else { 5 };
                Ok(ToolValue::Value(self.search_for(run, &intent, k).await))
            }
            "describe" => {
                let Describe { name } = arguments(call, given)?;
                let time = run.tool_timeout.into();
                let tool = self.resolve(&run.grants, None, &name, time).await?;
                let name = tool.qualified_name();
                if !run.grants.may_use(&name) {
                    let message = format!("this run may not use {name}");
                    let fault = ToolFault::new(ErrorCode::PermissionTool, message).of_tool(&*name);
                    return Err(fault.with_hint(how_to_get(&line(&name, 120))));
                }
                Ok(ToolValue::Value(self.describe_tool(&tool).await.into()))
            }
            "list" => {
                let (catalogue, _) = self.catalogue_for(&run.grants, LISTING_TIMEOUT).await;
                let allowed = catalogue
                    .tools()
                    .iter()
                    .filter(|tool| run.grants.may_use(&tool.qualified_name()));
                let all: Vec<Value> = allowed.map(in_code).collect();
                Ok(ToolValue::Value(all.into()))
            }
            "load" => self.load(arguments(call, given)?).await,
            other => {
                let message = format!("belljar has no tool `{other}`");
                Err(ToolFault::new(ErrorCode::ToolUnknown, message)
                    .with_hint("available are search, describe, list and load"))
            }
        }
    }

    /// The purpose, signature and result type of a tool, in a few lines.
    pub async fn describe_tool(&self, tool: &Tool) -> String {
        let one = [tool.clone()];
        let shapes = self.shapes(&one).await;
        describe(&Catalogue::new(one.to_vec()), tool, &shapes)
    }

    /// The learned shapes of the results of tools that declare no output schema.
    pub async fn shapes(&self, tools: &[Tool]) -> ValueShapes {
        let mut shapes = ValueShapes::new();
        let Some(store) = &self.config.store else { return shapes };
        for tool in tools.iter().filter(|tool| tool.output_schema.is_none()) {
            let name = tool.qualified_name();
            let known = store.shape(&name).await.ok().flatten();
            if let Some(shape) = known.and_then(|json| serde_json::from_str(&json).ok()) {
                shapes.insert(name, shape);
            }
        }
        shapes
    }

    /// The tools a run may use that fit an intent, as JSON for its code.
    async fn search_for(&self, run: &RunContext, intent: &str, k: usize) -> Value {
        let (catalogue, _) = self.catalogue_for(&run.grants, LISTING_TIMEOUT).await;
        let wanted = ToolQuery { grants: run.grants.clone(), ..ToolQuery::new(intent, k) };
        let hits = self.find(&catalogue, wanted).await;
        let shown = hits.iter().map(|hit| {
            let mut found = in_code(&hit.tool);
            if let Some(fields) = found.as_object_mut() {
                fields.insert("score".to_owned(), hit.score.into());
            }
            found
        });
        shown.collect::<Vec<_>>().into()
    }

    async fn load(&self, Load { handle }: Load) -> Result<ToolValue, ToolFault> {
        let unknown = |id: &str| {
            ToolFault::new(ErrorCode::ToolUnknown, format!("nothing is stored as `{id}`"))
                .with_hint("pass the handle of a stored value, as a result gave it")
        };
        // Code often passes the whole stored value instead of its handle.
        let id = match &handle {
            Value::String(id) => id.as_str(),
            Value::Object(stored) => stored.get("handle").and_then(Value::as_str).unwrap_or(""),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => "",
        };
        let Some(store) = &self.config.store else { return Err(unknown(id)) };
        let bytes = store.blob(id).await.map_err(|error| super::approval::store_failed(&error))?;
        bytes.map(loaded).ok_or_else(|| unknown(id))
    }
}

/// A stored value as code gets it: JSON as it is, other text as a string, anything else in base64.
fn loaded(bytes: Vec<u8>) -> ToolValue {
    if serde_json::from_slice::<IgnoredAny>(&bytes).is_ok() {
        return ToolValue::Json(bytes);
    }
    let text = String::from_utf8(bytes);
    ToolValue::Value(Value::String(text.unwrap_or_else(|binary| BASE64.encode(binary.as_bytes()))))
}

/// A tool as `tools.list` and `tools.search` give it to code.
fn in_code(tool: &Tool) -> Value {
    json!({ "name": tool.qualified_name(), "description": tool.description })
}

fn arguments<T: for<'de> Deserialize<'de>>(
    call: &ToolCall,
    given: ReadArguments,
) -> Result<T, ToolFault> {
    let fault = |error: &dyn Display| {
        ToolFault::new(ErrorCode::ToolArguments, format!("tools.{}: {error}", call.tool))
    };
    let given = given.map_err(|error| fault(&error))?;
    serde_json::from_value(Value::Object(given)).map_err(|error| fault(&error))
}
