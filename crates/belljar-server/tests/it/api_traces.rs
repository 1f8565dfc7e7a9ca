//! I1: requests, runs and tool calls as spans of one trace, as OpenTelemetry's own messages have it.

use std::{sync::Arc, time::Duration};

use belljar_contract::{RunResult, RunStatus};
use belljar_server::{Gateway, HttpLimits, ServerOptions, TaskMeasurement, TraceCollector, Traces};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    process::Command,
};

use crate::{
    api_schema::{check, tools},
    api_support::FakeServer,
    fake::FakeBackend,
    http::{bearer, request},
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector that takes one export: its head, and what was sent.
async fn collect(listener: TcpListener) -> (String, String) {
    let mut stream = BufReader::new(listener.accept().await.unwrap().0);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let line = line.to_lowercase();
        if let Some(text) = line.strip_prefix("content-length: ") {
            length = text.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().unwrap();
    &all.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("{key}: {span}"))["value"]
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_request_its_run_and_its_calls_are_one_trace() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let headers = vec![("x-key".to_owned(), "k".to_owned())];
    let traces = Traces::to(TraceCollector { url, headers, service: "tested".to_owned() });
    let options = ServerOptions { traces: Some(traces.clone()), ..ServerOptions::default() };
    let served = FakeServer::serving(HttpLimits::default(), options).await;
    let collected = tokio::spawn(collect(listener));
    let bearer = bearer();
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Traceparent", PARENT),
    ];
    let secret = json!({"code": "say secret", "context": {"password": "secret"}}).to_string();
    let answer = request(served.at(), "POST /v1/runs", &headers, &secret).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    traces.flush().await;
    let (head, body) = collected.await.unwrap();
    assert!(head.starts_with("post /v1/traces ") && head.contains("x-key: k"), "{head}");
    assert!(!body.contains("secret") && !body.contains(&bearer[7..]), "{body}");

    let sent: Value = serde_json::from_str(&body).unwrap();
    let sent = &sent["resourceSpans"][0];
    assert_eq!(sent["resource"]["attributes"][0]["value"]["stringValue"], "tested");
    let spans = sent["scopeSpans"][0]["spans"].as_array().unwrap();
    let named = |name: &str| spans.iter().find(|span| span["name"] == name).expect(name);
    let (asked, run) = (named("POST /v1/runs"), named("run"));
    let call = named("tool files__read");
    for span in [asked, run, call] {
        assert_eq!(span["traceId"], "0af7651916cd43dd8448eb211c80319c", "{span}");
    }
    assert_eq!(asked["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(run["parentSpanId"], asked["spanId"]);
    assert_eq!(call["parentSpanId"], run["spanId"]);
    assert_eq!(attribute(asked, "http.response.status_code"), &json!({"intValue": "200"}));
    assert_eq!(attribute(run, "belljar.run.status"), &json!({"stringValue": "completed"}));

    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("export.json");
    std::fs::write(&path, &body).unwrap();
    let program = "import sys\n\
        from google.protobuf.json_format import Parse\n\
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest\n\
        Parse(open(sys.argv[1]).read(), ExportTraceServiceRequest())";
    check(Command::new(tools().await.join("python")).args(["-c", program]).arg(&path)).await;
}

/// Bug 5: what a workflow does is in the traces, all of it in one.
#[tokio::test(flavor = "multi_thread")]
async fn bug_5_tasks_and_runs_of_a_workflow_are_spans_of_one_trace() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let traces =
        Traces::to(TraceCollector { url, headers: Vec::new(), service: "tested".to_owned() });
    let options = ServerOptions { traces: Some(traces.clone()), ..ServerOptions::default() };
    let fake = Arc::new(FakeBackend::default());
    let _gateway = Gateway::new(Arc::clone(&fake), options);
    let collected = tokio::spawn(collect(listener));
    let meter = fake.meter.get().unwrap();
    let task = |task, failure| TaskMeasurement {
        workflow: "flow_1",
        task,
        kind: "code_execution",
        attempt: 1,
        failure,
        took: Duration::from_millis(3),
    };
    let run =
        RunResult { id: "run_1".into(), status: RunStatus::Completed, ..RunResult::default() };
    meter.ran(&run, Duration::from_millis(2), "flow_1");
    meter.performed(task("a", None));
    meter.performed(task("b", Some("runtime.thrown")));
    traces.flush().await;
    let sent: Value = serde_json::from_str(&collected.await.unwrap().1).unwrap();
    let spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<&str> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(names, ["run", "task", "task"]);
    assert!(spans.iter().all(|span| span["traceId"] == spans[0]["traceId"]), "{spans:#?}");
    assert_eq!(attribute(&spans[1], "belljar.workflow.id"), &json!({"stringValue": "flow_1"}));
    assert_eq!(attribute(&spans[2], "error.type"), &json!({"stringValue": "runtime.thrown"}));
    let codes: Vec<&Value> = spans.iter().map(|span| &span["status"]["code"]).collect();
    assert_eq!(codes[1..], [&json!(1), &json!(2)]);
}

/// A collector that is not there holds nothing up.
#[tokio::test(flavor = "multi_thread")]
async fn i1_traces_that_reach_nobody_are_dropped() {
    let url = "http://127.0.0.1:1/v1/traces".to_owned();
    let traces =
        Traces::to(TraceCollector { url, headers: Vec::new(), service: "tested".to_owned() });
    let options = ServerOptions { traces: Some(traces.clone()), ..ServerOptions::default() };
    let served = FakeServer::serving(HttpLimits::default(), options).await;
    let run = served.get("POST /v1/runs", r#"{"code": "return 1"}"#).await;
    assert_eq!(run["result"], 1);
    traces.flush().await;
}
