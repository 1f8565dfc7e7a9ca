//! S2, S12: what a person is asked about is what is sent, and asking gives code no time.
//!
//! The code here does not use the library it was given for calls: it writes frames itself, as any
//! code can that knows the protocol.

use std::time::{Duration, Instant};

use belljar_contract::{ErrorCode, Language, RunRequest};
use belljar_contract::{Verdict, hex};
use belljar_project::Execution;
use belljar_store::{Approval, Approvals, AuditFilter};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::executor_support::{Project, block_on};

/// Sends calls past the library, and reads their answers.
const FRAMES: &str = r#"
import json, os, stat, struct
def is_socket(fd):
    try: return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError: return False
fd = next(fd for fd in range(3, 100) if is_socket(fd))
def send(number, tool, arguments):
    head = json.dumps({"call": number, "server": "test", "tool": tool, "line": 1}).encode()
    body = arguments.encode()
    os.write(fd, struct.pack("<B3xII", 72, len(head), len(body)) + head + body)
def read(count):
    data = b""
    while len(data) < count:
        data += os.read(fd, count - len(data))
    return data
def answer():
    _, head, body = struct.unpack("<B3xII", read(12))
    head, body = json.loads(read(head)), json.loads(read(body))
    return body if head["ok"] else body["code"]
"#;

fn program(rest: &str) -> RunRequest {
    RunRequest::new(Language::Python, format!("{FRAMES}{rest}"))
}

/// The approval that waits, once it does.
async fn waiting(project: &Project) -> Approval {
    loop {
        let found =
            project.store.approvals(Approvals::Pending, belljar_project::now_ms()).await.unwrap();
        match found.into_iter().next() {
            Some(approval) => return approval,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

fn asks() -> Value {
    json!({ "ask": ["test__note"] })
}

#[test]
fn s2_arguments_with_a_key_twice_are_never_asked_about_and_never_sent() {
    block_on(async {
        let project = Project::new(asks()).await;
        for arguments in [
            r#"{"text":"harmless","text":"/home/op/.ssh/id_rsa"}"#,
            r#"{"text":"harmless","t\u0065xt":"/home/op/.ssh/id_rsa"}"#,
            // The library reads this one in two ways.
            r#"{"$serde_json::private::RawValue":"{}","text":"/home/op/.ssh/id_rsa"}"#,
            r#"{"$serde_json::private::RawValue":"{\"text\":\"harmless\"}"}"#,
        ] {
            let code = format!("send(1, 'note', {arguments:?})\nanswer()");
            let result = project.execute(Execution::new(program(&code), "test")).await;
            assert_eq!((result.error, result.result.get()), (None, r#""tool.arguments""#));
        }
        let asked =
            project.store.approvals(Approvals::All, belljar_project::now_ms()).await.unwrap();
        assert_eq!((asked, project.effects.list()), (Vec::new(), Vec::new()));
        project.executor.shutdown().await;
    });
}

#[test]
fn s2_one_form_of_the_arguments_is_shown_hashed_and_sent() {
    block_on(async {
        let project = Project::new(asks()).await;
        // Control of the test above: the same frame without the second key is asked about and sent.
        let code = "send(1, 'note', '{ \"text\" : \"h\\\\u00e4rmless\" }')\nanswer()";
        let deciding = async {
            let approval = waiting(&project).await;
            let id = &approval.asked.id;
            let decided =
                project.store.decide(id, Verdict::Approve, "a person", belljar_project::now_ms());
            decided.await.unwrap();
            approval
        };
        let execution = Execution::new(program(code), "test");
        let (result, approval) = tokio::join!(project.execute(execution), deciding);
        assert_eq!(approval.asked.arguments, r#"{"text":"härmless"}"#);
        assert_eq!(result.result.get(), r#"{"noted":"härmless"}"#, "{:?}", result.error);
        assert_eq!(project.effects.list(), ["härmless"]);
        project.store.flush().await.unwrap();
        let rows = project.store.audit_rows(AuditFilter::default(), 1).await.unwrap();
        let digest = Sha256::digest(approval.asked.arguments.as_bytes());
        let hex = hex::encode(&digest);
        assert_eq!(rows[0].argument_hash, hex);
        project.executor.shutdown().await;
    });
}

#[test]
fn s12_code_that_goes_on_while_a_person_is_asked_runs_out_of_time() {
    block_on(async {
        let project = Project::new(asks()).await;
        let code = "
import signal
signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
send(1, 'note', '{\"text\":\"x\"}')
while True: pass
";
        let mut request = program(code);
        request.limits.timeout = Duration::from_millis(500);
        request.limits.cpu = Duration::from_secs(60);
        let began = Instant::now();
        let result = project.execute(Execution::new(request, "test")).await;
        let error = result.error.expect("it is ended");
        // Before the question expires, and its clock would run again in any case.
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        assert_eq!(error.code, ErrorCode::LimitTimeout, "{}", error.message);
        assert_eq!(project.effects.list(), Vec::<String>::new());
        project.executor.shutdown().await;
    });
}
