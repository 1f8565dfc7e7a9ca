//! Sessions of a host that others talk to: the command line, the record of what ended, and what is
//! left when the host is killed (B1–B4, A10).

use std::{
    process::Child,
    time::{Duration, Instant},
};

use belljar_testing::{as_root, sandboxed};
use serde_json::{Value, json};

use crate::{
    command::{Outcome, Place, outcome, serve_http},
    descendants::descendants,
};

/// The paths of the place that the user of a host owns.
const OWNED: [&str; 2] = ["", "work"];

/// A host over HTTP, and the place it serves.
struct SessionHost<'a> {
    place: &'a Place,
    host: Child,
    user: Option<u32>,
}

impl<'a> SessionHost<'a> {
    fn start(place: &'a Place, user: Option<u32>) -> Self {
        let (host, _) = serve_http(place.belljar_as(user, &OWNED));
        Self { place, host, user }
    }

    /// `belljar` in the same project.
    fn run(&self, arguments: &[&str]) -> Outcome {
        let output = self.place.belljar_as(self.user, &OWNED).args(arguments).output();
        outcome(output.expect("the program under test starts"))
    }

    /// The output of the command, which must succeed.
    fn says(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments);
        assert_eq!(outcome.status, Some(0), "{arguments:?}: {outcome:?}");
        outcome.stdout.trim().to_owned()
    }
}

impl Drop for SessionHost<'_> {
    fn drop(&mut self) {
        let _ = self.host.kill();
        let _ = self.host.wait();
    }
}

#[sandboxed]
#[test]
fn b1_b4_sessions_from_the_command_line() {
    let place = Place::new();
    let served = SessionHost::start(&place, None);
    let id = served.says(&["session", "new", "-l", "python"]);
    assert!(id.starts_with("ses_"), "{id}");
    served.says(&["session", "exec", &id, "-c", "x = 1\nopen('f', 'w').write('one')"]);
    assert_eq!(served.says(&["session", "exec", &id, "-c", "x + 1"]), "2");
    assert_eq!(served.says(&["run", "--session", &id, "-c", "x + 2"]), "3");
    let with = ["run", "--session", &id, "-c", "context['n'] + x", "--context", "{\"n\": 5}"];
    assert_eq!(served.says(&with), "6");
    let failed = served.run(&["session", "exec", &id, "-c", "raise ValueError('no')"]);
    assert_eq!((failed.status, failed.stderr.contains("ValueError: no")), (Some(1), true));
    let result = served.run(&["session", "exec", &id, "-c", "x", "--json"]).json();
    assert_eq!((&result["result"], &result["session_id"]), (&json!(1), &json!(id)));
    assert_eq!(result["isolation"]["tier"], "full");
    let point = served.says(&["session", "checkpoint", &id]);
    served.says(&["session", "exec", &id, "-c", "x = 99\nopen('f', 'w').write('two')"]);
    served.says(&["session", "rollback", &id, &point]);
    assert_eq!(
        served.says(&["session", "exec", &id, "-c", "f'{x} {open(\"f\").read()}'"]),
        "1 one"
    );
    let forks = served.says(&["session", "fork", &id, "--count", "2", "--from", &point]);
    let forks: Vec<&str> = forks.lines().collect();
    assert_eq!(forks.len(), 2);
    served.says(&["session", "exec", forks[0], "-c", "x = 7"]);
    assert_eq!(served.says(&["session", "exec", forks[1], "-c", "x"]), "1");
    let list: Value = serde_json::from_str(&served.says(&["session", "list", "--json"])).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(3), "{list:#}");
    assert!(served.says(&["session", "list"]).contains(&id));
    served.says(&["session", "rm", &id, forks[0]]);
    let gone = served.run(&["session", "exec", &id, "-c", "1"]);
    assert_eq!(gone.status, Some(2));
    assert!(gone.stderr.contains("destroyed"), "{}", gone.stderr);
    assert_eq!(served.says(&["session", "exec", forks[1], "-c", "x"]), "1");
    let never = served.run(&["session", "exec", "ses_0", "-c", "1"]);
    assert!(never.stderr.contains("there is no session ses_0"), "{}", never.stderr);
    let trick = served.run(&["session", "rm", "../runs"]);
    assert!(trick.stderr.contains("is not a valid id"), "{}", trick.stderr);
}

#[test]
fn b1_without_a_host_the_commands_say_how_to_start_one() {
    let place = Place::new();
    for arguments in [&["session", "list"][..], &["run", "--session", "ses_1", "-c", "1"]] {
        let outcome = place.belljar(arguments);
        assert_eq!(outcome.status, Some(2));
        assert!(outcome.stderr.contains("belljar serve --http"), "{}", outcome.stderr);
    }
}

#[sandboxed]
#[test]
fn b3_a_restarted_host_tells_why_a_session_is_gone() {
    let place = Place::new();
    let mut served = SessionHost::start(&place, None);
    let (kept, idle) = (
        served.says(&["session", "new", "-l", "bash"]),
        served.says(&["session", "new", "--idle", "1s"]),
    );
    served.says(&["session", "exec", &kept, "-c", "x=1"]);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let looked_at = served.run(&["session", "list"]);
        if !looked_at.stdout.contains(&idle) {
            break;
        }
        assert!(Instant::now() < deadline, "{looked_at:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let gone = served.run(&["session", "exec", &idle, "-c", "1"]);
    assert!(gone.stderr.contains("it was unused for 1 s"), "{}", gone.stderr);
    served.host.kill().unwrap();
    served.host.wait().unwrap();
    let refused = served.run(&["session", "list"]);
    assert!(refused.stderr.contains("no host runs"), "{}", refused.stderr);
    drop(served);
    let next = SessionHost::start(&place, None);
    let gone = next.run(&["session", "exec", &kept, "-c", "echo $x"]);
    assert!(gone.stderr.contains("its host has ended"), "{}", gone.stderr);
    let gone = next.run(&["session", "exec", &idle, "-c", "1"]);
    assert!(gone.stderr.contains("it was unused"), "{}", gone.stderr);
}

#[sandboxed]
#[test]
fn b2_a10_a_killed_host_leaves_nothing_of_its_sessions() {
    leaves_nothing(None);
}

#[sandboxed]
#[as_root]
#[test]
fn b2_a10_a_killed_host_of_an_ordinary_user_leaves_nothing_of_its_sessions() {
    leaves_nothing(Some(12_349));
}

fn leaves_nothing(user: Option<u32>) {
    let place = Place::new();
    let mut served = SessionHost::start(&place, user);
    for language in ["typescript", "python", "bash"] {
        let id = served.says(&["session", "new", "-l", language]);
        let point = served.says(&["session", "checkpoint", &id]);
        served.says(&["session", "rollback", &id, &point]);
        served.says(&["session", "fork", &id, "--count", "2"]);
    }
    let family = descendants(served.host.id());
    // Three zygotes with their wardens; three cells with a keeper and four guests each, at least.
    assert!(family.len() >= 6 + 3 * 5, "{family:?}");
    served.host.kill().unwrap();
    served.host.wait().unwrap();
    let killed = Instant::now();
    let is_alive = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    };
    while family.iter().any(is_alive) {
        assert!(killed.elapsed() < Duration::from_secs(10), "something is left");
        std::thread::sleep(Duration::from_millis(10));
    }
}
