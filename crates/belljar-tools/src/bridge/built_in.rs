//! What `tools.search`, `tools.describe`, `tools.list` and `load` ask for.

use belljar_wire::{ErrorCode, ToolCall, ToolFault};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Bridge, RunContext, call::how_to_get};
use crate::{Catalogue, LISTING_PATIENCE, Shapes, Tool, Wanted, describe, visible::line};

/// The server these belong to; no other may have its name.
pub(super) const SERVER: &str = "belljar";
/// More than this is no answer any more.
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
    /// Answers a call of the library's own.
    pub(super) async fn built_in(
        &self,
        run: &RunContext,
        call: &ToolCall,
    ) -> Result<Vec<u8>, ToolFault> {
        match call.tool.as_str() {
            "search" => {
                let Search { intent, k } = arguments(call)?;
                let k = if k.is_finite() { k.clamp(1.0, MOST_FOUND as f64) as usize } else { 5 };
                Ok(json_of(&self.found(run, &intent, k).await))
            }
            "describe" => {
                let Describe { name } = arguments(call)?;
                let time = run.tool_timeout.into();
                let tool = self.resolve(&run.grants, None, &name, time).await?;
                let name = tool.qualified_name();
                if !run.grants.may_use(&name) {
                    let message = format!("this run may not use {name}");
                    let fault = ToolFault::new(ErrorCode::PermissionTool, message).of_tool(&*name);
                    return Err(fault.with_hint(how_to_get(&line(&name, 120))));
                }
                Ok(json_of(&self.described(&tool).await.into()))
            }
            "list" => {
                let (catalogue, _) = self.catalogue_for(&run.grants, LISTING_PATIENCE).await;
                let allowed = catalogue
                    .tools()
                    .iter()
                    .filter(|tool| run.grants.may_use(&tool.qualified_name()));
                let names: Vec<String> = allowed.map(Tool::qualified_name).collect();
                Ok(json_of(&Value::from(names)))
            }
            "load" => self.load(arguments(call)?).await,
            other => {
                let message = format!("belljar has no tool `{other}`");
                Err(ToolFault::new(ErrorCode::ToolUnknown, message)
                    .with_hint("there are search, describe, list and load"))
            }
        }
    }

    /// What a tool is for, how it is called and what it gives, in a few lines.
    pub async fn described(&self, tool: &Tool) -> String {
        let one = [tool.clone()];
        let shapes = self.shapes(&one).await;
        describe(&Catalogue::new(one.to_vec()), tool, &shapes)
    }

    /// What is known of the results of tools that do not say what they give.
    pub async fn shapes(&self, tools: &[Tool]) -> Shapes {
        let mut shapes = Shapes::new();
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

    /// The tools a run may use that fit an intent, as its code sees them.
    async fn found(&self, run: &RunContext, intent: &str, k: usize) -> Value {
        let (catalogue, _) = self.catalogue_for(&run.grants, LISTING_PATIENCE).await;
        let wanted = Wanted { grants: run.grants.clone(), ..Wanted::new(intent, k) };
        let hits = self.find(&catalogue, wanted).await;
        let shown = hits.iter().map(|hit| {
            json!({
                "name": hit.tool.qualified_name(),
                "description": hit.tool.description,
                "score": hit.score,
            })
        });
        shown.collect::<Vec<_>>().into()
    }

    async fn load(&self, Load { handle }: Load) -> Result<Vec<u8>, ToolFault> {
        let unknown = |id: &str| {
            ToolFault::new(ErrorCode::ToolUnknown, format!("nothing is stored as `{id}`"))
                .with_hint("pass the handle of a stored value, as a result gave it")
        };
        // The whole answer in place of its handle is what code passes on without thinking.
        let id = match &handle {
            Value::String(id) => id.as_str(),
            Value::Object(stored) => stored.get("handle").and_then(Value::as_str).unwrap_or(""),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => "",
        };
        let Some(store) = &self.config.store else { return Err(unknown(id)) };
        let bytes = store.blob(id).await.map_err(|error| super::approval::store_failed(&error))?;
        bytes.ok_or_else(|| unknown(id))
    }
}

fn arguments<T: for<'de> Deserialize<'de>>(call: &ToolCall) -> Result<T, ToolFault> {
    serde_json::from_slice(&call.arguments).map_err(|error| {
        ToolFault::new(ErrorCode::ToolArguments, format!("tools.{}: {error}", call.tool))
    })
}

fn json_of(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
