//! One call, from the name the code wrote to the value it gets.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use belljar_store::{AuditId, AuditRow, Store};
use belljar_wire::{ErrorCode, ToolCall, ToolFault};
use serde_json::{Map, Value};

use super::{
    Bridge, RunContext,
    approval::{Consent, Question, store_failed},
    audit::Audit,
};
use crate::{
    Answer, Block, CallTime, ContentBlock, Decision, LISTING_PATIENCE, ResolveError, Shape,
    ShapeLimits, Tool, ToolAnswer, ToolGrants, UpstreamError, Verdict, arguments,
    crash::crash_point, value_of, visible::line,
};

/// Values larger than this are not looked at to learn their shape.
const MOST_LEARNED: usize = 4 << 20;
/// Results that are longer as JSON take a while to be taken apart.
const BIG: usize = 1 << 20;

/// What has to happen before a call may leave the host.
pub(super) trait Gate: Send + Sync {
    /// The call is going to ask a person. On disk when this returns.
    fn before_asking(&self) -> impl Future<Output = Result<(), ToolFault>> + Send;
    /// The call is about to leave. On disk when this returns, with the call's audit row if that has to
    /// be there first.
    fn before_sending(
        &self,
        audited: Option<AuditRow>,
    ) -> impl Future<Output = Result<Option<AuditId>, ToolFault>> + Send;
    /// The call waits for a person, or no longer does.
    fn waits(&self, for_person: bool);
}

/// For runs without a journal.
#[derive(Debug)]
pub(super) struct OpenGate<W> {
    store: Option<Store>,
    waits: W,
}

impl<W: Fn(bool)> OpenGate<W> {
    pub(super) fn new(bridge: &Bridge, waits: W) -> Self {
        Self { store: bridge.config.store.clone(), waits }
    }
}

impl<W: Fn(bool) + Send + Sync> Gate for OpenGate<W> {
    async fn before_asking(&self) -> Result<(), ToolFault> {
        Ok(())
    }

    async fn before_sending(
        &self,
        audited: Option<AuditRow>,
    ) -> Result<Option<AuditId>, ToolFault> {
        let (Some(store), Some(row)) = (&self.store, audited) else { return Ok(None) };
        store.begin_audit(row).await.map(Some).map_err(|error| store_failed(&error))
    }

    fn waits(&self, for_person: bool) {
        (self.waits)(for_person);
    }
}

/// A call whose tool and arguments are known and fit each other.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) tool: Tool,
    arguments: Map<String, Value>,
    /// What is left of the time of the call: its server may have had to be started.
    time: CallTime,
}

impl Bridge {
    /// Makes a call: everything a call goes through, in this order.
    pub(super) async fn perform(
        &self,
        run: &RunContext,
        call: &ToolCall,
        gate: &impl Gate,
    ) -> Result<Vec<u8>, ToolFault> {
        match self.check(run, call).await {
            Ok(checked) => self.perform_checked(run, call, checked, gate).await,
            Err(fault) => {
                Audit::of_refused(self, run, call, &fault).end(self, &Err(fault.clone())).await;
                Err(fault)
            }
        }
    }

    /// The tool the code means, and its arguments, checked.
    pub(super) async fn check(
        &self,
        run: &RunContext,
        call: &ToolCall,
    ) -> Result<Checked, ToolFault> {
        let (time, began) = (CallTime::from(run.tool_timeout), Instant::now());
        let server = call.server.as_deref();
        let found = self.resolve(&run.grants, server, &call.tool, time).await;
        let tool = found.map_err(|fault| fault.of_tool(written_name(call)))?;
        let time = time.after(began.elapsed());
        let name = tool.qualified_name();
        let fault =
            |message: String| ToolFault::new(ErrorCode::ToolArguments, message).of_tool(&*name);
        let arguments: Map<String, Value> = arguments::read(&call.arguments).map_err(|error| {
            fault(format!("the arguments of {name} cannot be used: {error}"))
                .with_hint("call it with one object, each argument named once")
        })?;
        let arguments = Value::Object(arguments);
        arguments::check(&tool, &arguments).map_err(|wrong| fault(wrong.to_string()))?;
        let Value::Object(arguments) = arguments else { return Err(fault("no object".to_owned())) };
        Ok(Checked { tool, arguments, time })
    }

    pub(super) async fn perform_checked(
        &self,
        run: &RunContext,
        call: &ToolCall,
        checked: Checked,
        gate: &impl Gate,
    ) -> Result<Vec<u8>, ToolFault> {
        let Checked { tool, arguments, time } = checked;
        let trust = self.trust(&tool.server);
        let policy = &self.config.policy;
        let decision = policy.decide(&tool, trust, &self.overrides, &arguments, &run.grants);
        let mut audit = Audit::begin(self, run, call, &tool, &decision);
        let allowed = self.admit(run, call, &tool, &decision, gate, &mut audit).await;
        let outcome = match allowed {
            Err(fault) => Err(fault),
            Ok(()) => match gate.before_sending(audit.before_sending(self, &tool)).await {
                Err(fault) => Err(fault),
                Ok(written) => {
                    audit.written = written;
                    self.send(run, &tool, arguments, time).await
                }
            },
        };
        audit.end(self, &outcome).await;
        outcome
    }

    /// Lets the call through, or not, as policy and people say.
    async fn admit(
        &self,
        run: &RunContext,
        call: &ToolCall,
        tool: &Tool,
        decision: &Decision,
        gate: &impl Gate,
        audit: &mut Audit,
    ) -> Result<(), ToolFault> {
        let name = tool.qualified_name();
        let refused = |code, message: String| Err(ToolFault::new(code, message).of_tool(&*name));
        match decision.verdict {
            Verdict::Allow => return Ok(()),
            Verdict::Deny => {
                let message = format!("{name} is not allowed: {}", decision.reason);
                let fault = ToolFault::new(ErrorCode::PermissionTool, message).of_tool(&*name);
                // What policy denies cannot be had at all.
                let is_missing = !run.grants.may_use(&name)
                    && self.verdict(tool, &ToolGrants::default()).verdict != Verdict::Deny;
                let shown = how_to_get(&line(&name, 120));
                return Err(if is_missing { fault.with_hint(shown) } else { fault });
            }
            Verdict::Ask => {}
        }
        let Some(store) = &self.config.store else {
            let message = format!("{name} needs approval, and there is no project to ask in");
            return refused(ErrorCode::ApprovalDenied, message);
        };
        gate.before_asking().await?;
        let approval = self.put(store, run, call, &name, Question::MayCall).await?;
        gate.waits(true);
        let consent = self.consent(store, run, approval, &decision.reason).await;
        gate.waits(false);
        match consent? {
            Consent::Given => {
                crash_point("approved");
                audit.decision = "approved";
                Ok(())
            }
            Consent::Denied => {
                audit.decision = "denied";
                refused(ErrorCode::ApprovalDenied, format!("a person refused the call of {name}"))
            }
            Consent::Expired => {
                audit.decision = "expired";
                refused(
                    ErrorCode::ApprovalExpired,
                    format!("nobody approved the call of {name} in time"),
                )
            }
        }
    }

    /// Makes the call itself, after everything that could refuse it.
    async fn send(
        &self,
        run: &RunContext,
        tool: &Tool,
        arguments: Map<String, Value>,
        time: CallTime,
    ) -> Result<Vec<u8>, ToolFault> {
        let name = tool.qualified_name();
        let began = Instant::now();
        run.observer.call_begins(tool, self.reach(tool));
        let outcome = match self.config.local.get(&tool.server) {
            Some(local) => {
                let failed =
                    |message| ToolFault::new(ErrorCode::ToolFailed, message).of_tool(&*name);
                let timed =
                    tokio::time::timeout(run.tool_timeout, local.call(&tool.name, arguments));
                match timed.await {
                    Err(_) => Err(timed_out(&name, run.tool_timeout)),
                    Ok(outcome) => outcome.map(json_of).map_err(failed),
                }
            }
            None => self.send_upstream(tool, arguments, time).await,
        };
        run.observer.call_ends(&name, outcome.is_ok(), began.elapsed());
        outcome
    }

    async fn send_upstream(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        time: CallTime,
    ) -> Result<Vec<u8>, ToolFault> {
        let upstreams = &self.config.upstreams;
        let answered = upstreams.call(&tool.server, &tool.name, arguments, time).await;
        let name = tool.qualified_name();
        let answer: ToolAnswer = answered.map_err(|error| self.upstream_fault(tool, &error))?;
        let content: Vec<Block<'_>> = answer.content.iter().map(block).collect();
        let value = value_of(Answer {
            structured: answer.structured.as_ref(),
            content: &content,
            is_error: answer.is_error,
            output_schema: tool.output_schema.as_ref(),
        })
        .map_err(|failed| ToolFault::new(ErrorCode::ToolFailed, failed.message).of_tool(&*name))?;
        if tool.output_schema.is_none() {
            self.learn(&name, &value).await;
        }
        Ok(value)
    }

    fn upstream_fault(&self, tool: &Tool, error: &UpstreamError) -> ToolFault {
        let name = tool.qualified_name();
        let is_in_doubt = error.may_have_happened() && !self.is_repeatable(tool);
        let is_lost = matches!(error, UpstreamError::Lost { .. } | UpstreamError::Protocol { .. });
        let code = if matches!(error, UpstreamError::Refused { .. }) {
            ErrorCode::ToolFailed
        } else if is_lost && is_in_doubt {
            ErrorCode::ToolInDoubt
        } else {
            unavailable(error)
        };
        let mut hints = Vec::new();
        if is_in_doubt {
            hints.push("the call may have happened; look before you make it again".to_owned());
        }
        hints.extend(error.hint());
        let fault = ToolFault::new(code, error.to_string()).of_tool(&*name);
        if hints.is_empty() { fault } else { fault.with_hint(hints.join("; ")) }
    }

    /// The tool a name means, among those of servers that the grants reach: what a run cannot use
    /// is not started for it either. A server may have to be started to know, in so much time.
    pub(super) async fn resolve(
        &self,
        grants: &ToolGrants,
        server: Option<&str>,
        tool: &str,
        time: CallTime,
    ) -> Result<Tool, ToolFault> {
        let named = self.server_named(server, tool);
        if let Some(server) = named.filter(|server| !grants.may_reach(server)) {
            let message = format!("this run may use no tool of {server}");
            let fault = ToolFault::new(ErrorCode::PermissionTool, message);
            return Err(fault.with_hint(how_to_get(&format!("{server}__NAME"))));
        }
        let (catalogue, missing) = match named {
            // One server is enough, and the others need not be started.
            Some(server) => {
                let catalogue = self.catalogue_for_call(server, time).await;
                let fault = |error: &UpstreamError| {
                    hinted(ToolFault::new(unavailable(error), error.to_string()), error)
                };
                (catalogue.map_err(|error| fault(&error))?, Vec::new())
            }
            None => self.catalogue_for(grants, time.left().min(LISTING_PATIENCE)).await,
        };
        let found = catalogue.resolve(server, tool).cloned();
        found.map_err(|error: ResolveError| {
            let mut hint = error.hint();
            for missing in missing {
                let _ = write!(hint, "; {missing}");
            }
            ToolFault::new(ErrorCode::ToolUnknown, error.to_string()).with_hint(hint)
        })
    }

    /// The server meant, if its name is written as it is configured.
    fn server_named<'a>(&self, server: Option<&'a str>, tool: &'a str) -> Option<&'a str> {
        let name = match server {
            Some(server) => server,
            None => tool.split_once("__")?.0,
        };
        let config = &self.config;
        let is_known =
            config.local.contains_key(name) || config.upstreams.names().any(|known| known == name);
        is_known.then_some(name)
    }

    /// Remembers what results of a tool look like, for the types of a tool that does not say.
    async fn learn(&self, name: &str, value: &[u8]) {
        let Some(store) = self.config.store.as_ref().filter(|_| value.len() <= MOST_LEARNED) else {
            return;
        };
        let Ok(value) = serde_json::from_slice::<Value>(value) else { return };
        let limits = ShapeLimits::default();
        let seen = Shape::of(&value, limits);
        let known = store.shape(name).await.ok().flatten();
        let known: Option<Shape> = known.and_then(|json| serde_json::from_str(&json).ok());
        let merged = known.clone().unwrap_or_default().merge(seen, limits);
        if known.as_ref() == Some(&merged) {
            return;
        }
        let Ok(json) = serde_json::to_string(&merged) else { return };
        if let Err(error) = store.learn_shape(name, json, (self.config.now_ms)()).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "a shape was not kept");
        }
    }
}

/// The tool of a call as the code wrote it.
pub(super) fn written_name(call: &ToolCall) -> String {
    let server = call.server.iter().flat_map(|server| [server, "__"]);
    server.chain([&*call.tool]).collect()
}

/// What makes a tool one that a run may use.
pub(super) fn how_to_get(name: &str) -> String {
    format!("name it in `tools: [\"{name}\"]` or with --tool {name}, or ask with another intent")
}

/// The code of an error without an answer.
fn unavailable(error: &UpstreamError) -> ErrorCode {
    match error {
        UpstreamError::TimedOut { .. } => ErrorCode::ToolTimeout,
        UpstreamError::UnknownServer { .. }
        | UpstreamError::NotStarted { .. }
        | UpstreamError::BackingOff { .. }
        | UpstreamError::RateLimited { .. }
        | UpstreamError::Lost { .. }
        | UpstreamError::Refused { .. }
        | UpstreamError::Protocol { .. }
        | UpstreamError::ShutDown { .. } => ErrorCode::ToolUnavailable,
    }
}

fn hinted(fault: ToolFault, error: &UpstreamError) -> ToolFault {
    match error.hint() {
        Some(hint) => fault.with_hint(hint),
        None => fault,
    }
}

fn block(block: &ContentBlock) -> Block<'_> {
    match block {
        ContentBlock::Text { text } => Block::Text { text },
        ContentBlock::Image { mime_type, data } => Block::Image { data, mime_type },
        ContentBlock::Audio { mime_type, data } => Block::Audio { data, mime_type },
        ContentBlock::ResourceLink { uri, name, mime_type, description } => Block::ResourceLink {
            uri,
            name,
            description: description.as_deref(),
            mime_type: mime_type.as_deref(),
        },
        ContentBlock::Resource { uri, mime_type, text, blob } => Block::Resource {
            uri,
            mime_type: mime_type.as_deref(),
            text: text.as_deref(),
            blob: blob.as_deref(),
        },
        ContentBlock::Other { .. } => Block::Other(&Value::Null),
    }
}

/// A value as JSON; its keys are texts, so there is nothing that cannot be written. Nobody waits
/// until a big one is taken apart.
fn json_of(value: Value) -> Vec<u8> {
    let json = serde_json::to_vec(&value).unwrap_or_default();
    if json.len() > BIG {
        drop(tokio::task::spawn_blocking(move || drop(value)));
    }
    json
}

fn timed_out(name: &str, time: Duration) -> ToolFault {
    let message = format!("{name} did not answer within {} ms", time.as_millis());
    ToolFault::new(ErrorCode::ToolTimeout, message).of_tool(name)
}
