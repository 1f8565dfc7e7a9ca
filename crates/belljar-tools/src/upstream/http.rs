//! A server that is connected to over streamable HTTP.

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    sync::Arc,
    time::Duration,
};

use reqwest::{
    Client, StatusCode,
    header::{HeaderName, HeaderValue},
    redirect::{Attempt, Policy},
};
use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, ServerJsonRpcMessage, ServerNotification},
    service::TxJsonRpcMessage,
    transport::{
        StreamableHttpClientTransport, Transport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};

use super::{
    error::{StartError, shorten},
    intake::{Intake, Passage},
    liveness::Liveness,
    pipe::{MAX_MESSAGE_BYTES, is_answer, ticket_of},
};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 5;

type HttpFailure = StreamableHttpError<reqwest::Error>;

/// The library's transport; this also tracks whether a request left the host and whether the connection
/// is alive, and limits unsolicited messages.
pub(super) struct HttpTransport {
    inner: StreamableHttpClientTransport<Client>,
    intake: Intake,
    liveness: Arc<Liveness>,
}

impl HttpTransport {
    /// Prepares to talk to an endpoint. Nothing is sent yet.
    pub(super) fn new(
        url: &str,
        headers: &BTreeMap<String, String>,
        max_concurrent: usize,
        intake: Intake,
        liveness: Arc<Liveness>,
    ) -> Result<Self, StartError> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // An idle connection may be closed just when it is used again, and then it is unknown
            // whether a call happened.
            .pool_max_idle_per_host(0)
            .redirect(Policy::custom(within_origin))
            .build()
            .map_err(|error| StartError::new(describe(&error)))?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        config.custom_headers = checked(headers)?;
        config.max_sse_event_size = MAX_MESSAGE_BYTES;
        config.max_concurrent_requests = max_concurrent + 1;
        let inner = StreamableHttpClientTransport::with_client(client, config);
        Ok(Self { inner, intake, liveness })
    }

    /// The next message the library should see; `None` when there is no more. The error says why the
    /// server is to be disconnected.
    async fn next(&mut self) -> Result<Option<ServerJsonRpcMessage>, String> {
        loop {
            self.intake.room().await?;
            let Some(message) = self.inner.receive().await else { return Ok(None) };
            let passage = match &message {
                // Its length is unknown: the library has parsed it.
                JsonRpcMessage::Request(_) => self.intake.request(0)?,
                JsonRpcMessage::Notification(message) => {
                    let notification = &message.notification;
                    let text = || shorten(&serde_json::to_string(notification).unwrap_or_default());
                    self.intake.notification(method(notification), 0, text)?
                }
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Passage::Pass,
            };
            if passage == Passage::Pass {
                return Ok(Some(message));
            }
        }
    }
}

/// The methods of those notifications that mean something here.
fn method(notification: &ServerNotification) -> &str {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is dropped, known or not")]
    match notification {
        ServerNotification::ToolListChangedNotification(_) => "notifications/tools/list_changed",
        ServerNotification::LoggingMessageNotification(_) => "notifications/message",
        ServerNotification::CancelledNotification(_) => "notifications/cancelled",
        ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
            "notifications/subscriptions/acknowledged"
        }
        _ => "",
    }
}

fn checked(
    headers: &BTreeMap<String, String>,
) -> Result<HashMap<HeaderName, HeaderValue>, StartError> {
    let check = |(name, value): (&String, &String)| {
        let bad = |what: &str| StartError::new(format!("the header `{name}` has {what}"));
        let key = name.parse::<HeaderName>().map_err(|_| bad("an invalid name"))?;
        let mut value = value.parse::<HeaderValue>().map_err(|_| bad("an invalid value"))?;
        value.set_sensitive(true);
        Ok((key, value))
    };
    headers.iter().map(check).collect()
}

/// Follows a redirect only if the request keeps its body and stays with the same origin, so that its
/// headers go to no other server.
fn within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_body =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let first = attempt.previous().first();
    let same = first.is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_body && same && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

impl Transport<RoleClient> for HttpTransport {
    type Error = HttpFailure;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HttpFailure>> + Send + 'static {
        let ticket = ticket_of(&message);
        let answer_guard = is_answer(&message).then(|| self.intake.unanswered().answer_guard());
        let send = self.inner.send(message);
        let liveness = self.liveness.clone();
        async move {
            let _answer_guard = answer_guard;
            if ticket.as_ref().is_some_and(|ticket| !ticket.begin()) {
                return Ok(());
            }
            let sent = send.await;
            if let Err(error) = &sent {
                if was_not_taken(error) {
                    ticket.inspect(|ticket| ticket.nothing_was_sent());
                }
                if let StreamableHttpError::Client(client) = error
                    && client.is_connect()
                {
                    liveness.stop(describe(client));
                }
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let next = self.next().await;
        let message = next.inspect_err(|why| self.liveness.disconnect(why)).ok().flatten();
        if message.is_none() {
            // The first reason counts.
            self.liveness.stop("it closed the connection");
        }
        message
    }

    async fn close(&mut self) -> Result<(), HttpFailure> {
        self.inner.close().await
    }
}

/// Whether a request certainly was not acted on.
fn was_not_taken(error: &HttpFailure) -> bool {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "in doubt about the rest, whatever the library adds"
    )]
    match error {
        StreamableHttpError::Client(client) => client.is_connect() || client.is_builder(),
        StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_)
        | StreamableHttpError::SessionExpired
        | StreamableHttpError::ReservedHeaderConflict(_) => true,
        StreamableHttpError::HttpStatus(status) => status.status == 429,
        StreamableHttpError::UnexpectedServerResponse(text) => text.starts_with("HTTP 4"),
        _ => false,
    }
}

/// An error without the URL, which may contain a secret.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut source = error.source();
    let mut parts = Vec::new();
    while let Some(cause) = source {
        parts.push(cause.to_string());
        source = cause.source();
    }
    if parts.is_empty() {
        return if error.is_timeout() { "the request timed out" } else { "the request failed" }
            .to_owned();
    }
    shorten(&parts.join(": "))
}

/// Why a connection failed, if HTTP is the reason.
pub(super) fn explain(error: &(dyn Error + Send + Sync + 'static)) -> Option<StartError> {
    error.downcast_ref::<HttpFailure>().map(explain_failure)
}

fn explain_failure(failure: &HttpFailure) -> StartError {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest explains itself")]
    match failure {
        StreamableHttpError::Client(client) => StartError::new(describe(client))
            .with_hint("check that the server is running and that `url` is its endpoint"),
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            StartError::new("it requires authorization")
                .with_hint("set `headers.Authorization` of the server")
        }
        other => {
            let mut error = StartError::new(shorten(&other.to_string()));
            error.is_handshake = true;
            error
        }
    }
}
