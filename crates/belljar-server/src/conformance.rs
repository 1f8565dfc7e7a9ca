//! Fixtures that the official conformance suite calls by fixed names, beside the gateway it tests.
//!
//! Its scenarios need certain tools, prompts and resources. A hidden flag adds them to an ordinary
//! [`Gateway`] on the same transports; normal servers have none of them. The names and texts are
//! the suite's.

#![expect(deprecated, reason = "the suite tests what older revisions still have")]

mod content;
mod prompts;
mod rounds;

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CompletionInfo, GetPromptRequestParams, GetPromptResponse, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        PromptListChangedNotification, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, ServerNotification, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, ToolListChangedNotification,
        UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::{
    backend::Backend,
    gateway::Gateway,
    http::{HttpConfig, HttpServer, ServeError, serve},
    tools,
};

/// The pause between the steps of slow tools.
const STEP: Duration = Duration::from_millis(50);

/// The list that a trigger reports as changed.
#[derive(Debug, Clone, Copy)]
enum ListChange {
    Tools,
    Prompts,
}

/// A gateway with the suite's fixtures added.
#[derive(Debug)]
struct Fixtures<B> {
    gateway: Gateway<B>,
    changes: broadcast::Sender<ListChange>,
}

impl<B> Clone for Fixtures<B> {
    fn clone(&self) -> Self {
        Self { gateway: self.gateway.clone(), changes: self.changes.clone() }
    }
}

/// Serves a gateway with the fixtures added.
///
/// # Errors
/// As [`serve_http`](crate::serve_http).
pub async fn serve_http<B: Backend>(
    gateway: Gateway<B>,
    config: HttpConfig,
) -> Result<HttpServer, ServeError> {
    let fixtures = Fixtures { gateway: gateway.clone(), changes: broadcast::Sender::new(16) };
    serve(fixtures, &gateway, config).await
}

impl<B: Backend> ServerHandler for Fixtures<B> {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.gateway.get_info();
        info.capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        info
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut all = self.gateway.list_tools(page, context).await?;
        all.tools.extend(content::tools()?);
        Ok(all)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let fixtures = content::tools().unwrap_or_default();
        fixtures.into_iter().find(|tool| tool.name == name).or_else(|| self.gateway.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            name if tools::NAMES.contains(&name) => self.gateway.call_tool(request, context).await,
            "test_trigger_tool_change" => self.trigger(ListChange::Tools),
            "test_trigger_prompt_change" => self.trigger(ListChange::Prompts),
            name if name.contains("input_required") || name == "test_streaming_elicitation" => {
                rounds::call(&request, &context)
            }
            _ => content::call(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::prompts()?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request)
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = vec!["test_value".to_owned()];
        let values = CompletionInfo::new(values).map_err(|e| ErrorData::internal_error(e, None))?;
        Ok(CompleteResult::new(values))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(prompts::resources()?))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(prompts::templates()?))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        prompts::read(&request.uri)
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        asked: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(asked.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let changed = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                changed = changes.recv() => changed,
            };
            let notification = match changed {
                Ok(ListChange::Tools) => ServerNotification::ToolListChangedNotification(
                    ToolListChangedNotification::default(),
                ),
                Ok(ListChange::Prompts) => ServerNotification::PromptListChangedNotification(
                    PromptListChangedNotification::default(),
                ),
                Err(_) => return Ok(()),
            };
            // An error means that the subscriber did not ask for this list.
            let _ = subscription.sink().send(notification).await;
        }
    }
}

impl<B> Fixtures<B> {
    fn trigger(&self, changed: ListChange) -> Result<CallToolResponse, ErrorData> {
        // There may be no subscriber.
        let _ = self.changes.send(changed);
        content::text("changed")
    }
}

/// Converts a fixture from JSON to the SDK's type.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("invalid fixture: {error}"), None))
}
