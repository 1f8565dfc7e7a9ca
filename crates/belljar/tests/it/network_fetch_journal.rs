//! D8, N3: a fetch of a durable run is in its journal: answered from there, repeated if it changes nothing,
//! and in doubt otherwise.

use belljar_testing::{crash_points, sandboxed};
use serde_json::{Value, json};

use crate::{
    command::{Outcome, Place, outcome},
    internet::{Internet, inside},
};

const NET: [&str; 2] = ["--net", "web.example.com"];

/// Runs durable code until its host is killed there.
fn killed(
    internet: &Internet,
    place: &Place,
    (language, code): (&str, &str),
    crash_at: &str,
) -> String {
    let mut command = internet.command(place);
    command.env("BELLJAR_CRASH_AT", crash_at);
    command.args(["run", "--durable", "--json", "-l", language, "-c", code]).args(NET);
    let ended = outcome(command.output().unwrap());
    assert_eq!((ended.status, ended.stdout.as_str()), (None, ""), "{ended:#?}");
    let runs = internet.belljar(place, &["runs", "--json"]).json();
    runs[0]["id"].as_str().expect("an id").to_owned()
}

fn resumed(internet: &Internet, place: &Place, id: &str) -> Value {
    internet.belljar(place, &["resume", id, "--json"]).json()
}

fn approvals(internet: &Internet, place: &Place) -> Value {
    internet.belljar(place, &["approvals", "--json"]).json()
}

fn decide(internet: &Internet, place: &Place, arguments: &[&str]) -> Outcome {
    let decided = internet.belljar(place, &[&["approvals"], arguments].concat());
    assert_eq!(decided.status, Some(0), "{decided:#?}");
    decided
}

const GETS: [(&str, &str); 2] = [
    ("typescript", "return await (await fetch('https://web.example.com/one')).text()"),
    ("python", "fetch('https://web.example.com/one').text()"),
];
const POSTS: [(&str, &str); 2] = [
    (
        "typescript",
        "const at = 'https://web.example.com';
         const one = await (await fetch(at + '/one')).text();
         try { return [one, await (await fetch(at + '/effect', { method: 'POST', body: 'abc' })).text()] }
         catch (e) { return [one, e.name] }",
    ),
    (
        "python",
        "at = 'https://web.example.com'
one = fetch(at + '/one').text()
try: two = fetch(at + '/effect', method='POST', body='abc').text()
except OSError as error: two = type(error).__name__
[one, two]",
    ),
];

#[sandboxed]
#[crash_points]
#[test]
fn d8_a_get_without_a_recorded_answer_is_repeated() {
    inside("network_fetch_journal::d8_a_get_without_a_recorded_answer_is_repeated", |internet| {
        for (at, code) in GETS.into_iter().enumerate() {
            let place = Place::new();
            let id = killed(internet, &place, code, "answered");
            assert_eq!(internet.requests().len(), 2 * at + 1);
            let result = resumed(internet, &place, &id);
            assert_eq!(result["result"], "hello from /one", "{result:#}");
            assert_eq!(internet.requests().len(), 2 * at + 2);
        }
    });
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_a_recorded_answer_is_given_without_a_request() {
    inside("network_fetch_journal::d8_a_recorded_answer_is_given_without_a_request", |internet| {
        for (at, code) in POSTS.into_iter().enumerate() {
            let place = Place::new();
            let id = killed(internet, &place, code, "finished");
            assert_eq!(internet.requests().len(), 2 * (at + 1));
            let result = resumed(internet, &place, &id);
            assert_eq!(result["result"], json!(["hello from /one", "3 bytes"]), "{result:#}");
            assert_eq!(internet.requests().len(), 2 * (at + 1));
        }
    });
}

#[sandboxed]
#[crash_points]
#[test]
fn d8_a_post_without_a_recorded_answer_is_a_persons_to_decide() {
    inside(
        "network_fetch_journal::d8_a_post_without_a_recorded_answer_is_a_persons_to_decide",
        |internet| {
            let refused = [json!("TypeError"), json!("FetchError")];
            for (code, refused) in POSTS.into_iter().zip(refused) {
                for (verdict, more, value, posts) in [
                    ("retry", &[][..], json!("3 bytes"), 2),
                    ("use", &["--result", "\"entered\""], json!("\"entered\""), 1),
                    ("deny", &[], refused, 1),
                ] {
                    let place = Place::new();
                    let effects = || {
                        internet.requests().iter().filter(|line| line.starts_with("POST")).count()
                    };
                    let before = effects();
                    // The second answer: that to the GET is recorded.
                    let id = killed(internet, &place, code, "answered:2");
                    let doubt = resumed(internet, &place, &id);
                    assert_eq!(doubt["status"], "in_doubt", "{doubt:#}");
                    assert_eq!(effects(), before + 1);
                    let question = approvals(internet, &place);
                    assert_eq!(
                        question[0]["tool"], "fetch POST https://web.example.com/effect",
                        "{question:#}"
                    );
                    let asked = question[0]["id"].as_str().expect("an id");
                    decide(internet, &place, &[&[verdict, asked], more].concat());
                    let result = resumed(internet, &place, &id);
                    assert_eq!(
                        result["result"],
                        json!(["hello from /one", value]),
                        "{verdict}: {result:#}"
                    );
                    assert_eq!(effects(), before + posts, "{verdict}");
                }
            }
        },
    );
}

/// A request that did not leave the host is not in doubt: it is sent when the run is resumed.
#[sandboxed]
#[crash_points]
#[test]
fn d8_a_post_that_was_not_sent_is_sent_once() {
    inside("network_fetch_journal::d8_a_post_that_was_not_sent_is_sent_once", |internet| {
        let code = (
            "typescript",
            "return (await fetch('https://web.example.com/effect', { method: 'POST', body: 'x' })).text()",
        );
        for place_of_death in ["asked", "noted"] {
            let place = Place::new();
            let before = internet.requests().len();
            let id = killed(internet, &place, code, place_of_death);
            assert_eq!(internet.requests().len(), before);
            assert_eq!(resumed(internet, &place, &id)["result"], "1 bytes");
            assert_eq!(internet.requests().len(), before + 1);
        }
    });
}

#[sandboxed]
#[test]
fn d8_a_durable_run_fetches_and_has_no_sockets() {
    inside("network_fetch_journal::d8_a_durable_run_fetches_and_has_no_sockets", |internet| {
        let place = Place::new();
        let code = "import urllib.request
def attempt(what):
    try: return what()
    except OSError as error: return str(error)
[fetch('https://web.example.com/x').text(), attempt(lambda: urllib.request.urlopen('http://web.example.com/').read().decode())]";
        let durable = internet.run(&place, "python", code, &[&NET[..], &["--durable"]].concat());
        assert_eq!(durable["result"][0], "hello from /x", "{durable:#}");
        let said = durable["result"][1].as_str().unwrap_or_default();
        assert!(said.contains("a durable run has no sockets"), "{durable:#}");
        // Control: any other run has both.
        let plain = internet.run(&place, "python", code, &NET);
        assert_eq!(plain["result"], json!(["hello from /x", "hello from /"]), "{plain:#}");
        let bash = internet.run(&place, "bash", "true", &[&NET[..], &["--durable"]].concat());
        assert_eq!(bash["error"]["code"], "request.invalid", "{bash:#}");
    });
}

#[sandboxed]
#[test]
fn n1_python_fetches() {
    inside("network_fetch_journal::n1_python_fetches", |internet| {
        let place = Place::new();
        let code = "at = 'https://web.example.com'
def attempt(what):
    try: return what()
    except Exception as error: return f'{type(error).__name__}: {error}'
one = fetch(at + '/one')
sent = fetch(at + '/request', method='post', json={'a': 1}, headers={'X-Own': 'y'}).json()
large = fetch(at + '/request', method='PUT', body=b'x' * 3_000_000).json()
moved = fetch(at + '/redirect?303,/request', method='POST', body='x')
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool: many = list(pool.map(lambda n: fetch(f'{at}/n{n}').text(), range(20)))
{
  'one': [one.status, one.ok, one.text(), one.headers['CONTENT-TYPE'], one.url],
  'sent': [sent['method'], sent['begins'], sent['headers']['Content-Type'], sent['headers']['X-Own']],
  'large': large['bytes'], 'bytes': len(fetch(at + '/large').bytes()),
  'moved': [moved.json()['method'], moved.url], 'many': many == [f'hello from /n{n}' for n in range(20)],
  'late': attempt(lambda: fetch(at + '/endless', timeout=0.2)),
  'other': attempt(lambda: fetch('https://other.example.com/')),
  'closed': attempt(lambda: fetch('https://web.example.com:9/')),
  'lines': attempt(lambda: fetch(at + '/x', headers={'A': 'b\\r\\nC: d'})),
}";
        let flags = [&NET[..], &["--net", "web.example.com:9"]].concat();
        let result = internet.run(&place, "python", code, &flags);
        let value = &result["result"];
        assert_eq!(
            value["one"],
            json!([200, true, "hello from /one", "text/plain", "https://web.example.com/one"]),
            "{result:#}"
        );
        assert_eq!(value["sent"], json!(["POST", "{\"a\": 1}", "application/json", "y"]));
        assert_eq!((&value["large"], &value["bytes"]), (&json!(3_000_000), &json!(8 << 20)));
        assert_eq!(value["moved"], json!(["GET", "https://web.example.com/request"]));
        assert_eq!(value["many"], true);
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        assert!(text("late").starts_with("FetchTimeout: "), "{result:#}");
        assert!(text("other").starts_with("PermissionError: other.example.com:443"), "{result:#}");
        assert!(text("closed").starts_with("FetchError: "), "{result:#}");
        assert!(text("lines").starts_with("ValueError: "), "{result:#}");
    });
}
