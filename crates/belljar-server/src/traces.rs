//! Traces for OpenTelemetry (I1): a span for each request, run and tool call, sent to a collector
//! as OTLP over HTTP, in JSON. The protocol's own crates bring a dependency tree many times the
//! size of this file.
//!
//! Sending never delays anything else: spans that do not fit the queue, or that the collector does
//! not take, are dropped and counted in the log. Spans never hold code, arguments, values or
//! output.

mod span;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

pub(crate) use span::{Span, SpanKind, TraceContext};

/// The most spans that wait to be sent.
const QUEUE: usize = 4_096;
/// The most spans sent at once, and how long to wait for more of them.
const BATCH: usize = 512;
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// How long the collector may take to answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The OpenTelemetry collector that receives traces.
#[derive(Debug, Clone)]
pub struct TraceCollector {
    /// The full URL, such as `http://localhost:4318/v1/traces`.
    pub url: String,
    /// Headers to send with each request.
    pub headers: Vec<(String, String)>,
    /// The `service.name` of this server's spans.
    pub service: String,
}

/// Sends spans. Clones share one queue.
#[derive(Debug, Clone)]
pub struct Traces {
    queue: mpsc::Sender<QueueItem>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum QueueItem {
    Span(Box<Span>),
    /// Notified when everything before it was sent.
    Flush(oneshot::Sender<()>),
}

impl Traces {
    /// Starts sending. Needs a running tokio runtime.
    pub fn to(collector: TraceCollector) -> Self {
        let (queue, queued) = mpsc::channel(QUEUE);
        let dropped = Arc::<AtomicU64>::default();
        tokio::spawn(send_all(collector, queued, dropped.clone()));
        Self { queue, dropped }
    }

    pub(crate) fn send(&self, span: Span) {
        if self.queue.try_send(QueueItem::Span(Box::new(span))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for a limited time until all queued spans are sent.
    pub async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        let flush = async {
            if self.queue.send(QueueItem::Flush(done)).await.is_ok() {
                let _ = sent.await;
            }
        };
        let _ = timeout(SEND_TIMEOUT, flush).await;
    }
}

async fn send_all(
    collector: TraceCollector,
    mut queued: mpsc::Receiver<QueueItem>,
    dropped: Arc<AtomicU64>,
) {
    let client = reqwest::Client::new();
    while let Some(first) = queued.recv().await {
        let (mut spans, mut flushed) = (Vec::new(), Vec::new());
        let until = Instant::now() + BATCH_DELAY;
        let mut next = Some(first);
        while let Some(one) = next.take() {
            match one {
                QueueItem::Span(span) => spans.push(span.to_json()),
                QueueItem::Flush(done) => flushed.push(done),
            }
            if spans.len() >= BATCH || !flushed.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                one = queued.recv() => next = one,
                () = sleep_until(until) => {}
            }
        }
        let count = spans.len() as u64;
        if count > 0 && !post(&client, &collector, spans).await {
            dropped.fetch_add(count, Ordering::Relaxed);
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(lost, "dropped spans that the collector did not take");
        }
        for done in flushed {
            let _ = done.send(());
        }
    }
}

async fn post(client: &reqwest::Client, collector: &TraceCollector, spans: Vec<Value>) -> bool {
    let body = export_request(&collector.service, spans).to_string();
    let mut post = client
        .post(&collector.url)
        .header("content-type", "application/json")
        .timeout(SEND_TIMEOUT)
        .body(body);
    for (name, value) in &collector.headers {
        post = post.header(name, value);
    }
    match post.send().await {
        Ok(answer) => answer.status().is_success(),
        Err(error) => {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "cannot send spans to the collector"
            );
            false
        }
    }
}

/// The body of an OTLP `ExportTraceServiceRequest`.
fn export_request(service: &str, spans: Vec<Value>) -> Value {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let version = env!("CARGO_PKG_VERSION");
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            text("service.name", service), text("service.version", version),
        ] },
        "scopeSpans": [{ "scope": { "name": "belljar", "version": version }, "spans": spans }],
    }] })
}
