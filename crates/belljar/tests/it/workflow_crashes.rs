//! F3: `kill -9` of the host at each point of a workflow, then `belljar workflow resume`.
//!
//! The points are counted, not chosen: before and after every commit, before and after every effect,
//! and every point of the journals of code tasks. The server of these tests outlives the host and
//! writes down what really happened; whoever is asked about a task in doubt looks there.

use std::{
    io::{BufRead as _, BufReader},
    process::Child,
    time::{Duration, Instant},
};

use belljar_contract::{Verdict, WorkflowStatus, exact_json};
use belljar_project::now_ms;
use belljar_store::Approvals;
use belljar_testing::{crash_points, sandboxed};
use belljar_workflow::{
    DoubtResolution, WorkflowEventKind, WorkflowStore as _,
    workflow_store::{ClaimReason, LeaseRequest},
};
use serde_json::{Value, json};

use crate::{
    command::{Outcome, block_on, outcome},
    ledger_support::{LedgerProject, Transport},
    workflow_support::{WorkflowWatch, has_ended},
};

/// Seventeen tasks: effects side by side, code with an effect of its own, files, a person, a fan-out.
const WORKFLOW: &str = r#"
name: crash
tasks:
  - {id: a1, tool: ledger:effect, arguments: {key: a1}}
  - {id: a2, tool: ledger:effect, arguments: {key: a2}}
  - {id: a3, tool: ledger:effect, arguments: {key: a3}}
  - {id: safe, tool: ledger:safe, arguments: {key: safe}}
  - id: inner
    language: javascript
    code: |
      // A person who says of a call in doubt that it is not to be made again has looked.
      const seen = (e) => { if (e.code !== 'tool.in_doubt') throw e; return { done: 'i1' }; };
      const one = await mcp.ledger.effect({ key: 'i1' }).catch(seen);
      return { one: one.done, of: Object.keys(context.deps).length };
    depends_on: [a1, a2]
  - {id: write, language: bash, code: "echo one > /work/one.txt", files: true, depends_on: [a1]}
  - id: more
    language: bash
    code: "cat /work/one.txt /work/one.txt > /work/two.txt"
    files: true
    depends_on: [write, a3]
  - {id: b1, tool: ledger:effect, arguments: {key: "b-{{ results.inner.one }}"}, depends_on: [inner]}
  - {id: b2, tool: ledger:effect, arguments: {key: b2}, depends_on: [a2, safe]}
  - {id: b3, tool: ledger:effect, arguments: {key: b3}, depends_on: [write]}
  - {id: asked, tool: ledger:guarded, arguments: {key: asked}, depends_on: [a3]}
  - {id: yes, message: go on?, by: human, depends_on: [b2]}
  - id: each
    items: [e0, e1, e2]
    do: {id: one, tool: ledger:effect, arguments: {key: "{{ item }}"}}
    depends_on: [yes]
  - id: last
    tool: ledger:effect
    arguments: {key: last}
    depends_on: [b1, b3, asked, each, more]
output:
  each: "{{ results.each }}"
  inner: "{{ results.inner }}"
  last: "{{ results.last.done }}"
"#;

/// The effects that must have happened once.
const EFFECTS: [&str; 12] = [
    "effect a1",
    "effect a2",
    "effect a3",
    "effect i1",
    "effect b-i1",
    "effect b2",
    "effect b3",
    "guarded asked",
    "effect e0",
    "effect e1",
    "effect e2",
    "effect last",
];

const PERMISSIONS: &str =
    "allow = [\"ledger__effect\", \"ledger__safe\"]\nask = [\"ledger__guarded\"]";
const PATIENCE: Duration = Duration::from_secs(60);
const FLOW: &str = "crash";

struct Flow {
    project: LedgerProject,
}

impl Flow {
    fn new() -> Self {
        let project = LedgerProject::with(Transport::Http, PERMISSIONS);
        project.place.file("work/crash.yaml", WORKFLOW);
        Self { project }
    }

    fn run(&self, crash_at: Option<&str>) -> Child {
        let run = [
            "workflow",
            "run",
            "crash.yaml",
            "--id",
            FLOW,
            "--enable-code-execution",
            "--enable-shell",
        ];
        self.project.start(&[&run[..], &["--json"]].concat(), crash_at)
    }

    fn resume(&self, crash_at: Option<&str>) -> Child {
        self.project.start(&["workflow", "resume", FLOW, "--json"], crash_at)
    }

    fn watched(&self) -> Option<WorkflowWatch> {
        let state = self.project.state();
        state.join(belljar_store::FILE_NAME).exists().then(|| WorkflowWatch::of(&state))
    }

    /// Waits for the end of a host, and decides meanwhile whatever somebody has to decide.
    fn attend(&self, mut host: Child) -> Outcome {
        self.attend_until(|| has_ended(&mut host));
        outcome(host.wait_with_output().unwrap())
    }

    /// Decides whatever somebody has to decide until something is so.
    fn attend_until(&self, mut is_over: impl FnMut() -> bool) {
        let begun = Instant::now();
        let mut watched = None;
        let mut answered: Vec<String> = Vec::new();
        while !is_over() {
            std::thread::sleep(Duration::from_millis(25));
            assert!(begun.elapsed() < PATIENCE, "no end: {:?}", self.project.lines());
            if watched.is_none() {
                watched = self.watched();
            }
            let Some(watched) = &watched else { continue };
            self.approve(watched);
            for decision in watched.decisions(FLOW) {
                if !answered.contains(&decision.id) {
                    watched.answer(FLOW, &decision, |task| self.look(task));
                    answered.push(decision.id);
                }
            }
        }
    }

    /// Says yes to what policy asks about; of a call in doubt, what the ledger knows.
    fn approve(&self, watched: &WorkflowWatch) {
        let store = watched.store().project_store();
        let pending = block_on(store.approvals(Approvals::Pending, now_ms())).unwrap();
        for approval in pending {
            let asked = approval.asked;
            let arguments: Value = serde_json::from_str(&asked.arguments).unwrap();
            let key = arguments["key"].as_str().unwrap();
            let tool = asked.tool.rsplit("__").next().unwrap();
            let verdict = match asked.is_in_doubt() {
                false => Verdict::Approve,
                true if self.happened(&format!("{tool} {key}")) => Verdict::Deny,
                true => Verdict::Retry,
            };
            let _ = block_on(store.decide(&asked.id, verdict, "test", now_ms()));
        }
    }

    fn happened(&self, effect: &str) -> bool {
        self.project.count(&format!("did {effect}")) > 0
    }

    /// The ledger's answer about a task in doubt.
    fn look(&self, task: &str) -> DoubtResolution {
        let key = match task {
            "b1" => "b-i1".to_owned(),
            task if task.starts_with("each[") => {
                task.replace("each[", "e").replace(']', "").split('/').next().unwrap().to_owned()
            }
            task => task.to_owned(),
        };
        let tool = if key == "asked" { "guarded" } else { "effect" };
        match self.happened(&format!("{tool} {key}")) {
            true => DoubtResolution::Use { value: json!({ "done": key }).into() },
            false => DoubtResolution::Retry,
        }
    }

    /// Everything is as if nothing had happened.
    fn check(&self, about: &str) {
        let watched = self.watched().unwrap();
        let machine = watched.machine(FLOW);
        let failure = machine.failure();
        let lines = self.project.lines();
        assert_eq!(machine.status(), WorkflowStatus::Completed, "{about}: {failure:?} {lines:?}");
        let done = |key: &str| exact_json!({ "done": key });
        assert_eq!(
            machine.output(),
            &exact_json!({
                "each": [done("e0"), done("e1"), done("e2")],
                "inner": { "one": "i1", "of": 2 },
                "last": "last",
            }),
            "{about}"
        );
        for effect in EFFECTS {
            assert_eq!(
                self.project.count(&format!("did {effect}")),
                1,
                "{about}: {effect} {lines:?}"
            );
        }
        // It may be repeated, by each host that found it under way.
        assert!(self.project.count("did safe safe") >= 1, "{about}: {lines:?}");
        assert_eq!(watched.file(FLOW, "one.txt").as_deref(), Some("one\n"), "{about}");
        assert_eq!(watched.file(FLOW, "two.txt").as_deref(), Some("one\none\n"), "{about}");
        let events = watched.check_events(FLOW);
        let ended = |happened: &WorkflowEventKind| {
            matches!(happened, WorkflowEventKind::WorkflowEnded { .. })
        };
        assert_eq!(events.iter().filter(|event| ended(&event.happened)).count(), 1, "{about}");
        let completed = |task: &str| {
            let is_it = |happened: &WorkflowEventKind| matches!(happened, WorkflowEventKind::TaskCompleted { task: it, .. } if it == task);
            events.iter().filter(|event| is_it(&event.happened)).count()
        };
        for task in machine.tasks() {
            assert_eq!(completed(&task.instance), 1, "{about}: {}", task.instance);
        }
    }
}

/// Kills a host at the `n`th point, and goes on; whether it was killed.
fn kill_at(n: u32) -> bool {
    let flow = Flow::new();
    let place = format!("*:{n}");
    let first = flow.attend(flow.run(Some(&place)));
    let was_killed = first.status.is_none();
    if was_killed {
        flow.project.until_quiet();
        let is_made = flow
            .watched()
            .is_some_and(|watched| block_on(watched.store().find(FLOW)).unwrap().is_some());
        let second = match is_made {
            true => flow.attend(flow.resume(None)),
            false => flow.attend(flow.run(None)),
        };
        assert_eq!(second.status, Some(0), "{n}: {} {:?}", second.stderr, flow.project.lines());
    } else {
        assert_eq!(first.status, Some(0), "{n}: {first:#?}");
    }
    flow.check(&format!("killed at {n}"));
    was_killed
}

/// Every `of`th point from `from` on, until there are no more.
fn kill_at_each(from: u32, of: u32) {
    let mut kills = 0;
    let mut n = from;
    while kill_at(n) {
        kills += 1;
        n += of;
    }
    assert!(kills >= 15, "only {kills} points were reached");
}

#[sandboxed]
#[crash_points]
#[test]
fn f3_killed_at_every_point_first_quarter() {
    kill_at_each(1, 4);
}

#[sandboxed]
#[crash_points]
#[test]
fn f3_killed_at_every_point_second_quarter() {
    kill_at_each(2, 4);
}

#[sandboxed]
#[crash_points]
#[test]
fn f3_killed_at_every_point_third_quarter() {
    kill_at_each(3, 4);
}

#[sandboxed]
#[crash_points]
#[test]
fn f3_killed_at_every_point_last_quarter() {
    kill_at_each(4, 4);
}

#[sandboxed]
#[crash_points]
#[test]
fn f3_killed_again_and_again() {
    let flow = Flow::new();
    assert_eq!(flow.attend(flow.run(Some("*:9"))).status, None);
    for round in 0..40 {
        flow.project.until_quiet();
        // On a busy machine what is gone through again takes more points: a little further each time.
        let ended = flow.attend(flow.resume(Some(&format!("*:{}", 11 + round / 4))));
        if ended.status == Some(0) {
            assert!(round > 2, "it was over too soon");
            return flow.check("killed again and again");
        }
        assert_eq!(ended.status, None, "{ended:#?}");
    }
    panic!("it does not come to an end: {:?}", flow.project.lines());
}

#[sandboxed]
#[crash_points]
#[test]
fn f3_of_two_hosts_that_race_for_a_workflow_one_wins() {
    let flow = Flow::new();
    assert_eq!(flow.attend(flow.run(Some("flow_called:2"))).status, None);
    flow.project.until_quiet();
    // The work of the winner takes long enough for the other to come.
    flow.project.hold("before", "last");
    let (one, other) = (flow.resume(None), flow.resume(None));
    let mut both = [Some(one), Some(other)];
    let begun = Instant::now();
    let loser = loop {
        assert!(begun.elapsed() < PATIENCE, "both go on: {:?}", flow.project.lines());
        let lost = both.iter_mut().position(|host| has_ended(host.as_mut().unwrap()));
        if let Some(at) = lost {
            break both[at].take().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let lost = outcome(loser.wait_with_output().unwrap());
    assert_eq!(lost.status, Some(2), "{lost:#?}");
    assert!(lost.stderr.contains("drives workflow"), "{lost:#?}");
    flow.project.release("before", "last");
    let winner = both.into_iter().flatten().next().unwrap();
    assert_eq!(flow.attend(winner).status, Some(0));
    flow.check("two hosts");
}

#[sandboxed]
#[test]
fn f3_a_host_that_was_superseded_writes_nothing_and_says_so() {
    let flow = Flow::new();
    flow.project.hold("after", "a1");
    let host = flow.run(None);
    flow.project.until_line("did effect a1");
    let watched = flow.watched().unwrap();
    let now_ms = now_ms();
    let request = LeaseRequest {
        owner: "another".to_owned(),
        now_ms,
        until_ms: now_ms + 50,
        take_over: true,
        why: ClaimReason::Asked,
    };
    block_on(watched.store().claim(FLOW, request)).unwrap();
    let before = watched.machine(FLOW).taken();
    flow.project.release("after", "a1");
    let ended = outcome(host.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("was taken over by another host"), "{ended:#?}");
    assert_eq!(watched.machine(FLOW).taken(), before, "a superseded host wrote something");
    drop(watched);
    flow.project.until_quiet();
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(flow.attend(flow.resume(None)).status, Some(0));
    flow.check("superseded");
}

/// A workflow that ends every host that has it is left alone after a while, until a person asks for it.
#[sandboxed]
#[crash_points]
#[test]
fn f3_what_ends_its_hosts_is_left_alone() {
    let project = LedgerProject::with(Transport::Http, PERMISSIONS);
    let deadly = "tasks:\n  - {id: once, tool: ledger:safe, arguments: {key: once}}\n  \
                  - {id: deadly, tool: ledger:safe, arguments: {key: deadly}, depends_on: [once]}\n";
    project.place.file("work/deadly.yaml", deadly);
    let run = ["workflow", "run", "deadly.yaml", "--id", "deadly"];
    assert_eq!(
        outcome(project.start(&run, Some("flow_call:2")).wait_with_output().unwrap()).status,
        None
    );
    // The first of its calls now is the one that was under way.
    let serve = || {
        let serve = ["serve", "--http", "127.0.0.1:0", "--log", "text"];
        project.start(&serve, Some("flow_call:1"))
    };
    for _ in 0..3 {
        assert_eq!(outcome(serve().wait_with_output().unwrap()).status, None);
    }
    let mut host = serve();
    let log = BufReader::new(host.stderr.take().unwrap());
    let left = log
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("hosts leave a workflow alone"));
    assert!(left.is_some_and(|line| line.contains("belljar workflow resume deadly")));
    assert!(!has_ended(&mut host));
    let shown = project.place.belljar(&["workflow", "show", "deadly", "--json"]).json();
    assert_eq!(shown["status"], json!("needs_attention"), "{shown}");
    assert!(shown["attention"].as_str().unwrap().starts_with("3 hosts in a row"), "{shown}");
    let listed = project.place.belljar(&["workflow", "list", "--json"]).json();
    assert_eq!(listed[0]["status"], json!("needs_attention"), "{listed}");
    let resumed = project.place.belljar(&["workflow", "resume", "deadly", "--json"]);
    assert_eq!((resumed.status, &resumed.json()["status"]), (Some(0), &json!("completed")));
    assert_eq!((project.count("did safe once"), project.count("did safe deadly")), (1, 1));
    host.kill().unwrap();
    host.wait().unwrap();
}

#[sandboxed]
#[crash_points]
#[test]
fn f3_serve_goes_on_with_what_a_dead_host_left() {
    let flow = Flow::new();
    assert_eq!(flow.attend(flow.run(Some("flow_called:3"))).status, None);
    flow.project.until_quiet();
    let mut host = flow.project.start(&["serve", "--http", "127.0.0.1:0"], None);
    let watched = flow.watched().unwrap();
    flow.attend_until(|| watched.machine(FLOW).status().is_over());
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&host),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    host.wait().unwrap();
    flow.check("adopted by serve");
}
