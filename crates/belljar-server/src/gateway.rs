//! The gateway: what every client talks to, over MCP and over HTTP, with a backend behind it.
//!
//! It holds the state that all transports share (live runs, recent results, metrics) and is the MCP
//! server: its name, its capabilities and its list of tools. The HTTP API in `api` calls the same
//! gateway.

use std::{borrow::Cow, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, ListResourceTemplatesResult,
        ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, RequestStateCodec, ResourceTemplate,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::{
    backend::Backend,
    clients::StructuredUse,
    live::LiveRuns,
    meter::BackgroundMeter,
    metrics::ServerMetrics,
    names::{NameError, sort_out},
    recent::RecentRuns,
    reported_questions::ReportedQuestions,
    resources,
    token::random_bytes,
    tools,
    traces::Traces,
};

const INSTRUCTIONS: &str = "Write code that calls tools (execute_code) instead of calling them one \
    by one; find them with search_tools.";

/// Settings of a gateway.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// A run that takes longer is answered with its id, because clients usually give up after a
    /// minute. Questions to a person are not subject to it.
    pub answer_within: Duration,
    /// Key material that seals `requestState`, so that retries survive a restart. Random if absent.
    pub secret: Option<Vec<u8>>,
    /// Where to send traces, if anywhere.
    pub traces: Option<Traces>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { answer_within: Duration::from_secs(50), secret: None, traces: None }
    }
}

/// Belljar's server, over any transport. Clones share everything.
#[derive(Debug)]
pub struct Gateway<B> {
    pub(crate) shared: Arc<GatewayState<B>>,
}

#[derive(Debug)]
pub(crate) struct GatewayState<B> {
    pub(crate) backend: Arc<B>,
    pub(crate) runs: LiveRuns,
    pub(crate) told: ReportedQuestions,
    pub(crate) recent: RecentRuns,
    pub(crate) metrics: Arc<ServerMetrics>,
    pub(crate) traces: Option<Traces>,
    pub(crate) answer_within: Duration,
    pub(crate) states: RequestStateCodec,
    /// Cancelled when the host is about to stop: no further run is resumed.
    pub(crate) stopping: CancellationToken,
}

impl<B> Clone for Gateway<B> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<B: Backend> Gateway<B> {
    /// A gateway to this backend. Upstream tools whose names clients would not accept are left out;
    /// [`left_out`](Self::left_out) says which.
    pub fn new(backend: Arc<B>, options: ServerOptions) -> Self {
        let secret = options.secret.unwrap_or_else(|| random_bytes().to_vec());
        // The digest of a secret of any length has the length that the codec needs.
        let key = Sha256::new().chain_update("belljar requestState").chain_update(secret);
        let states = RequestStateCodec::new_unchecked(key.finalize().to_vec());
        let (answer_within, traces) = (options.answer_within, options.traces);
        let (runs, recent, metrics) =
            (LiveRuns::default(), RecentRuns::default(), Arc::<ServerMetrics>::default());
        backend.measure_with(BackgroundMeter::new(Arc::clone(&metrics), traces.clone()));
        let stopping = CancellationToken::new();
        let shared = GatewayState {
            told: ReportedQuestions::default(),
            backend,
            runs,
            recent,
            metrics,
            traces,
            answer_within,
            states,
            stopping,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Ends every run, also those that outlasted the request that started them.
    pub fn abort_runs(&self) {
        self.shared.runs.abort_all();
    }

    /// Why each upstream tool that should be passed through is not.
    pub fn left_out(&self) -> Vec<NameError> {
        sort_out(self.shared.backend.pass_through()).1
    }

    fn tools(&self) -> Vec<Tool> {
        let (shown, _) = sort_out(self.shared.backend.pass_through());
        let mut all = tools::own(match self.shared.backend.offers_workflows() {
            true => tools::WorkflowTools::Offered,
            false => tools::WorkflowTools::Off,
        });
        all.extend(shown.into_iter().map(tools::upstream_tool));
        all
    }
}

impl<B: Backend> ServerHandler for Gateway<B> {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_server_info(
                Implementation::new("belljar", env!("CARGO_PKG_VERSION")).with_title("Belljar"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.tools();
        if StructuredUse::of(&context) == StructuredUse::Instead {
            let own =
                tools.iter_mut().filter(|tool| tools::ANSWER_WITH_FILES.contains(&&*tool.name));
            own.for_each(|tool| tool.output_schema = None);
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new(resources::TEMPLATE, "file of a run")
            .with_description("A file or a large value, by the handle in the answer of its run.");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let unknown = || {
            let why = format!("no file has the address {}; it may have been pruned", request.uri);
            ErrorData::resource_not_found(why, None)
        };
        let handle = resources::handle_of(&request.uri).ok_or_else(unknown)?;
        let blob = self.shared.backend.blob(handle).await;
        let blob = blob.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let contents = resources::contents(&request.uri, blob.ok_or_else(unknown)?);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }
}
