//! The bridge: the one path by which a tool call leaves a cell.
//!
//! name → arguments → policy → approval → journal → call → value. Every way to call a tool goes
//! through [`Bridge`]: code in a cell, the command line, a pass-through of the gateway, a replay.

mod approval;
mod audit;
mod built_in;
mod call;
mod doubts;
mod durable_call;
mod fetch;
mod find;
mod one_call;
mod run;
mod sequence;
mod standing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_contract::{ApprovalId, RunId, SessionId};
use belljar_policy::KeptRules;
use belljar_store::Store;
use belljar_wire::{ToolCall, ToolFault};

use crate::{
    CallTime, Catalogue, Decisions, Finder, Glob, LISTING_TIMEOUT, Overrides, PolicyDecision,
    PolicySubject, Tool, ToolGrants, ToolPolicy, ToolValue, Trust, UpstreamError, Upstreams,
    arguments::CallArguments, local::LocalServer,
};

pub use approval::{ApprovalNotice, AskedAction};
pub use fetch::FetchPort;
pub use run::{JournalError, RunBridge};

/// The timeout for looking up a tool that is not called.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(60);

/// How a bridge is set up.
#[derive(Debug)]
pub struct BridgeConfig {
    /// Servers from the configuration.
    pub upstreams: Upstreams,
    /// Servers inside this program, by name.
    pub local: BTreeMap<String, Arc<dyn LocalServer>>,
    /// Decides which calls are made, asked about or denied.
    pub policy: ToolPolicy,
    /// Holds approvals, audit rows and journals. Without it nothing can be approved.
    pub store: Option<Store>,
    /// Rules that the user approved for good. Without it no yes is for good.
    pub kept: Option<KeptRules>,
    /// How long a person has to decide.
    pub approval_timeout: Duration,
    /// When audit rows are on disk.
    pub audit: AuditTiming,
    /// The clock, in milliseconds since 1970.
    pub now_ms: fn() -> i64,
}

/// When the audit row of a call is on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuditTiming {
    /// Before the call leaves, if it may have an effect; soon after it, if the operator or a trusted
    /// server says that the tool only reads. If the row cannot be written, the call is not made.
    #[default]
    BeforeEffects,
    /// Soon after any call: rows that a killed host had not written are lost.
    Behind,
}

/// Calls tools for runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Bridge {
    config: Arc<BridgeConfig>,
    overrides: Arc<Overrides>,
    snapshots: Arc<Mutex<Snapshots>>,
    finder: Finder,
}

/// Catalogues with the lists they were made of, because making one costs more than a call.
#[derive(Debug, Default)]
struct Snapshots {
    of_one: BTreeMap<String, (Arc<Vec<Tool>>, Catalogue)>,
    of_all: Option<(Vec<Arc<Vec<Tool>>>, Catalogue)>,
}

/// The run that calls are made for.
#[derive(Debug)]
pub struct RunContext {
    /// The id of the run, under which approvals and audit rows are kept.
    pub run_id: RunId,
    /// The session that it is in.
    pub session: Option<SessionId>,
    /// The caller who asked for it.
    pub caller: String,
    /// The tools it may use.
    pub grants: ToolGrants,
    /// The longest a call may take.
    pub tool_timeout: Duration,
    /// The guest code, to show the line that makes a call.
    pub code: String,
    /// Notified of what happens in the run.
    pub observer: Arc<dyn CallObserver>,
}

/// The decisions about a run right before it begins.
#[derive(Debug, Clone, Copy)]
pub struct PreparedRun<'a> {
    /// Whether it can be resumed after its host has died.
    pub keeps_journal: bool,
    /// The tools it was given by name or for its intent; empty if it may use all that policy allows.
    pub tools: &'a [String],
}

/// Is notified of what happens in a run, while it happens.
pub trait CallObserver: Send + Sync + std::fmt::Debug {
    /// The run begins. A durable run is on disk by then, so its id may be handed out.
    fn run_begins(&self, _run_id: &RunId) {}
    /// It is decided which tools the run gets and whether it keeps a journal; it begins next.
    fn run_prepared(&self, _run: PreparedRun<'_>) {}
    /// A call waits for a person.
    fn approval_waits(&self, _notice: &ApprovalNotice) {}
    /// Whether a call may wait for a person. If not, a call that needs approval fails.
    fn may_wait(&self) -> bool {
        true
    }
    /// A person decided, or time ran out.
    fn approval_over(&self, _id: &ApprovalId) {}
    /// A call leaves the host.
    fn call_begins(&self, _tool: &Tool, _reach: ToolReach) {}
    /// A call has ended.
    fn call_ends(&self, _tool: &str, _is_ok: bool, _duration: Duration) {}
}

/// Whether a tool can have effects, by the word of the operator or of a trusted server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolReach {
    /// The operator, or a server the operator trusts, says that it changes nothing.
    ReadOnly,
    /// It may change something: no trusted source says otherwise.
    Unknown,
}

/// Ignores everything that happens.
#[derive(Debug)]
pub struct NoObserver;

impl CallObserver for NoObserver {}

impl Bridge {
    /// A bridge to these servers.
    pub fn new(config: BridgeConfig) -> Self {
        let overrides = Arc::new(overrides(&config.upstreams));
        let finder = Finder::new(config.upstreams.index_file());
        Self { config: Arc::new(config), overrides, snapshots: Arc::default(), finder }
    }

    /// The names of all servers, sorted.
    pub fn servers(&self) -> Vec<String> {
        let configured = self.config.upstreams.names().map(str::to_owned);
        let mut names: Vec<String> = configured.chain(self.config.local.keys().cloned()).collect();
        names.sort();
        names
    }

    /// All tools of all servers, and the errors of servers whose tools cannot be listed soon: a server
    /// that hangs does not delay the search for tools.
    pub async fn catalogue(&self) -> (Catalogue, Vec<UpstreamError>) {
        self.catalogue_within(LISTING_TIMEOUT).await
    }

    /// The same with a longer timeout, counted from when a server is first asked.
    pub async fn catalogue_within(&self, within: Duration) -> (Catalogue, Vec<UpstreamError>) {
        let mut failures = Vec::new();
        let mut lists = Vec::new();
        for (_, tools) in self.config.upstreams.all_tools(within).await {
            match tools {
                Ok(tools) => lists.push(tools),
                Err(error) => failures.push(error),
            }
        }
        lists.extend(self.config.local.values().map(|server| server.tools()));
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &[Arc<Vec<Tool>>]| {
            known.len() == lists.len() && known.iter().zip(&lists).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        if let Some((known, catalogue)) = &snapshots.of_all
            && same(known)
        {
            return (catalogue.clone(), failures);
        }
        let tools = lists.iter().flat_map(|tools| tools.iter().cloned()).collect();
        let catalogue = Catalogue::new(tools);
        snapshots.of_all = Some((lists, catalogue.clone()));
        (catalogue, failures)
    }

    /// The tools of one server.
    pub async fn catalogue_of(&self, server: &str) -> Result<Catalogue, UpstreamError> {
        match self.config.local.get(server) {
            Some(local) => Ok(self.snapshot_of(server, local.tools())),
            None => Ok(self.snapshot_of(server, self.config.upstreams.tools(server).await?)),
        }
    }

    /// The same with a short timeout, so that a server that hangs does not delay the search for tools.
    pub async fn catalogue_soon(&self, server: &str) -> Result<Catalogue, UpstreamError> {
        if self.config.local.contains_key(server) {
            return self.catalogue_of(server).await;
        }
        let tools = self.config.upstreams.tools_soon(server, LISTING_TIMEOUT).await?;
        Ok(self.snapshot_of(server, tools))
    }

    /// The same within the time of a call to one of them.
    async fn catalogue_for_call(
        &self,
        server: &str,
        time: CallTime,
    ) -> Result<Catalogue, UpstreamError> {
        if self.config.local.contains_key(server) {
            return self.catalogue_of(server).await;
        }
        let tools = self.config.upstreams.tools_within(server, time).await?;
        Ok(self.snapshot_of(server, tools))
    }

    /// Lists the tools of these servers again: cached lists may be out of date. A server that does not
    /// answer in time keeps its cached list.
    pub async fn refresh(&self, tools: &[Tool], within: Duration) {
        let servers: BTreeSet<&str> = tools.iter().map(|tool| tool.server.as_str()).collect();
        for server in servers {
            if let Err(error) = self.config.upstreams.refreshed_tools(server, within).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot list the tools of a server again"
                );
            }
        }
    }

    fn snapshot_of(&self, server: &str, tools: Arc<Vec<Tool>>) -> Catalogue {
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, catalogue)) = snapshots.of_one.get(server)
            && Arc::ptr_eq(known, &tools)
        {
            return catalogue.clone();
        }
        let catalogue = Catalogue::new(tools.to_vec());
        snapshots.of_one.insert(server.to_owned(), (tools, catalogue.clone()));
        catalogue
    }

    /// Whether a run with these grants may have to wait for a person. Starts no server: one whose tools
    /// were never listed counts as having a tool that no specific pattern matches.
    pub async fn may_ask(&self, grants: &ToolGrants) -> bool {
        let mut lists: Vec<_> = self.config.local.values().map(|server| server.tools()).collect();
        let mut unlisted = Vec::new();
        for spec in self.config.upstreams.specs() {
            match self.config.upstreams.remembered_tools(spec.name()).await {
                Some(known) => lists.push(known),
                None if self.config.policy.may_ask_about(spec.name()) => return true,
                None => unlisted.push(spec.name()),
            }
        }
        let listed = lists.iter().flat_map(|tools| tools.iter()).map(PolicySubject::Listed);
        let unlisted = unlisted.into_iter().map(|server| PolicySubject::Unlisted { server });
        let trust = |server: &str| self.trust(server);
        let policy = &self.config.policy;
        policy.may_ask(listed.chain(unlisted), trust, &self.overrides, grants)
    }

    /// Whether the annotations of a server's tools are believed.
    fn trust(&self, server: &str) -> Trust {
        if self.config.local.contains_key(server) {
            return Trust::Trusted;
        }
        match self.config.upstreams.spec(server) {
            Some(spec) if spec.trusted => Trust::Trusted,
            Some(spec) if spec.chosen => Trust::Chosen,
            Some(_) | None => Trust::Untrusted,
        }
    }

    /// Whether a call of the tool can be made twice without harm.
    pub fn is_repeatable(&self, tool: &Tool) -> bool {
        self.overrides.is_idempotent(tool, self.trust(&tool.server))
    }

    /// The effects that a tool can have.
    pub fn reach(&self, tool: &Tool) -> ToolReach {
        match self.overrides.is_read_only(tool, self.trust(&tool.server)) {
            true => ToolReach::ReadOnly,
            false => ToolReach::Unknown,
        }
    }

    /// The decision of policy about a tool whose arguments are still unknown.
    pub fn verdict(&self, tool: &Tool, grants: &ToolGrants) -> PolicyDecision {
        let (policy, trust) = (&self.config.policy, self.trust(&tool.server));
        policy.decide(tool, trust, &self.overrides, &serde_json::Map::new(), grants)
    }

    /// Everything that decides about calls, as text: it changes with the rules and with trust in servers.
    pub fn rules(&self) -> String {
        let trusted = self.config.upstreams.specs().filter(|spec| spec.trusted);
        let trusted: Vec<&str> = trusted.map(crate::ServerSpec::name).collect();
        let chosen = self.config.upstreams.specs().filter(|spec| spec.chosen);
        let chosen: Vec<&str> = chosen.map(crate::ServerSpec::name).collect();
        serde_json::json!([&self.config.policy, &*self.overrides, trusted, chosen]).to_string()
    }

    /// The tool a name refers to: `server__tool`, or any other form that code may use.
    pub async fn tool(&self, name: &str) -> Result<Tool, ToolFault> {
        self.resolve(&ToolGrants::default(), None, name, LOOKUP_TIMEOUT.into()).await
    }

    /// Makes one call outside of guest code, with the same policy, approval and audit row.
    pub async fn call(
        &self,
        run: &RunContext,
        tool: &str,
        arguments: CallArguments,
    ) -> Result<ToolValue, ToolFault> {
        let CallArguments { text: arguments, read } = arguments;
        let tool = tool.to_owned();
        let call = ToolCall { call: 1, server: None, tool, line: None, arguments };
        self.perform(run, &call, read, &call::OpenGate::new(self, |_| ())).await
    }

    /// Records decisions about calls of this bridge; none without a store.
    pub fn decisions(&self) -> Option<Decisions> {
        Some(Decisions::new(self.config.store.clone()?, self.config.kept.clone()))
    }

    /// Ends all upstream servers and waits for them, for a few seconds at most.
    pub async fn shutdown(&self) {
        self.config.upstreams.shutdown().await;
    }
}

/// The operator's declarations about the tools of each server.
fn overrides(upstreams: &Upstreams) -> Overrides {
    let mut all = Overrides::default();
    for spec in upstreams.specs() {
        let of_server = |pattern: &String| Glob::new(format!("{}__{pattern}", spec.name()));
        all.read_only.extend(spec.read_only.iter().map(of_server));
        all.idempotent.extend(spec.idempotent.iter().map(of_server));
    }
    all
}
