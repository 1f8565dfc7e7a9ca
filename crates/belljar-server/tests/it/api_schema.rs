//! E3: the OpenAPI document is one, and the server keeps to it: schemathesis makes requests from it,
//! good and bad, alone and in sequence, and checks every answer. `scripts/http-tools` installs it.

use std::{path::PathBuf, process::Stdio};

use tokio::process::Command;

use crate::{
    api_support::FakeServer,
    http::{TOKEN, bearer, request},
};

/// Where the tools are. They have to be: a check that cannot be made has failed.
pub(crate) async fn tools() -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let script = format!("{root}/scripts/http-tools");
    let installed = Command::new(script).stdin(Stdio::null()).output().await.unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let elsewhere = std::env::var_os("BELLJAR_HTTP_TOOLS").map(PathBuf::from);
    elsewhere.unwrap_or_else(|| format!("{root}/target/http-tools").into()).join("venv/bin")
}

pub(crate) async fn check(command: &mut Command) {
    let done = command.stdin(Stdio::null()).output().await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn e3_the_document_is_openapi() {
    let (served, tools) = (FakeServer::start().await, tools().await);
    let document = served.get("GET /openapi.json", "").await;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("openapi.json");
    std::fs::write(&path, document.to_string()).unwrap();
    check(Command::new(tools.join("python")).args(["-m", "openapi_spec_validator"]).arg(&path))
        .await;
    // Control: it would notice.
    let broken = document.to_string().replace("\"operationId\"", "\"operation\"");
    std::fs::write(&path, broken.replace("\"responses\"", "\"answers\"")).unwrap();
    let noticed = Command::new(tools.join("python"))
        .args(["-m", "openapi_spec_validator"])
        .arg(&path)
        .output()
        .await
        .unwrap();
    assert!(!noticed.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_prometheus_reads_the_metrics() {
    let (served, tools) = (FakeServer::start().await, tools().await);
    served.get("POST /v1/runs", r#"{"code": "return 1"}"#).await;
    let bearer = bearer();
    let headers = [("Authorization", bearer.as_str())];
    let metrics = request(served.at(), "GET /metrics", &headers, "").await;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("metrics");
    std::fs::write(&path, metrics.body).unwrap();
    let program = "import sys\n\
        from prometheus_client.parser import text_string_to_metric_families as read\n\
        found = {family.name for family in read(open(sys.argv[1]).read())}\n\
        wanted = {'code_execution', 'code_execution_errors', 'code_execution_duration_ms',\n\
            'sandbox_startup_ms', 'code_execution_ms', 'sandbox_memory_mb',\n\
            'tools_injected_count', 'tool_discovery_ms', 'checkpoint_save_ms'}\n\
        sys.exit(f'missing: {wanted - found}' if wanted - found else 0)";
    check(Command::new(tools.join("python")).args(["-c", program]).arg(&path)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn e3_the_server_keeps_to_its_document() {
    let (served, tools) = (FakeServer::start().await, tools().await);
    let place = tempfile::tempdir().unwrap();
    let settings = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemathesis.toml");
    let mut command = Command::new(tools.join("st"));
    command
        .args(["--config-file", settings, "run", "--no-color", "--generation-deterministic"])
        .args(["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "10"])
        .args(["--request-timeout", "30", "--header"])
        .arg(format!("Authorization: Bearer {TOKEN}"))
        .arg(format!("http://{}/openapi.json", served.at()))
        .current_dir(place.path());
    check(&mut command).await;
}
