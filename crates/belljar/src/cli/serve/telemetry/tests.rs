//! Traces go where the variables say, and nowhere else.

use super::*;

fn given(variables: &[(&str, &str)]) -> anyhow::Result<Option<TraceCollector>> {
    from(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn i1_traces_go_where_they_are_sent() {
    assert!(given(&[]).is_ok_and(|collector| collector.is_none()));
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/");
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "a=1, b=x=y");
    let collector = given(&[base, headers, ("OTEL_SERVICE_NAME", "mine")]).ok().flatten();
    let collector = collector.expect("one is configured");
    assert_eq!(collector.url, "http://localhost:4318/v1/traces");
    let wanted = [("a", "1"), ("b", "x=y")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(collector.headers, wanted);
    assert_eq!(collector.service, "mine");
    assert!(given(&[base, ("OTEL_SDK_DISABLED", "true")]).is_ok_and(|none| none.is_none()));
    assert!(given(&[base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).is_err());
    let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://x/y");
    assert_eq!(given(&[base, whole]).ok().flatten().expect("one is configured").url, "http://x/y");
}
