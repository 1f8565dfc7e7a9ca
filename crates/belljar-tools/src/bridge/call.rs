//! One call, from the name the code wrote to the value it gets.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use belljar_catalogue::visible::line;
use belljar_contract::{ApprovalQuestion, ErrorCode, shell_word};
use belljar_store::{AuditId, AuditRow, ConsentTerms, Store};
use belljar_wire::{ToolCall, ToolFault};
use serde_json::{Map, Value};

use super::{Bridge, RunContext, approval::store_failed, audit::Audit, standing::EarlierConsent};
use crate::{
    CallTime, LISTING_TIMEOUT, PolicyDecision, PolicyVerdict, ResolveError, Tool, ToolGrants,
    ToolValue, UpstreamError, ValueShape, ValueShapeLimits,
    arguments::{self, ReadArguments},
    value_of,
};

/// The shape of a larger value, in bytes, is not learned.
const MOST_LEARNED: usize = 4 << 20;

/// Writes what has to be on disk before a call leaves the host.
pub(super) trait Gate: Send + Sync {
    /// Called before a person is asked; the journal is on disk when this returns.
    fn before_asking(&self) -> impl Future<Output = Result<(), ToolFault>> + Send;
    /// Called before the call leaves; the journal is on disk when this returns, and so is the audit
    /// row, if one is given.
    fn before_sending(
        &self,
        audited: Option<AuditRow>,
    ) -> impl Future<Output = Result<Option<AuditId>, ToolFault>> + Send;
    /// Whether the call waits for a person now.
    fn waits(&self, for_person: bool);
}

/// The gate of runs without a journal.
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

/// A call whose tool was found and whose arguments fit its schema.
#[derive(Debug)]
pub(super) struct CheckedCall {
    pub(super) tool: Tool,
    arguments: Map<String, Value>,
    /// The time that is left: starting the server may have taken some.
    time: CallTime,
}

impl Bridge {
    /// Makes a call: check, policy, approval, journal, sending, audit.
    pub(super) async fn perform(
        &self,
        run: &RunContext,
        call: &ToolCall,
        arguments: ReadArguments,
        gate: &impl Gate,
    ) -> Result<ToolValue, ToolFault> {
        match self.check(run, call, arguments).await {
            Ok(checked) => self.perform_checked(run, call, checked, gate).await,
            Err(fault) => {
                let refused = Err(fault);
                if let Err(fault) = &refused {
                    Audit::of_refused(self, run, call, fault).end(self, &refused).await;
                }
                refused
            }
        }
    }

    /// Finds the tool and checks the arguments.
    pub(super) async fn check(
        &self,
        run: &RunContext,
        call: &ToolCall,
        arguments: ReadArguments,
    ) -> Result<CheckedCall, ToolFault> {
        let (time, began) = (CallTime::from(run.tool_timeout), Instant::now());
        let server = call.server.as_deref();
        let found = self.resolve(&run.grants, server, &call.tool, time).await;
        let tool = found.map_err(|fault| fault.of_tool(written_name(call)))?;
        let time = time.after(began.elapsed());
        let name = tool.qualified_name();
        let fault =
            |message: String| ToolFault::new(ErrorCode::ToolArguments, message).of_tool(&*name);
        let arguments = arguments.map_err(|error| {
            fault(format!("cannot read the arguments of {name}: {error}"))
                .with_hint("pass one object in which each argument is named once")
        })?;
        let arguments = Value::Object(arguments);
        arguments::check(&tool, &arguments).map_err(|wrong| fault(wrong.to_string()))?;
        let Value::Object(arguments) = arguments else { return Err(fault("no object".to_owned())) };
        Ok(CheckedCall { tool, arguments, time })
    }

    pub(super) async fn perform_checked(
        &self,
        run: &RunContext,
        call: &ToolCall,
        checked: CheckedCall,
        gate: &impl Gate,
    ) -> Result<ToolValue, ToolFault> {
        let CheckedCall { tool, arguments, time } = checked;
        let trust = self.trust(&tool.server);
        let policy = &self.config.policy;
        let decision = policy.decide(&tool, trust, &self.overrides, &arguments, &run.grants);
        let mut audit = Audit::begin(self, run, call, &tool, &decision);
        let allowed = self.admit(run, call, (&tool, &arguments), decision, gate, &mut audit).await;
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

    /// Admits the call or refuses it, as policy and people decide.
    async fn admit(
        &self,
        run: &RunContext,
        call: &ToolCall,
        (tool, arguments): (&Tool, &Map<String, Value>),
        decision: PolicyDecision,
        gate: &impl Gate,
        audit: &mut Audit,
    ) -> Result<(), ToolFault> {
        let name = tool.qualified_name();
        let refused = |code, message: String| Err(ToolFault::new(code, message).of_tool(&*name));
        match decision.verdict {
            PolicyVerdict::Allow => return Ok(()),
            PolicyVerdict::Deny => {
                let message = format!("{name} is not allowed: {}", decision.reason);
                let fault = ToolFault::new(ErrorCode::PermissionTool, message).of_tool(&*name);
                // No hint if policy denies the tool: no grant would help.
                let is_missing = !run.grants.may_use(&name)
                    && self.verdict(tool, &ToolGrants::default()).verdict != PolicyVerdict::Deny;
                let shown = how_to_get(&line(&name, 120));
                return Err(if is_missing { fault.with_hint(shown) } else { fault });
            }
            PolicyVerdict::Ask => {}
        }
        let EarlierConsent { covered, void } = match self.is_asked_already(run, call).await? {
            // A decision about this very call counts, also after the run was resumed.
            true => EarlierConsent::default(),
            false => self.standing(run, tool, arguments, &decision).await,
        };
        if let Some(reason) = covered {
            audit.allowed_by(reason);
            return Ok(());
        }
        if !run.observer.may_wait() {
            audit.decision = "denied";
            let message =
                format!("{name} needs the approval of a person, and the run does not wait for one");
            let fault = ToolFault::new(ErrorCode::ApprovalDenied, message).of_tool(&*name);
            let shown = line(&name, 120);
            return Err(fault.with_hint(format!(
                "run it without --no-wait, grant the tool with --tool {}, or allow it with a \
                 rule in [permissions] of belljar.toml",
                shell_word(&shown)
            )));
        }
        let Some(store) = &self.config.store else {
            let message = format!("{name} needs approval, but there is no project to record it in");
            return refused(ErrorCode::ApprovalDenied, message);
        };
        let reason = void.into_iter().chain([decision.reason]).collect::<Vec<_>>().join("; ");
        let terms = ConsentTerms {
            widest: decision.widest,
            session: run.session.clone(),
            definition: self.definition(tool),
        };
        gate.before_asking().await?;
        let asked = (ApprovalQuestion::MayCall, terms);
        let approval = self.request_approval(store, run, call, &name, asked).await?;
        gate.waits(true);
        let consent = self.wait_for_consent(store, run, approval, &reason).await;
        gate.waits(false);
        audit.heed(consent?, &name)
    }

    /// Makes the call itself, after everything that could refuse it.
    async fn send(
        &self,
        run: &RunContext,
        tool: &Tool,
        arguments: Map<String, Value>,
        time: CallTime,
    ) -> Result<ToolValue, ToolFault> {
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
                    Ok(outcome) => outcome.map(ToolValue::Value).map_err(failed),
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
    ) -> Result<ToolValue, ToolFault> {
        let upstreams = &self.config.upstreams;
        let answered = upstreams.call(&tool.server, &tool.name, arguments, time).await;
        let name = tool.qualified_name();
        let answer = answered.map_err(|error| self.upstream_fault(tool, &error))?;
        let value = value_of(answer, tool.output_schema.as_ref()).map_err(|failed| {
            ToolFault::new(ErrorCode::ToolFailed, failed.message).of_tool(&*name)
        })?;
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
            hints.push("the call may have happened: check before you repeat it".to_owned());
        }
        hints.extend(error.hint());
        let fault = ToolFault::new(code, error.to_string()).of_tool(&*name);
        if hints.is_empty() { fault } else { fault.with_hint(hints.join("; ")) }
    }

    /// The tool a name refers to, among the servers that the grants reach; other servers are not
    /// started. Starting the tool's own server takes part of `time`.
    pub(super) async fn resolve(
        &self,
        grants: &ToolGrants,
        server: Option<&str>,
        tool: &str,
        time: CallTime,
    ) -> Result<Tool, ToolFault> {
        let named = self.server_named(server, tool);
        if let Some(server) = named.filter(|server| !grants.may_reach(server)) {
            let message = format!("this run may not use tools of server {server}");
            let fault = ToolFault::new(ErrorCode::PermissionTool, message);
            return Err(fault.with_hint(how_to_get(&format!("{server}__NAME"))));
        }
        let (catalogue, missing) = match named {
            // The other servers need not be started.
            Some(server) => {
                let catalogue = self.catalogue_for_call(server, time).await;
                let fault = |error: &UpstreamError| {
                    hinted(ToolFault::new(unavailable(error), error.to_string()), error)
                };
                (catalogue.map_err(|error| fault(&error))?, Vec::new())
            }
            None => self.catalogue_for(grants, time.left().min(LISTING_TIMEOUT)).await,
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

    /// The server, if the code wrote its name as it is configured.
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

    /// Learns the shape of a result, for tools that declare no output schema.
    async fn learn(&self, name: &str, value: &ToolValue) {
        let Some(store) = self.config.store.as_ref() else { return };
        if value.is_larger_than(MOST_LEARNED) {
            return;
        }
        let limits = ValueShapeLimits::default();
        let seen = ValueShape::of(&value.parsed(), limits);
        let known = store.shape(name).await.ok().flatten();
        let known: Option<ValueShape> = known.and_then(|json| serde_json::from_str(&json).ok());
        let merged = known.clone().unwrap_or_default().merge(seen, limits);
        if known.as_ref() == Some(&merged) {
            return;
        }
        let Ok(json) = serde_json::to_string(&merged) else { return };
        if let Err(error) = store.learn_shape(name, json, (self.config.now_ms)()).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot save the learned shape of a result"
            );
        }
    }
}

/// The tool of a call as the code wrote it.
pub(super) fn written_name(call: &ToolCall) -> String {
    let server = call.server.iter().flat_map(|server| [server, "__"]);
    server.chain([&*call.tool]).collect()
}

/// The hint that says how to grant a tool.
pub(super) fn how_to_get(name: &str) -> String {
    // A server chose the name, and a person may paste this.
    let word = shell_word(name);
    format!("grant it with `tools: [\"{name}\"]` or --tool {word}, or use another intent")
}

/// The error code for a call without an answer.
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

fn timed_out(name: &str, time: Duration) -> ToolFault {
    let message = format!("{name} did not answer within {} ms", time.as_millis());
    ToolFault::new(ErrorCode::ToolTimeout, message).of_tool(name)
}
