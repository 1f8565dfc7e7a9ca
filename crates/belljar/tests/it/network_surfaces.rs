//! A5, E2, F8, N1: granted hosts on every surface: what asks, what the operator allows, who is asked.
//! Each refusal has a control that reaches a server.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::{BELLJAR, Place, outcome},
    mcp_support::{serve_in, within},
    network_session_support::Website,
    project_support::CountingProject,
    stdio_support::StdioServer,
};

const USER_FILE: &str = ".config/belljar/belljar.toml";
/// Nothing listens there: connections to it are refused before anybody looks.
const ELSEWHERE: &str = "127.0.0.1:9";

/// A server that answers each request with its path and counts them. A request for `/held` is answered
/// when the test says so.
struct Server {
    address: String,
    served: Arc<AtomicU32>,
    release: mpsc::Sender<()>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let served = Arc::new(AtomicU32::new(0));
        let (release, released) = mpsc::channel();
        let count = served.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away ends its own connection only.
                let _ = answer(stream, &count, &released);
            }
        });
        Self { address, served, release }
    }

    fn served(&self) -> u32 {
        self.served.load(Ordering::SeqCst)
    }
}

fn answer(
    mut stream: TcpStream,
    count: &AtomicU32,
    released: &mpsc::Receiver<()>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut line) = (String::new(), String::new());
    reader.read_line(&mut first)?;
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    count.fetch_add(1, Ordering::SeqCst);
    let path = first.split(' ').nth(1).unwrap_or_default();
    if path == "/held" {
        let _ = released.recv();
    }
    let length = path.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{path}")
}

/// Python that gets a path of a server, or the status of the refusal.
fn get(address: &str, path: &str) -> String {
    format!(
        "import urllib.request, urllib.error\n\
         def get():\n\
         \x20   try: return urllib.request.urlopen('http://{address}{path}').read().decode()\n\
         \x20   except urllib.error.HTTPError as error: return error.code\n\
         \x20   except OSError as error: return 'no network'\n\
         get()"
    )
}

fn run(place: &Place, code: &str, more: &[&str]) -> Value {
    place.belljar(&[&["run", "--json", "-l", "python", "-c", code], more].concat()).json()
}

/// Fails unless the request was refused with a hint that names flag and key.
fn assert_refused(error: &Value, host: &str) {
    assert_eq!(error["code"], "permission.network", "{error:#}");
    let hint = error["hint"].as_str().unwrap_or_default();
    for words in
        [format!("`belljar serve --net {host}`"), format!("`allow = [\"{host}\"]`"), "[net]".into()]
    {
        assert!(hint.contains(&words), "{words}: {error:#}");
    }
}

#[sandboxed]
#[test]
fn n1_the_files_narrow_what_flags_allow() {
    let (open, closed) = (Server::start(), Server::start());
    let place = Place::new();
    let flags = ["--net", &open.address, "--net", &closed.address];
    let both = |place: &Place| {
        let of =
            |server: &Server| run(place, &get(&server.address, "/x"), &flags)["result"].clone();
        (of(&open), of(&closed))
    };
    assert_eq!(both(&place), (json!("/x"), json!("/x")));
    place.file(USER_FILE, format!("[net]\ndeny = ['{}']\n", closed.address));
    assert_eq!(both(&place), (json!("/x"), json!(403)));
    place.file(USER_FILE, "");
    place.file("work/belljar.toml", format!("[net]\ndeny = ['{}']\n", closed.address));
    assert_eq!(both(&place), (json!("/x"), json!(403)));
    // A host that a project omits from its list is no host of the run.
    place.file("work/belljar.toml", format!("[net]\nallow = ['{}']\n", open.address));
    let refused = run(&place, &get(&closed.address, "/x"), &["--net", &closed.address]);
    assert_eq!(refused["error"]["code"], "permission.network", "{refused:#}");
    let hint = refused["error"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("belljar.toml narrows"), "{hint}");
    assert_eq!(run(&place, &get(&open.address, "/x"), &["--net", &open.address])["result"], "/x");
    // A file alone gives no run a network.
    place.file("work/belljar.toml", "");
    place.file(USER_FILE, format!("[net]\nallow = ['{}']\n", open.address));
    assert_eq!(run(&place, &get(&open.address, "/x"), &[])["result"], "no network");
    assert_eq!((open.served(), closed.served()), (4, 1));
}

#[sandboxed]
#[test]
fn e2_mcp_clients_reach_what_the_operator_allows() {
    let (own, other) = (Server::start(), Server::start());
    let place = Place::new();
    place.file(USER_FILE, format!("[net]\nallow = ['{}']\n", own.address));
    let mut server = StdioServer::start_with(&place, &["--net", &other.address]);
    let mut ask = |code: &str, fields: Value| {
        let mut arguments = json!({"language": "python", "code": code});
        let more = fields.as_object().expect("fields").clone();
        arguments.as_object_mut().expect("fields").extend(more);
        server.call("execute_code", arguments)
    };
    let code = get(&own.address, "/x");
    for fields in [
        json!({"network": true}),
        json!({"network": [own.address]}),
        json!({"network": own.address}),
        json!({"network": format!("[\"{}\"]", own.address)}),
        json!({"sandbox_config": {"allowNetwork": true}}),
        json!({"sandbox_config": {"allowNetwork": [own.address]}}),
    ] {
        let answer = ask(&code, fields.clone());
        assert_eq!(answer["result"], "/x", "{fields}: {answer:#}");
    }
    // A list grants what is in it and no more.
    let answer = ask(&code, json!({"network": [other.address]}));
    assert_eq!(answer["result"], 403, "{answer:#}");
    for fields in [json!({"network": []}), json!({"network": false}), json!({})] {
        let answer = ask(&code, fields.clone());
        assert_eq!(answer["result"], "no network", "{fields}: {answer:#}");
    }
    let refused = ask(&code, json!({"network": [own.address, ELSEWHERE]}));
    assert_refused(&refused["error"], ELSEWHERE);
    assert_eq!(own.served(), 6);
    server.end();
    // Without a word of the operator there is nothing to ask for.
    place.file(USER_FILE, "");
    let mut strict = StdioServer::start_with(&place, &[]);
    let arguments = json!({"language": "python", "code": code, "network": true});
    assert_refused(&strict.call("execute_code", arguments)["error"], "HOST");
    strict.end();
}

#[sandboxed]
#[test]
fn a5_http_clients_reach_what_the_operator_allows() {
    let (own, narrowed) = (Server::start(), Server::start());
    let place = Place::new();
    place.file(USER_FILE, format!("[net]\nallow = ['{}', '{}']\n", own.address, narrowed.address));
    place.file("work/belljar.toml", format!("[net]\nallow = ['{}', '{ELSEWHERE}']\n", own.address));
    let server = serve_in(&place, &[]);
    let request = |code: &str, net: Value| json!({"language": "python", "code": code, "grants": {"net": net}});
    let code = get(&own.address, "/x");
    let answer = server.ask("POST /v1/runs", &request(&code, json!([own.address])));
    assert_eq!(answer["result"], "/x", "{answer:#}");
    for host in [ELSEWHERE, &narrowed.address] {
        let refused = server.refused_run("POST /v1/runs", &request(&code, json!([host])), 403);
        assert_refused(&refused, host);
    }
    let answer = server.ask("POST /v1/runs", &request(&code, json!([])));
    assert_eq!(answer["result"], "no network", "{answer:#}");
    let blocked = server.ask("POST /v1/runs", &request(&get(ELSEWHERE, "/"), json!([own.address])));
    assert_eq!(blocked["result"], 403, "{blocked:#}");
    let log = std::fs::read_to_string(place.path().join("serve.log")).expect("a log");
    assert!(log.contains(&format!("net.allow: {ELSEWHERE} does not count")), "{log}");
    // Connections by decision, and their bytes.
    let metrics = server.api("GET /metrics", "").body;
    for line in ["{decision=\"allow\"} 1", "{decision=\"deny\"} 1"] {
        assert!(metrics.contains(&format!("network_connections_total{line}")), "{metrics}");
    }
    let sent =
        metrics.lines().find(|line| line.contains("network_bytes_total{direction=\"sent\"}"));
    assert!(sent.is_some_and(|line| !line.ends_with(" 0")), "{metrics}");
}

/// A run that is asked about a host, started as a person starts it.
fn asking(place: &Place, code: &str, net: &str) -> std::process::Child {
    let mut command = place.command(BELLJAR);
    command.args(["run", "--json", "-l", "python", "-c", code, "--net", net]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program under test starts")
}

fn pending(place: &Place) -> Value {
    within("a question", || {
        let waiting = place.belljar(&["approvals", "--json"]).json();
        waiting.get(0).cloned()
    })
}

/// Two requests, one question: a yes to the first use covers the second. A no covers both, too.
#[sandboxed]
#[test]
fn n1_a_person_is_asked_about_the_first_use() {
    for (verdict, value, served) in
        [("approve", json!(["/a", "/b"]), 2), ("deny", json!([403, 403]), 0)]
    {
        let server = Server::start();
        let place = Place::new();
        place.file(USER_FILE, format!("[net]\nask = ['{}']\n", server.address));
        let code = get(&server.address, "/a");
        let code = code.replace("def get():", "def get(path):").replace("/a'", "' + path");
        let code = code.replace("\nget()", "\n[get('/a'), get('/b')]");
        let child = asking(&place, &code, &server.address);
        let asked = pending(&place);
        let (host, port) = server.address.split_once(':').expect("a port");
        assert_eq!(asked["tool"], format!("net {}", server.address), "{asked:#}");
        assert_eq!(asked["arguments"]["host"], host, "{asked:#}");
        assert_eq!(asked["arguments"]["port"].to_string(), port, "{asked:#}");
        assert_eq!(server.served(), 0, "before the answer");
        let id = asked["id"].as_str().expect("an id");
        assert_eq!(place.belljar(&["approvals", verdict, id]).status, Some(0));
        let ended = outcome(child.wait_with_output().expect("it ends"));
        assert_eq!(ended.json()["result"], value, "{ended:#?}");
        let history = place.belljar(&["approvals", "list", "--all", "--json"]).json();
        assert_eq!(history.as_array().map(Vec::len), Some(1), "{history:#}");
        assert_eq!(server.served(), served);
    }
}

#[sandboxed]
#[test]
fn n1_a_question_nobody_answers_is_a_refusal() {
    let server = Server::start();
    let place = Place::new();
    let rules = format!(
        "[permissions]\napproval_timeout = '300ms'\n[net]\nask = [{{ host = '{}', each = true }}]\n",
        server.address
    );
    place.file(USER_FILE, rules);
    let code = get(&server.address, "/a").replace("\nget()", "\n[get(), get()]");
    let late = run(&place, &code, &["--net", &server.address]);
    assert_eq!(late["result"], json!([403, 403]), "{late:#}");
    let history = place.belljar(&["approvals", "list", "--all", "--json"]).json();
    assert_eq!(history.as_array().map(Vec::len), Some(2), "each time: {history:#}");
    let unasked = run(&place, &code, &["--net", &server.address, "--no-wait"]);
    assert_eq!(unasked["result"], json!([403, 403]), "{unasked:#}");
    assert_eq!(server.served(), 0);
}

#[sandboxed]
#[test]
fn n1_a_result_with_hosts_is_not_reused() {
    let server = Server::start();
    let place = Place::new();
    let code = get(&server.address, "/x");
    let flags = ["--cache=1h", "--net", &server.address];
    for times in 1..3 {
        let ran = run(&place, &code, &flags);
        assert_eq!((&ran["result"], &ran["cached"]), (&json!("/x"), &json!(false)), "{ran:#}");
        assert_eq!(server.served(), times);
    }
    // Control: without hosts the second answer is the first.
    let cached = [1, 2].map(|_| run(&place, "1 + 1", &["--cache=1h"])["cached"].clone());
    assert_eq!(cached, [json!(false), json!(true)]);
}

#[sandboxed]
#[test]
fn n1_what_is_blocked_is_said_while_the_run_goes_on() {
    let server = Server::start();
    let place = Place::new();
    let code = format!(
        "curl -sS -o /dev/null http://{ELSEWHERE}/; curl -sS http://{}/held",
        server.address
    );
    let mut child = place
        .command(BELLJAR)
        .args(["run", "-l", "bash", "-c", &code, "--command", "curl", "--net", &server.address])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program under test starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("[blocked] network") {
        line.clear();
        assert!(stderr.read_line(&mut line).expect("text") > 0, "it ended without a line");
    }
    assert!(line.contains(&format!("--net {ELSEWHERE}")), "{line}");
    // The run still waits for its server.
    server.release.send(()).expect("it listens");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut rest).expect("text");
    assert!(!rest.contains("[blocked]"), "it was said before: {rest}");
    let ended = outcome(child.wait_with_output().expect("it ends"));
    assert_eq!((ended.status, ended.stdout.trim_end()), (Some(0), "/held"), "{ended:#?}");
}

const ASKS: &str = "[permissions]\nask = ['count__append']\n";

/// The host is killed while the run waits for a person, before or after it has used a connection.
fn killed_while_asked(connects: bool) -> (Value, u32) {
    let server = Server::start();
    let project = CountingProject::trusting(ASKS);
    let before =
        if connects { get(&server.address, "/x") } else { "get = lambda: 'none'\nget()".into() };
    let code = format!(
        "{}\nmcp.count.append(text=str(seen))\nseen",
        before.replace("\nget()", "\nseen = get()")
    );
    let mut command = project.place.command(BELLJAR);
    command.args(["run", "--json", "-l", "python", "-c", &code, "--net", &server.address]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let question = pending(&project.place);
    child.kill().expect("a child can be killed");
    child.wait().expect("a child can be waited for");
    let id = question["id"].as_str().expect("an id");
    assert_eq!(project.belljar(&["approvals", "approve", id]).status, Some(0));
    let runs = project.belljar(&["runs", "--json"]).json();
    let run = runs[0]["id"].as_str().unwrap_or_else(|| panic!("{runs:#}")).to_owned();
    let resumed = project.belljar(&["resume", &run, "--json"]).json();
    // A second attempt gives the same.
    let again = project.belljar(&["resume", &run, "--json"]).json();
    assert_eq!(resumed["status"], again["status"], "{again:#}");
    let appended = u32::try_from(project.counted().len()).expect("few");
    assert_eq!(appended, u32::from(!connects), "{resumed:#}");
    (resumed, server.served())
}

#[sandboxed]
#[test]
fn d8_a_run_that_had_connections_is_in_doubt_after_a_crash() {
    let (resumed, served) = killed_while_asked(true);
    assert_eq!((&resumed["status"], served), (&json!("in_doubt"), 1), "{resumed:#}");
    assert_eq!(resumed["error"]["code"], "run.in_doubt", "{resumed:#}");
    // Control: the same run without a connection is resumed.
    let (resumed, served) = killed_while_asked(false);
    assert_eq!((&resumed["result"], served), (&json!("none"), 0), "{resumed:#}");
}

#[sandboxed]
#[test]
fn d8_a_run_that_keeps_a_journal_has_connections() {
    let server = Server::start();
    let project = CountingProject::trusting(ASKS);
    let code = get(&server.address, "/x");
    let flags = ["--net", &server.address];
    assert_eq!(run(&project.place, &code, &flags)["result"], "/x");
    // One that has to be replayed has none.
    let refused = run(&project.place, &code, &["--net", &server.address, "--durable"]);
    assert_eq!(refused["result"], "no network", "{refused:#}");
    assert_eq!(server.served(), 1);
}

#[sandboxed]
#[test]
fn f8_workflows_reach_what_the_operator_allows() {
    let server = Server::start();
    let place = Place::new();
    let code = get(&server.address, "/x").replace('\n', "\n          ");
    let agent = |network: &str| {
        format!(
            "name: a\nnodes:\n  - name: fetch\n    uses: code.execute\n    with:\n      language: python\n      \
             allow_network: {network}\n      code: |\n          {code}\n"
        )
    };
    let dag = json!({"name": "d", "tasks": [
        {"id": "fetch", "code": get(&server.address, "/x"), "language": "python",
            "grants": {"net": [server.address]}},
    ], "output": "{{ results.fetch }}"});
    place.file("work/all.yaml", agent("true"));
    place.file("work/list.yaml", agent(&format!("['{}']", server.address)));
    place.file("work/none.yaml", agent("false"));
    place.file("work/dag.json", dag.to_string());
    let start = |file: &str, more: &[&str]| {
        let arguments = ["workflow", "run", file, "--json", "--enable-code-execution"];
        let ran = place.belljar(&[&arguments[..], more].concat());
        format!("{}{}", ran.stdout, ran.stderr)
    };
    let net = ["--net", server.address.as_str()];
    for (file, served) in [("all.yaml", 1), ("list.yaml", 2), ("dag.json", 3)] {
        let said = start(file, &net);
        assert!(said.contains("/x"), "{file}: {said}");
        assert_eq!(server.served(), served, "{file}: {said}");
        let refused = start(file, &[]);
        assert!(refused.contains("--net HOST"), "{file}: {refused}");
    }
    assert!(start("none.yaml", &net).contains("no network"));
    assert_eq!(server.served(), 3);
}

/// D7: whether the request of a task took effect is unknown when its host was killed, so a person is asked, and
/// nothing is sent again. A task that ended before is not repeated either.
#[sandboxed]
#[test]
fn d7_a_task_that_had_connections_is_in_doubt_after_a_crash() {
    let site = Website::start();
    let place = Place::new();
    let task = |id: &str, path: &str, after: &[&str]| {
        json!({"id": id, "code": get(&site.address, path), "language": "python",
            "grants": {"net": [site.address]}, "depends_on": after})
    };
    let tasks = [task("first", "/x", &[]), task("second", "/held", &["first"])];
    let dag = json!({"name": "d", "tasks": tasks, "output": "{{ results.second }}"});
    place.file("work/dag.json", dag.to_string());
    let arguments = ["workflow", "run", "dag.json", "--id", "d", "--enable-code-execution"];
    let mut command = place.command(BELLJAR);
    command.args(arguments).args(["--net", &site.address]);
    let mut host =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    assert_eq!(site.held(), "begun");
    host.kill().expect("it runs");
    host.wait().expect("it ends");
    assert_eq!(site.held(), "ended");
    let mut resuming = place.command(BELLJAR);
    resuming.args(["workflow", "resume", "d"]).stdin(Stdio::null());
    let mut resuming =
        resuming.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    // It waits for a person, and has not sent the request again.
    let asked = within("the question", || {
        let shown = place.command(BELLJAR).args(["workflow", "show", "d", "--json"]).output();
        let shown = outcome(shown.expect("it starts")).json();
        (shown["tasks"][1]["status"] == "in_doubt").then_some(shown)
    });
    resuming.kill().expect("it runs");
    resuming.wait().expect("it ends");
    assert_eq!(asked["decisions"][0]["kind"], "in_doubt", "{asked:#}");
    assert_eq!(asked["results"], json!({"first": "/x"}), "{asked:#}");
    assert_eq!(site.served(), 2, "{asked:#}");
}
