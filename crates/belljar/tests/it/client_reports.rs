//! Reports to clients of `belljar serve` about a run: progress, state, grants, measurements (E2, I1).

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{command::Place, stdio_support::StdioServer};

#[sandboxed]
#[test]
fn bug_7_progress_carries_what_the_code_prints() {
    let place = Place::new();
    let mut server = StdioServer::start(&place);
    let code = "const pause = () => new Promise((done) => setTimeout(done, 400));
        console.log('first step'); await pause();
        for (let n = 0; n < 1000; n++) console.log('flood ' + n);
        await pause(); console.log('x'.repeat(1000)); await pause(); return 7";
    let asked = json!({
        "name": "execute_code", "arguments": {"code": code}, "_meta": {"progressToken": "p"},
    });
    let (heard, answer) = server.ask_and_hear("tools/call", asked);
    assert_eq!(answer["result"]["structuredContent"]["result"], 7, "{answer:#}");
    let messages: Vec<&str> =
        heard.iter().filter_map(|one| one["params"]["message"].as_str()).collect();
    for wanted in ["first step", "flood 999", &"x".repeat(200)] {
        assert!(messages.contains(&wanted), "{wanted}: {messages:?}");
    }
    assert!(messages.len() < 20, "a flood is not passed on: {}", messages.len());
    // Control: who does not ask for progress hears nothing.
    let asked = json!({"name": "execute_code", "arguments": {"code": "console.log('x')"}});
    assert_eq!(server.ask_and_hear("tools/call", asked).0, Vec::<Value>::new());
    server.end();
}

#[sandboxed]
#[test]
fn a9_e2_state_reaches_clients() {
    let place = Place::new();
    let mut server = StdioServer::start(&place);
    let answer = server.call("execute_code", json!({"code": "state = {done: false, left: null}"}));
    assert_eq!(answer["state"], json!({"done": false, "left": null}), "{answer:#}");
    let answer = server.call("execute_code", json!({"code": "return 1"}));
    assert_eq!(answer.get("state"), None, "{answer:#}");
    server.end();
    let result = place.belljar(&["run", "--json", "-c", "state.x = 1"]).json();
    assert_eq!(result["state"], json!({"x": 1}));
}

#[sandboxed]
#[test]
fn bug_10_allow_write_means_what_the_operator_allows() {
    let place = Place::new();
    place.file("data/in.txt", "seen");
    let data = place.path().join("data");
    let data = data.to_str().unwrap();
    let code = format!(
        "fs.writeFileSync('{data}/out.txt', fs.readFileSync('{data}/in.txt', 'utf8')); return 1"
    );
    let asked = |config: Value| json!({"code": &code, "sandbox_config": config});
    let mut server = StdioServer::start_with(&place, &["--write", data]);
    let answer = server.call("execute_code", asked(json!({"allowWrite": true})));
    assert_eq!(answer["result"], 1, "{answer:#}");
    assert_eq!(std::fs::read_to_string(format!("{data}/out.txt")).unwrap(), "seen");
    // Control: nothing is granted that was not asked for.
    let answer = server.call("execute_code", asked(json!({})));
    assert_eq!(answer["status"], "failed", "{answer:#}");
    server.end();
    let read = json!({
        "code": format!("return fs.readFileSync('{data}/in.txt', 'utf8')"),
        "sandbox_config": {"allowedReadPaths": true},
    });
    let mut server = StdioServer::start_with(&place, &["--read", data]);
    assert_eq!(server.call("execute_code", read)["result"], "seen");
    let refused = server.call("execute_code", asked(json!({"allowWrite": true})));
    assert_eq!(refused["error"]["code"], "permission.file", "{refused:#}");
    server.end();
}
