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
mod find;
mod one_call;
mod run;
mod sequence;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_store::Store;
use belljar_wire::{ToolCall, ToolFault};

use crate::{
    Annotations, CallTime, Catalogue, Decision, Finder, Glob, LISTING_PATIENCE, Overrides, Policy,
    Tool, ToolGrants, Trust, UpstreamError, Upstreams, arguments::canonical, local::LocalServer,
};

pub use approval::ApprovalNotice;
pub use run::{JournalError, RunBridge};

/// How long a tool may take to be looked up for somebody who does not call it.
const LOOKED_UP: Duration = Duration::from_secs(60);

/// How a bridge is set up.
#[derive(Debug)]
pub struct BridgeConfig {
    /// Servers from the configuration.
    pub upstreams: Upstreams,
    /// Servers inside this program, by name.
    pub local: BTreeMap<String, Arc<dyn LocalServer>>,
    /// Who may call what.
    pub policy: Policy,
    /// Where approvals, audit rows and journals go. Without one nothing can be approved.
    pub store: Option<Store>,
    /// How long a person has to decide.
    pub approval_timeout: Duration,
    /// When audit rows are on disk.
    pub audit: AuditTiming,
    /// Milliseconds since 1970.
    pub now_ms: fn() -> i64,
}

/// When the audit row of a call is on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuditTiming {
    /// Before the call leaves, if it may have an effect; soon after it, if it only reads by the
    /// operator's word or that of a server which is trusted. What cannot be written is not called.
    #[default]
    BeforeEffects,
    /// Soon after any call: what a host had not written when it was killed is lost.
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

/// Catalogues, and the lists they were made of. Making one costs more than a call.
#[derive(Debug, Default)]
struct Snapshots {
    of_one: BTreeMap<String, (Arc<Vec<Tool>>, Catalogue)>,
    of_all: Option<(Vec<Arc<Vec<Tool>>>, Catalogue)>,
}

/// What the bridge has to know about a run.
#[derive(Debug)]
pub struct RunContext {
    /// Its name.
    pub run_id: String,
    /// Who asked for it.
    pub caller: String,
    /// The tools it may use.
    pub grants: ToolGrants,
    /// The longest a call may take.
    pub tool_timeout: Duration,
    /// The code, to show the line that makes a call.
    pub code: String,
    /// Who wants to hear of what happens.
    pub observer: Arc<dyn Observer>,
}

/// Hears of what happens in a run, while it happens.
pub trait Observer: Send + Sync + std::fmt::Debug {
    /// The run begins. One that is durable is on disk: whoever hears its id may rely on it.
    fn run_begins(&self, _run_id: &str) {}
    /// A call waits for a person.
    fn approval_waits(&self, _notice: &ApprovalNotice) {}
    /// A person decided, or time ran out.
    fn approval_over(&self, _id: &str) {}
    /// A call leaves the host.
    fn call_begins(&self, _tool: &Tool, _reach: Reach) {}
    /// A call has ended.
    fn call_ends(&self, _tool: &str, _is_ok: bool, _duration: Duration) {}
}

/// What a tool can do, as far as anyone says who is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It changes nothing.
    ReadOnly,
    /// It may change something.
    Unknown,
}

/// Hears nothing.
#[derive(Debug)]
pub struct NoObserver;

impl Observer for NoObserver {}

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

    /// All tools of all servers, and the servers whose tools cannot be had, or not soon: looking for
    /// tools does not wait for a server that hangs.
    pub async fn catalogue(&self) -> (Catalogue, Vec<UpstreamError>) {
        self.catalogue_within(LISTING_PATIENCE).await
    }

    /// The same for who would rather wait: for so long from when a server is first asked.
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

    /// The same, if they can be had soon: looking for tools does not wait for a server that hangs.
    pub async fn catalogue_soon(&self, server: &str) -> Result<Catalogue, UpstreamError> {
        if self.config.local.contains_key(server) {
            return self.catalogue_of(server).await;
        }
        let tools = self.config.upstreams.tools_soon(server, LISTING_PATIENCE).await?;
        Ok(self.snapshot_of(server, tools))
    }

    /// The same for a call of one of them, whose time it takes.
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

    /// Asks the servers of these tools for their lists again, in so much time: what is remembered of
    /// them may be long gone. A server that does not answer keeps what is known of it.
    pub async fn refresh(&self, tools: &[Tool], within: Duration) {
        let servers: BTreeSet<&str> = tools.iter().map(|tool| tool.server.as_str()).collect();
        for server in servers {
            if let Err(error) = self.config.upstreams.refreshed_tools(server, within).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "tools not listed again");
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

    /// Whether a run with these grants could be made to wait for a person. Starts no server for the
    /// answer: one of which nothing is known yet is taken to have a tool like no other.
    pub async fn may_ask(&self, grants: &ToolGrants) -> bool {
        let mut tools = Vec::new();
        for spec in self.config.upstreams.specs() {
            match self.config.upstreams.remembered_tools(spec.name()).await {
                Some(known) => tools.extend(known.iter().cloned()),
                None if self.config.policy.may_ask_about(spec.name()) => return true,
                None => tools.push(any_tool(spec.name())),
            }
        }
        let local = self.config.local.values().map(|server| server.tools());
        tools.extend(local.flat_map(|tools| tools.to_vec()));
        let trust = |server: &str| self.trust(server);
        self.config.policy.may_ask(&Catalogue::new(tools), trust, &self.overrides, grants)
    }

    /// How far a server's word about its tools is taken.
    fn trust(&self, server: &str) -> Trust {
        let is_own = self.config.local.contains_key(server);
        let is_trusted = self.config.upstreams.spec(server).is_some_and(|spec| spec.trusted);
        if is_own || is_trusted { Trust::Trusted } else { Trust::Untrusted }
    }

    /// Whether a call of the tool can be made twice without harm.
    pub fn is_repeatable(&self, tool: &Tool) -> bool {
        self.overrides.is_idempotent(tool, self.trust(&tool.server))
    }

    /// What a tool can do.
    pub fn reach(&self, tool: &Tool) -> Reach {
        match self.overrides.is_read_only(tool, self.trust(&tool.server)) {
            true => Reach::ReadOnly,
            false => Reach::Unknown,
        }
    }

    /// What policy says of a tool as long as nothing is known of its arguments.
    pub fn verdict(&self, tool: &Tool, grants: &ToolGrants) -> Decision {
        let (policy, trust) = (&self.config.policy, self.trust(&tool.server));
        policy.decide(tool, trust, &self.overrides, &serde_json::Map::new(), grants)
    }

    /// All that decides about calls, as text: other rules, or other trust in a server, give another.
    pub fn rules(&self) -> String {
        let trusted = self.config.upstreams.specs().filter(|spec| spec.trusted);
        let trusted: Vec<&str> = trusted.map(crate::ServerSpec::name).collect();
        serde_json::json!([&self.config.policy, &*self.overrides, trusted]).to_string()
    }

    /// The tool a name means, as `server__tool` or however else code may write it.
    pub async fn tool(&self, name: &str) -> Result<Tool, ToolFault> {
        self.resolve(&ToolGrants::default(), None, name, LOOKED_UP.into()).await
    }

    /// Makes one call that belongs to no code: the same path, policy, approval and audit row.
    pub async fn call(
        &self,
        run: &RunContext,
        tool: &str,
        arguments: Vec<u8>,
    ) -> Result<Vec<u8>, ToolFault> {
        let tool = tool.to_owned();
        let arguments = canonical(&arguments).unwrap_or(arguments);
        let call = ToolCall { call: 1, server: None, tool, line: None, arguments };
        self.perform(run, &call, &call::OpenGate::new(self, |_| ())).await
    }

    /// Ends all servers.
    pub async fn shutdown(&self) {
        self.config.upstreams.shutdown().await;
    }
}

/// A tool nobody has described: only rules for all tools of its server, or for all there are, can
/// be about it.
fn any_tool(server: &str) -> Tool {
    Tool {
        server: server.to_owned(),
        name: "\u{1}".to_owned(),
        title: None,
        description: None,
        input_schema: serde_json::Value::Bool(true),
        output_schema: None,
        annotations: Annotations::default(),
    }
}

/// What the operator says of the tools of each server, whatever the servers say.
fn overrides(upstreams: &Upstreams) -> Overrides {
    let mut all = Overrides::default();
    for spec in upstreams.specs() {
        let of_server = |pattern: &String| Glob::new(format!("{}__{pattern}", spec.name()));
        all.read_only.extend(spec.read_only.iter().map(of_server));
        all.idempotent.extend(spec.idempotent.iter().map(of_server));
    }
    all
}
