//! The tool `sandbox`: sessions, their checkpoints and branches, for a model.
//!
//! One tool with seven actions instead of seven tools: its description is always in the model's
//! context, so it has to be short (E4).

use belljar_contract::{
    Access, CheckpointId, EngineName, ExecuteRequest, GrantsRequest, Language, SessionId,
    SessionRequest,
};
use rmcp::{
    ErrorData,
    model::{CallToolResponse, JsonObject},
};
use serde_json::{Value, json};

use super::McpCall;
use crate::{
    answer,
    backend::Backend,
    gateway::Gateway,
    request::{ArgumentFields, RequestError},
    sessions::SessionError,
};

/// The arguments of `sandbox`.
pub(crate) const FIELDS: &[&str] = &[
    "action",
    "session_id",
    "language",
    "engine",
    "network",
    "code",
    "context",
    "checkpoint_id",
    "count",
];
const ACTIONS: &str = "create, execute, checkpoint, rollback, fork, destroy or list";

/// One action of the tool, with its arguments.
#[derive(Debug, PartialEq)]
pub(super) enum SandboxRequest {
    Create { language: Option<Language>, engine: Option<EngineName>, network: Access },
    Execute(Box<ExecuteRequest>),
    Checkpoint { session_id: SessionId },
    Rollback { session_id: SessionId, checkpoint_id: CheckpointId },
    Fork { session_id: SessionId, count: u32, checkpoint_id: Option<CheckpointId> },
    Destroy { session_id: SessionId },
    List,
}

impl SandboxRequest {
    /// Decodes the arguments of a tool call.
    pub(super) fn decode(arguments: JsonObject) -> Result<Self, RequestError> {
        let mut fields = ArgumentFields::new("", FIELDS, arguments)?;
        let action = need(fields.text("action")?, "action")?;
        let session_id = fields.text("session_id")?.map(SessionId::from);
        let asked = match action.as_str() {
            "create" => Self::Create {
                language: fields.language()?,
                engine: fields.engine()?,
                network: fields.hosts("network")?.unwrap_or_default(),
            },
            "execute" => Self::Execute(Box::new(ExecuteRequest {
                session_id: Some(need(session_id, "session_id")?),
                code: need(fields.text("code")?, "code")?,
                language: fields.language()?,
                engine: fields.engine()?,
                context: fields.context("context"),
                ..ExecuteRequest::default()
            })),
            "checkpoint" => Self::Checkpoint { session_id: need(session_id, "session_id")? },
            "rollback" => Self::Rollback {
                session_id: need(session_id, "session_id")?,
                checkpoint_id: need(fields.text("checkpoint_id")?, "checkpoint_id")?.into(),
            },
            "fork" => Self::Fork {
                session_id: need(session_id, "session_id")?,
                count: u32::try_from(fields.count("count")?.unwrap_or(1)).unwrap_or(u32::MAX),
                checkpoint_id: fields.text("checkpoint_id")?.map(CheckpointId::from),
            },
            "destroy" => Self::Destroy { session_id: need(session_id, "session_id")? },
            "list" => Self::List,
            other => {
                return Err(RequestError::Kind {
                    field: "action".to_owned(),
                    wanted: ACTIONS,
                    found: format!("{other:?}"),
                });
            }
        };
        Ok(asked)
    }
}

fn need<T>(given: Option<T>, field: &str) -> Result<T, RequestError> {
    given.ok_or_else(|| RequestError::Missing { field: field.to_owned() })
}

impl<B: Backend> Gateway<B> {
    /// Performs the action, and answers the call.
    pub(super) async fn sandbox(
        &self,
        call: McpCall,
        asked: SandboxRequest,
    ) -> Result<CallToolResponse, ErrorData> {
        let backend = &self.shared.backend;
        let done: Result<Value, SessionError> = match asked {
            SandboxRequest::Execute(request) => return self.execute(call, *request).await,
            SandboxRequest::Create { language, engine, network } => {
                let grants = GrantsRequest { net: network, ..GrantsRequest::default() };
                let request =
                    SessionRequest { language, engine, grants, ..SessionRequest::default() };
                backend.create_session(request).await.map(|made| as_json(&made))
            }
            SandboxRequest::Checkpoint { session_id } => {
                backend.checkpoint(&session_id).await.map(|taken| as_json(&taken))
            }
            SandboxRequest::Rollback { session_id, checkpoint_id } => {
                let back = backend.rollback(&session_id, &checkpoint_id).await;
                back.map(|()| json!({ "session_id": session_id, "checkpoint_id": checkpoint_id }))
            }
            SandboxRequest::Fork { session_id, count, checkpoint_id } => {
                let forked = backend.fork(&session_id, count, checkpoint_id.as_ref()).await;
                forked.map(|ids| json!({ "session_ids": ids }))
            }
            SandboxRequest::Destroy { session_id } => {
                let destroyed = backend.destroy_session(&session_id).await;
                destroyed.map(|()| json!({ "session_id": session_id }))
            }
            SandboxRequest::List => {
                backend.sessions().await.map(|all| json!({ "sessions": as_json(&all) }))
            }
        };
        Ok(match done {
            Ok(value) => answer::structured(value, false).into(),
            Err(error) => answer::structured(json!({ "error": said(&error) }), true).into(),
        })
    }
}

/// A session error as the model sees it.
fn said(error: &SessionError) -> Value {
    let (code, message) = (error.code(), error.to_string());
    json!({ "type": "SandboxError", "code": code, "message": message, "hint": hint(error) })
}

/// The remedy in the words of a model, which has tools and no paths.
pub(crate) fn hint(error: &SessionError) -> Option<&str> {
    if let SessionError::Unknown { .. } = error {
        return Some("`sandbox` with the action `list` gives the sessions");
    }
    error.hint()
}

fn as_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(value: Value) -> Result<SandboxRequest, String> {
        let Value::Object(arguments) = value else { panic!("an object") };
        SandboxRequest::decode(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn b1_each_action_takes_what_it_needs_and_says_what_it_lacks() {
        let create = decode(json!({ "action": "create", "language": "py" }));
        let (language, network) = (Some(Language::Python), Access::None);
        assert_eq!(create, Ok(SandboxRequest::Create { language, engine: None, network }));
        let create = decode(json!({ "action": "create", "engine": "cpython", "network": "true" }));
        let (engine, network) = (Some(EngineName::CPython), Access::All);
        assert_eq!(create, Ok(SandboxRequest::Create { language: None, engine, network }));
        let fork = decode(json!({ "action": "fork", "sessionId": "s", "count": 3 }));
        let (session_id, checkpoint_id) = ("s".into(), None);
        assert_eq!(fork, Ok(SandboxRequest::Fork { session_id, count: 3, checkpoint_id }));
        assert_eq!(decode(json!({ "action": "list" })), Ok(SandboxRequest::List));
        for (asked, lacks) in [
            (json!({}), "`action` is missing"),
            (json!({ "action": "execute", "code": "1" }), "`session_id` is missing"),
            (json!({ "action": "execute", "session_id": "s" }), "`code` is missing"),
            (json!({ "action": "rollback", "session_id": "s" }), "`checkpoint_id` is missing"),
        ] {
            assert_eq!(decode(asked).unwrap_err(), lacks);
        }
        let odd = decode(json!({ "action": "create", "engine": "perl" })).unwrap_err();
        assert!(odd.contains("there is no engine \"perl\"; engines: quickjs"), "{odd}");
        let odd = decode(json!({ "action": "explode" })).unwrap_err();
        assert!(odd.contains("create, execute"), "{odd}");
    }
}
