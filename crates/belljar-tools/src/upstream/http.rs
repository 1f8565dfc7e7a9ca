//! A server that is reached over streamable HTTP.

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
    pipe::{MAX_MESSAGE_BYTES, is_answer, ticket_of},
    pulse::Pulse,
};

/// How long a server may take to accept a connection.
const CONNECTED: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 5;

type Failure = StreamableHttpError<reqwest::Error>;

/// The library's transport, watched: whether a request left the host, and whether the connection
/// still lives, and what the server sends unasked.
pub(super) struct HttpTransport {
    inner: StreamableHttpClientTransport<Client>,
    intake: Intake,
    pulse: Arc<Pulse>,
}

impl HttpTransport {
    /// Prepares to talk to an endpoint. Nothing is sent yet.
    pub(super) fn new(
        url: &str,
        headers: &BTreeMap<String, String>,
        max_concurrent: usize,
        intake: Intake,
        pulse: Arc<Pulse>,
    ) -> Result<Self, StartError> {
        let client = Client::builder()
            .connect_timeout(CONNECTED)
            // A connection that idles may be closed just when it is used again, and then nobody knows
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
        Ok(Self { inner, intake, pulse })
    }

    /// The next message the library should see; `None` when there is no more. The error says why the
    /// server is to be disconnected.
    async fn next(&mut self) -> Result<Option<ServerJsonRpcMessage>, String> {
        loop {
            self.intake.room().await?;
            let Some(message) = self.inner.receive().await else { return Ok(None) };
            let passage = match &message {
                // How long it was is not known any more; the library has read it.
                JsonRpcMessage::Request(_) => self.intake.request(0)?,
                JsonRpcMessage::Notification(told) => {
                    let told = &told.notification;
                    let text = || shorten(&serde_json::to_string(told).unwrap_or_default());
                    self.intake.notification(method(told), 0, text)?
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
        let key = name.parse::<HeaderName>().map_err(|_| bad("a name that is none"))?;
        let mut value =
            value.parse::<HeaderValue>().map_err(|_| bad("a value no header can have"))?;
        value.set_sensitive(true);
        Ok((key, value))
    };
    headers.iter().map(check).collect()
}

/// Follows what keeps the request whole and its headers with the server they are meant for.
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
    type Error = Failure;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Failure>> + Send + 'static {
        let ticket = ticket_of(&message);
        let answering = is_answer(&message).then(|| self.intake.unanswered().answering());
        let send = self.inner.send(message);
        let pulse = self.pulse.clone();
        async move {
            let _answering = answering;
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
                    pulse.stop(describe(client));
                }
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let next = self.next().await;
        let message = next.inspect_err(|why| self.pulse.disconnect(why)).ok().flatten();
        if message.is_none() {
            // The first reason counts.
            self.pulse.stop("it closed the connection");
        }
        message
    }

    async fn close(&mut self) -> Result<(), Failure> {
        self.inner.close().await
    }
}

/// Whether a request certainly was not acted on.
fn was_not_taken(error: &Failure) -> bool {
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

/// An error without the address in it, which may have a secret in it.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut source = error.source();
    let mut parts = Vec::new();
    while let Some(cause) = source {
        parts.push(cause.to_string());
        source = cause.source();
    }
    if parts.is_empty() {
        return if error.is_timeout() { "it took too long" } else { "the request failed" }
            .to_owned();
    }
    shorten(&parts.join(": "))
}

/// Why a conversation did not begin, if HTTP is why.
pub(super) fn explain(error: &(dyn Error + Send + Sync + 'static)) -> Option<StartError> {
    error.downcast_ref::<Failure>().map(explain_failure)
}

fn explain_failure(failure: &Failure) -> StartError {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest explains itself")]
    match failure {
        StreamableHttpError::Client(client) => StartError::new(describe(client))
            .with_hint("see that the server runs and that `url` is its endpoint"),
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            StartError::new("it wants authorization")
                .with_hint("set `headers.Authorization` of the server")
        }
        other => {
            let mut error = StartError::new(shorten(&other.to_string()));
            error.is_handshake = true;
            error
        }
    }
}
