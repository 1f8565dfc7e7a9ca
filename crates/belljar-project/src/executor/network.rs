//! The network of a run: the operator's rules, the audit log, and the person who is asked.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use belljar_contract::{Audience, RunError, RunId, SessionId};
use belljar_net::{
    ConnectionAnswer, ConnectionApprover, ConnectionQuestion, NetPolicy, NetRules, RequestSummary,
};
use belljar_runtime::{
    ConnectionLog, FetchAsk, FetchReply, FetchSender, GuestInput, InputSender, NetworkOptions,
    SocketAccess, ToolFault, host_patterns,
};
use belljar_store::Lease;
use belljar_tools::{AskedAction, Bridge, FetchPort, RunContext, ToolGrants};
use serde_json::json;
use tokio::sync::OnceCell;

use super::{Execution, Executor, RunDurability, connections::AuditedConnections};
use crate::Session;

/// The parts of an execution that the network of its run needs.
#[derive(Debug)]
pub(super) struct NetworkPlan {
    options: NetworkOptions,
    run: RunContext,
}

/// Passes inputs to a run. Calls and connections may wait for a person at once: the clock of the run stands
/// still from the first that begins to wait to the last that stops.
#[derive(Debug)]
pub(super) struct RunInputs {
    inputs: InputSender,
    waiting: Mutex<u32>,
}

/// Has the fetches of a durable run made by the run itself.
#[derive(Debug)]
pub(super) struct RunFetchPort(pub(super) FetchSender);

/// Asks a person about connections and requests of one run.
#[derive(Debug)]
struct PersonApprover {
    bridge: Bridge,
    run: RunContext,
    inputs: Option<Arc<RunInputs>>,
    /// Earlier answers by rule and destination: approving the first use approves the others.
    answers: Mutex<HashMap<String, Arc<OnceCell<ConnectionAnswer>>>>,
    /// How often an equal question of a rule that asks each time was put.
    times: Mutex<HashMap<String, u32>>,
}

impl Executor {
    /// The rules, the log and the approver of a run that asks for hosts. `lease` is that of its journal.
    pub(super) fn network_plan(
        &self,
        execution: &Execution,
        id: &RunId,
        lease: Option<&Lease>,
    ) -> Result<NetworkPlan, RunError> {
        let granted = &execution.request.grants.net;
        let policy = self.granted_policy(execution.hosts.as_deref(), granted)?;
        let mut plan = self.plan_of(execution, id, None, lease);
        plan.options.policy = Some(policy);
        Ok(plan)
    }

    /// The log and the approver of a run in a session. The session has the rules, for its whole life.
    pub(super) fn network_plan_in(
        &self,
        session: &Session,
        execution: &Execution,
        id: &RunId,
    ) -> NetworkPlan {
        self.plan_of(execution, id, Some(session.id().clone()), None)
    }

    fn plan_of(
        &self,
        execution: &Execution,
        id: &RunId,
        session: Option<SessionId>,
        lease: Option<&Lease>,
    ) -> NetworkPlan {
        let log = self.store.clone().map(|store| -> Arc<dyn ConnectionLog> {
            let caller = execution.caller.clone();
            let meter = self.meter.clone();
            Arc::new(AuditedConnections::new(store, id.clone(), caller, lease.cloned(), meter))
        });
        let run = RunContext {
            run_id: id.clone(),
            session,
            caller: execution.caller.clone(),
            grants: ToolGrants::default(),
            tool_timeout: execution.request.limits.tool_timeout,
            code: String::new(),
            observer: execution.observer.clone(),
        };
        // A run that has to be replayed has no sockets.
        let sockets = match execution.durability {
            RunDurability::Always => SocketAccess::Refused,
            RunDurability::IfAsked | RunDurability::UntilConnected | RunDurability::Never => {
                SocketAccess::Allowed
            }
        };
        // An author who may name any host is the operator, at a command line.
        let audience = match &execution.hosts {
            None => Audience::CommandLine,
            Some(_) => Audience::Client,
        };
        let options = NetworkOptions { log, sockets, audience, ..NetworkOptions::default() };
        NetworkPlan { options, run }
    }

    /// The policy of code that is granted these hosts. `flags` are the hosts that the operator's flags allow;
    /// `None` for those that are granted, if the operator is the one who asks.
    pub(crate) fn granted_policy(
        &self,
        flags: Option<&[String]>,
        granted: &[String],
    ) -> Result<NetPolicy, RunError> {
        let patterns = host_patterns(granted)?;
        let named = flags.map(host_patterns).transpose()?;
        let rules = self.network.rules(named.as_ref().unwrap_or(&patterns), &patterns)?;
        Ok(NetPolicy::new(patterns, Arc::new(rules)))
    }

    /// The rules for the hosts that may be reached if flags of the operator allow these.
    pub(crate) fn host_rules(&self, flags: &[String]) -> Result<NetRules, RunError> {
        self.network.rules(&host_patterns(flags)?, &[])
    }
}

impl NetworkPlan {
    /// The options for the runtime. Without a bridge nobody can be asked.
    pub(super) fn options(
        self,
        bridge: Option<&Bridge>,
        inputs: Option<Arc<RunInputs>>,
    ) -> NetworkOptions {
        let Self { mut options, run } = self;
        options.approver = bridge.cloned().map(|bridge| -> Arc<dyn ConnectionApprover> {
            let (answers, times) = Default::default();
            Arc::new(PersonApprover { bridge, run, inputs, answers, times })
        });
        options
    }
}

impl RunInputs {
    pub(super) fn new(inputs: InputSender) -> Arc<Self> {
        Arc::new(Self { inputs, waiting: Mutex::new(0) })
    }

    /// Passes an input on.
    pub(super) fn send(&self, input: GuestInput) {
        let GuestInput::WaitsForPerson(begins) = input else { return self.inputs.send(input) };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let was_waiting = *waiting > 0;
        *waiting = if begins { *waiting + 1 } else { waiting.saturating_sub(1) };
        // Sent while the count is locked, so that the last word is the right one.
        if was_waiting != (*waiting > 0) {
            self.inputs.send(GuestInput::WaitsForPerson(begins));
        }
    }
}

/// A wait for a person, which the clock of the run leaves out. It ends with this, too: the program may close
/// its connection, or the session reset it, while the question is open.
struct PersonWait<'a> {
    inputs: Option<&'a RunInputs>,
    is_on: AtomicBool,
}

impl PersonWait<'_> {
    fn turn(&self, on: bool) {
        if self.is_on.swap(on, Ordering::SeqCst) != on
            && let Some(inputs) = self.inputs
        {
            inputs.send(GuestInput::WaitsForPerson(on));
        }
    }
}

impl Drop for PersonWait<'_> {
    fn drop(&mut self) {
        self.turn(false);
    }
}

impl FetchPort for RunFetchPort {
    fn perform(
        &self,
        ask: FetchAsk,
    ) -> Pin<Box<dyn Future<Output = Result<FetchReply, ToolFault>> + Send + '_>> {
        Box::pin(self.0.perform(ask))
    }

    fn cancel(&self, fetch: u32) {
        self.0.cancel(fetch);
    }
}

impl PersonApprover {
    async fn answer(&self, question: &ConnectionQuestion) -> ConnectionAnswer {
        let (rule, destination) = (&question.rule, &question.destination);
        if rule.each {
            let details = details(question);
            let time = {
                let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
                let time = times.entry(details).or_default();
                *time += 1;
                *time
            };
            return self.put(question, time).await;
        }
        let key = format!("{rule} {destination}");
        let known = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.entry(key).or_default().clone()
        };
        *known.get_or_init(|| self.put(question, 0)).await
    }

    /// Puts a question to the person.
    async fn put(&self, question: &ConnectionQuestion, time: u32) -> ConnectionAnswer {
        let ConnectionQuestion { destination, rule, .. } = question;
        let extent = match rule.each {
            true => "an approval covers this one only".to_owned(),
            false => format!(
                "an approval covers everything that the rule names at {destination}, in this run"
            ),
        };
        let action = AskedAction {
            name: format!("net {destination}"),
            details: details(question),
            time,
            reason: format!("the rule `{rule}` under [net] asks; {extent}"),
        };
        let wait = PersonWait { inputs: self.inputs.as_deref(), is_on: AtomicBool::new(false) };
        match self.bridge.ask_about(&self.run, action, |begins| wait.turn(begins)).await {
            Ok(true) => ConnectionAnswer::Approved,
            Ok(false) => ConnectionAnswer::Denied,
            Err(fault) => {
                tracing::debug!(message = fault.message, "a connection was not approved");
                ConnectionAnswer::Unanswered
            }
        }
    }
}

impl ConnectionApprover for PersonApprover {
    fn ask<'a>(
        &'a self,
        question: &'a ConnectionQuestion,
    ) -> Pin<Box<dyn Future<Output = ConnectionAnswer> + Send + 'a>> {
        Box::pin(self.answer(question))
    }
}

/// A question as the person sees it.
fn details(question: &ConnectionQuestion) -> String {
    let ConnectionQuestion { destination, rule, request } = question;
    let mut shown = json!({
        "host": destination.host,
        "port": destination.port,
        "rule": rule.to_string(),
    });
    if let (Some(RequestSummary { method, path, body_bytes }), Some(shown)) =
        (request, shown.as_object_mut())
    {
        shown.insert("method".to_owned(), json!(method));
        shown.insert("path".to_owned(), json!(path));
        let size = body_bytes.map_or_else(|| json!("not stated"), |bytes| json!(bytes));
        shown.insert("body_bytes".to_owned(), size);
    }
    shown.to_string()
}
