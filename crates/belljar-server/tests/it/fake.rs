//! A backend that runs nothing: the code says what the run should do.
//!
//! `return JSON`, `fail`, `lines N`, `say TEXT`, `flood`, `wait` (until it is aborted), `sleep` (for ever), `ask`, `ask twice` and `ask then
//! sleep` (a call of `files__delete`, or two, that a person must allow). Also used by `examples/fake.rs`.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use belljar_contract::{
    ApprovalId, ApprovalKind, ConsentScope, ExecuteRequest, RunId, Stream, Verdict,
    decision_command,
};
use belljar_server::{
    ApprovalRequest, Backend, BackgroundMeter, DecisionFault, DecisionRefusal, DecisionReport,
    EventInfo, MissingServer, PassThrough, RunReport, RunReporter, SearchError, ToolMatch,
    ToolsFound,
};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, oneshot};

use crate::{fake_sessions::AllSessions, fake_workflows::AllWorkflows};

#[derive(Debug, Default)]
pub(crate) struct FakeBackend {
    pub(crate) next: AtomicU32,
    pub(crate) open: Mutex<HashMap<String, oneshot::Sender<Verdict>>>,
    /// Every decision that counted.
    pub(crate) decided: Mutex<Vec<(String, Verdict, String)>>,
    /// Runs that were dropped before they ended.
    pub(crate) dropped: Arc<Notify>,
    /// Signalled when a run sleeps.
    pub(crate) asleep: Notify,
    /// Runs that some other process has, with how they stand.
    pub(crate) stored: Mutex<HashMap<String, RunReport>>,
    pub(crate) passed: Vec<PassThrough>,
    pub(crate) requests: Mutex<Vec<ExecuteRequest>>,
    pub(crate) sessions: AllSessions,
    pub(crate) workflows: AllWorkflows,
    /// Whether the operator switched workflows off.
    pub(crate) no_workflows: bool,
    /// Approvals that are open.
    pub(crate) asked: Mutex<Vec<ApprovalRequest>>,
    pub(crate) events: Mutex<Vec<EventInfo>>,
    /// The meter of the gateway.
    pub(crate) meter: OnceLock<BackgroundMeter>,
}

struct TellDrop(Option<Arc<Notify>>);

impl Drop for TellDrop {
    fn drop(&mut self) {
        if let Some(dropped) = &self.0 {
            dropped.notify_one();
        }
    }
}

/// The report of a run with this result; fields that are left out have their defaults.
pub(crate) fn report(result: &Value) -> RunReport {
    RunReport::ended(serde_json::from_str(&result.to_string()).expect("a result"))
}

pub(crate) fn ended(id: &str, result: Value) -> Value {
    json!({
        "id": id, "status": "completed", "success": true, "result": result, "stdout": "",
        "logs": [], "error": null, "metrics": {"executionTimeMs": 1.0, "toolCalls": 0},
    })
}

fn failed(id: &str, kind: &str, code: &str) -> Value {
    let error = json!({"type": kind, "code": code, "message": code, "line": 1});
    json!({
        "id": id, "status": "failed", "success": false, "result": null, "logs": ["before"],
        "error": error, "metrics": {"executionTimeMs": 1.0},
    })
}

impl FakeBackend {
    async fn ask(&self, run: &str, observer: &RunReporter) -> Verdict {
        self.ask_within(run, observer, &[]).await
    }

    async fn ask_within(
        &self,
        run: &str,
        observer: &RunReporter,
        scopes: &[ConsentScope],
    ) -> Verdict {
        let (id, path) = {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            (format!("ap_{number}"), format!("/tmp/{number}"))
        };
        let (sender, receiver) = oneshot::channel();
        self.open.lock().unwrap().insert(id.clone(), sender);
        let request = ApprovalRequest {
            id: id.clone().into(),
            kind: ApprovalKind::Call,
            message: ApprovalKind::Call.message(),
            tool: "files__delete".into(),
            arguments: json!({"path": path}),
            run_id: run.into(),
            line: Some(1),
            code_line: Some("await mcp.files.delete({path})".into()),
            expires_ms: None,
            scopes: scopes.to_vec(),
            project: Some("/srv/project".to_owned()),
            state_dir: None,
            command: decision_command("approve", &id, Some("/srv/project"), None),
        };
        self.asked.lock().unwrap().push(request.clone());
        observer.approval(request);
        let verdict = receiver.await.unwrap_or(Verdict::Deny);
        self.asked.lock().unwrap().retain(|one| one.id != *id);
        observer.settled(&id.as_str().into());
        verdict
    }

    /// A run that asks a person, in one of several ways.
    async fn asking(&self, run: &str, how: &str, observer: &RunReporter) -> Value {
        match how {
            "twice" => match tokio::join!(self.ask(run, observer), self.ask(run, observer)) {
                (Verdict::Approve, Verdict::Approve) => ended(run, json!("deleted twice")),
                _ => failed(run, "PermissionError", "approval.denied"),
            },
            "wider" => match self.ask_within(run, observer, &ConsentScope::ALL).await {
                Verdict::ApproveRule(rule) => ended(run, json!(rule.scope.as_str())),
                Verdict::Approve => ended(run, json!("once")),
                Verdict::Deny | Verdict::Retry | Verdict::Use(_) => {
                    failed(run, "PermissionError", "approval.denied")
                }
            },
            "again" => {
                for _ in 0..2 {
                    if self.ask(run, observer).await != Verdict::Approve {
                        return failed(run, "PermissionError", "approval.denied");
                    }
                }
                ended(run, json!("deleted two"))
            }
            _ => match self.ask(run, observer).await {
                Verdict::Approve => ended(run, json!("deleted")),
                Verdict::ApproveRule(_) | Verdict::Deny | Verdict::Retry | Verdict::Use(_) => {
                    failed(run, "PermissionError", "approval.denied")
                }
            },
        }
    }

    pub(crate) async fn run(&self, run: &str, code: &str, observer: &RunReporter) -> Value {
        match code.split_once(' ').unwrap_or((code, "")) {
            ("return", value) => ended(run, serde_json::from_str(value).unwrap()),
            ("lines", count) => {
                for line in 0..count.parse().unwrap() {
                    observer.line(&format!("line {line}"));
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                ended(run, json!("said"))
            }
            ("say", text) => {
                for (stream, more) in [(Stream::Stdout, "out"), (Stream::Stderr, "err")] {
                    observer.printed(stream, &format!("{text} {more}\n"));
                }
                observer.printed(Stream::Log, "[blocked] something");
                observer.call_began("files__read");
                observer.call_ended("files__read", true, Duration::from_millis(3));
                ended(run, json!("said"))
            }
            ("flood", _) => {
                for _ in 0..6 {
                    observer.printed(Stream::Stdout, &"x".repeat(1 << 20));
                }
                ended(run, json!("flooded"))
            }
            // Ends when it is told to, and says how far it came.
            ("wait", _) => {
                observer.printed(Stream::Stdout, "waiting");
                self.asleep.notify_one();
                observer.aborted().await;
                let mut aborted = failed(run, "SandboxError", "run.aborted");
                aborted["status"] = json!("aborted");
                aborted["stdout"] = json!("waiting");
                aborted
            }
            ("sleep", _) => {
                self.asleep.notify_one();
                std::future::pending().await
            }
            ("ask", "then sleep") => {
                self.ask(run, observer).await;
                self.asleep.notify_one();
                std::future::pending().await
            }
            ("ask", how) => self.asking(run, how, observer).await,
            ("panic", _) => panic!("as asked"),
            _ => failed(run, "RuntimeError", "runtime.thrown"),
        }
    }
}

fn fault(fault: DecisionFault, id: &ApprovalId) -> DecisionRefusal {
    DecisionRefusal { fault, message: format!("approval {id}: {fault:?}") }
}

impl Backend for FakeBackend {
    fn measure_with(&self, meter: BackgroundMeter) {
        let _ = self.meter.set(meter);
    }

    async fn execute(&self, request: ExecuteRequest, observer: RunReporter) -> RunReport {
        let run = format!("run_{}", self.next.fetch_add(1, Ordering::SeqCst));
        let mut tell = TellDrop(Some(self.dropped.clone()));
        observer.started(&run.as_str().into());
        let code = request.code.clone();
        self.requests.lock().unwrap().push(request);
        let value = self.run(&run, &code, &observer).await;
        tell.0 = None;
        report(&value)
    }

    async fn decide(
        &self,
        id: &ApprovalId,
        verdict: Verdict,
        by: &str,
    ) -> Result<DecisionReport, DecisionRefusal> {
        let stored = self.stored.lock().unwrap().values_mut().find_map(|stored| {
            let waits = stored.waiting.iter().any(|one| one.id == *id);
            waits.then(|| *stored = report(&ended("run_stored", json!("resumed"))))
        });
        let sender = self.open.lock().unwrap().remove(id.as_str());
        if stored.is_none() {
            let sender = sender.ok_or_else(|| fault(DecisionFault::Unknown, id))?;
            sender.send(verdict.clone()).map_err(|_| fault(DecisionFault::Settled, id))?;
        }
        self.decided.lock().unwrap().push((id.to_string(), verdict, by.to_owned()));
        Ok(DecisionReport::default())
    }

    async fn search_tools(&self, intent: &str, k: u32) -> Result<ToolsFound, SearchError> {
        if intent == "fail" {
            return Err(SearchError { message: "no server answers".into() });
        }
        let found = ToolMatch {
            name: "files__read".into(),
            call: "mcp.files.read({path: string}): Promise<string>".into(),
            description: format!("{intent} ({k})"),
        };
        let gone = MissingServer { server: "gone".into(), reason: "it hangs".into() };
        let missing = if intent == "miss" { vec![gone] } else { Vec::new() };
        Ok(ToolsFound { tools: vec![found], missing })
    }

    async fn get_run(&self, run_id: &RunId, _wait: Duration) -> Option<RunReport> {
        self.stored.lock().unwrap().get(run_id.as_str()).cloned()
    }

    fn pass_through(&self) -> Vec<PassThrough> {
        self.passed.clone()
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        observer: RunReporter,
    ) -> Value {
        if name.ends_with("delete") && self.ask("run_passed", &observer).await == Verdict::Deny {
            return json!({"content": [{"type": "text", "text": "denied"}], "isError": true});
        }
        let text = json!({"called": name, "arguments": arguments}).to_string();
        json!({"content": [{"type": "text", "text": text}], "structuredContent": {"n": 1}})
    }
}

/// A tool to pass through.
pub(crate) fn passed(name: &str) -> PassThrough {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    PassThrough {
        name: name.to_owned(),
        title: Some("Read".into()),
        description: Some("reads".into()),
        input_schema: schema.as_object().cloned().unwrap_or_default(),
        output_schema: json!({"type": "object"}).as_object().cloned(),
        annotations: Some(json!({"readOnlyHint": true})),
    }
}
