//! The collector of traces, from OpenTelemetry's environment variables.

#[cfg(test)]
mod tests;

use std::env;

use anyhow::bail;
use belljar_server::TraceCollector;

/// The collector, if one is configured.
pub(super) fn collector() -> anyhow::Result<Option<TraceCollector>> {
    from(|name| env::var(name).ok().filter(|value| !value.is_empty()))
}

fn from(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<TraceCollector>> {
    let of_traces = |name: &str| {
        variable(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
            .or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
    };
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let url = match variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        Some(url) => url,
        None => match variable("OTEL_EXPORTER_OTLP_ENDPOINT") {
            Some(base) => format!("{}/v1/traces", base.trim_end_matches('/')),
            None => return Ok(None),
        },
    };
    if let Some(protocol) = of_traces("PROTOCOL").filter(|protocol| !protocol.starts_with("http/"))
    {
        bail!("OTEL_EXPORTER_OTLP_PROTOCOL: {protocol} is not supported, only http/json");
    }
    let headers = of_traces("HEADERS").unwrap_or_default();
    let headers = headers.split(',').filter_map(|header| header.split_once('='));
    let headers = headers.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    let service = variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "belljar".to_owned());
    Ok(Some(TraceCollector { url, headers: headers.collect(), service }))
}
