//! D7: a yes that covers more than one call covers the rule that was shown, as long as it was given for.

use std::fs;

use belljar_testing::sandboxed;
use serde_json::json;

use crate::project_support::CountingProject;

/// Two calls after each other, then two at once.
const CODE: &str = "for (const text of ['a1', 'a2']) await mcp.count.append({text});
await Promise.all(['a3', 'a4'].map(text => mcp.count.append({text})));
return 'done'";
const ONE: &str = "return await mcp.count.append({text: 'a9'})";

/// A project whose calls ask by default.
fn project() -> CountingProject {
    CountingProject::with("")
}

#[sandboxed]
#[test]
fn d7_a_yes_for_the_run_answers_its_later_calls_and_no_other_runs() {
    let project = project();
    let mut running = project.start(CODE, &[]);
    let id = running.approval();
    let approved = project.belljar(&["approvals", "approve", &id, "--for", "run"]);
    assert_eq!(approved.status, Some(0), "{approved:#?}");
    let rule = "allowed in this run: count__append with any arguments (rule_";
    assert!(approved.stdout.contains(rule), "{approved:#?}");
    let ended = running.end();
    assert_eq!(ended.json()["result"], json!("done"), "{ended:#?}");
    assert_eq!(project.counted().len(), 4);
    let audit = project.belljar(&["audit", "--json"]).stdout;
    assert!(audit.contains("a person allowed count__append with any arguments, in this run"));
    // Another run asks, and nothing was kept for good.
    let mut other = project.start(ONE, &[]);
    let id = other.approval();
    assert_eq!(project.belljar(&["approvals", "deny", &id]).status, Some(0));
    assert_eq!(other.end().json()["error"]["code"], "approval.denied");
    assert_eq!(project.belljar(&["approvals", "rules", "--json"]).json()["rules"], json!([]));
}

#[sandboxed]
#[test]
fn d7_a_yes_for_good_is_a_rule_that_can_be_listed_and_removed() {
    let project = project();
    let mut running = project.start(ONE, &[]);
    let id = running.approval();
    let refused = |arguments: &[&str]| {
        let all = [&["approvals", "approve", &id], arguments].concat();
        let refused = project.belljar(&all);
        assert_eq!(
            (refused.status == Some(0), refused.stdout.as_str()),
            (false, ""),
            "{refused:#?}"
        );
        refused.stderr
    };
    // A rule that does not cover the call itself decides nothing, nor does one that cannot be read.
    assert!(refused(&["--for", "always", "--when", "text=b*"]).contains("does not cover the call"));
    assert!(refused(&["--for", "always", "--when", "text=a\u{202e}*"]).contains("would not see"));
    assert!(refused(&["--when", "text=a*"]).contains("--when needs --for"));
    assert!(refused(&["--for", "session"]).contains("the longest approval of this call is"));
    let always = ["approvals", "approve", &id, "--for", "always", "--when", "text=a*"];
    let approved = project.belljar(&always);
    let rule = "allowed always in this project: count__append when text is \"a*\" (rule_";
    assert!(approved.stdout.contains(rule), "{approved:#?}");
    assert_eq!(running.end().status, Some(0));
    let ran = project.run(CODE, &[]);
    assert_eq!(ran["result"], json!("done"), "{ran:#}");
    // A call that the pattern does not match asks; so does the same call of another definition of the server.
    let mut other = project.start("return await mcp.count.append({text: 'b1'})", &[]);
    project.belljar(&["approvals", "deny", &other.approval()]);
    assert_eq!(other.end().json()["error"]["code"], "approval.denied");
    let servers = project.place.path().join("work/.mcp.json");
    let configured = fs::read_to_string(&servers).unwrap();
    fs::write(&servers, configured.replace("\"-S\"", "\"-S\",\"-B\"")).unwrap();
    let mut changed = project.start(ONE, &[]);
    let asked = changed.approval();
    project.belljar(&["approvals", "deny", &asked]);
    assert_eq!(changed.end().json()["error"]["code"], "approval.denied");
    fs::write(&servers, configured).unwrap();
    assert_eq!(project.run(ONE, &[])["error"], json!(null), "control: as it was approved");
    let listed = project.belljar(&["approvals", "rules"]).stdout;
    assert!(listed.contains("count__append when text is \"a*\"\n  approved"), "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    let removed = project.belljar(&["approvals", "rules", "rm", id]);
    assert_eq!(
        (removed.status, removed.stdout.starts_with("removed count__append")),
        (Some(0), true)
    );
    let mut asks = project.start(ONE, &[]);
    let again = asks.approval();
    project.belljar(&["approvals", "deny", &again]);
    assert_eq!(asks.end().json()["error"]["code"], "approval.denied");
}

/// A rule that asks in a file is asked each run, and a deny rule wins over what was approved.
#[sandboxed]
#[test]
fn d7_rules_of_files_win_over_a_yes_for_good() {
    let project = project();
    let mut running = project.start(ONE, &[]);
    let id = running.approval();
    let approved = project.belljar(&["approvals", "approve", &id, "--for", "always"]);
    assert_eq!(approved.status, Some(0), "{approved:#?}");
    assert_eq!(running.end().status, Some(0));
    assert_eq!(project.run(ONE, &[])["error"], json!(null), "control: the rule counts");
    project.place.file("work/belljar.toml", "[permissions]\ndeny = ['count__append']\n");
    assert_eq!(project.run(ONE, &[])["error"]["code"], "permission.tool");
    project.place.file("work/belljar.toml", "[permissions]\nask = ['count__append']\n");
    let mut asks = project.start(ONE, &[]);
    let id = asks.approval();
    let refused = project.belljar(&["approvals", "approve", &id, "--for", "always"]);
    assert!(refused.stderr.contains("the longest approval of this call is run"), "{refused:#?}");
    assert_eq!(project.belljar(&["approvals", "approve", &id, "--for", "run"]).status, Some(0));
    assert_eq!(asks.end().status, Some(0));
}

/// One decision covers the calls of a run that wait at once, from any directory.
#[sandboxed]
#[test]
fn d7_calls_of_a_run_are_decided_together_and_from_anywhere() {
    let project = project();
    let code =
        "return (await Promise.all(['x', 'y'].map(text => mcp.count.append({text})))).length";
    let mut running = project.start(code, &[]);
    let first = running.approval();
    let second = running.approval();
    let elsewhere = project.place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let from_there = |arguments: &[&str]| {
        let mut command = project.place.command(crate::command::BELLJAR);
        let done = command.current_dir(&elsewhere).args(arguments).output().unwrap();
        crate::command::outcome(done)
    };
    let work = project.place.path().join("work");
    let work = work.to_str().unwrap();
    let lost = from_there(&["approvals", "approve", &first]);
    let told =
        format!("there is no approval {first} in this project, but in {work}: add --project");
    assert!(lost.stderr.contains(&told), "{lost:#?}");
    let waiting = from_there(&["approvals", "list", "--json", "--project", work]).json();
    assert_eq!(waiting.as_array().map(Vec::len), Some(2), "{waiting:#}");
    let run = waiting[0]["run_id"].as_str().unwrap();
    let both = from_there(&["approvals", "approve", "--run", run, "--project", work]);
    assert_eq!(both.stdout.matches("approved apr_").count(), 2, "{both:#?}");
    assert!(both.stdout.contains(&first) && both.stdout.contains(&second), "{both:#?}");
    assert_eq!(running.end().json()["result"], json!(2));
    let none = from_there(&["approvals", "approve", "--run", run, "--project", work]);
    assert_eq!((none.status, none.stdout.as_str()), (Some(1), ""), "{none:#?}");
}

/// D6: a project cannot make its own server trusted; its user can accept the server as it is.
#[sandboxed]
#[test]
fn d6_a_server_of_a_project_is_accepted_by_its_user_as_it_is_configured() {
    let project = project();
    let verdict = || {
        let tools = project.belljar(&["tools", "list", "--json"]).json();
        let tools = tools["tools"].as_array().cloned().unwrap();
        let read = tools.iter().find(|tool| tool["name"] == "count__add").cloned();
        read.map(|tool| tool["policy"].clone()).unwrap_or_else(|| json!(tools))
    };
    assert_eq!(verdict(), "ask");
    let accepted = project.belljar(&["tools", "accept", "count"]);
    assert_eq!(accepted.status, Some(0), "{accepted:#?}");
    assert_eq!(verdict(), "allow");
    let servers = project.place.path().join("work/.mcp.json");
    let configured = fs::read_to_string(&servers).unwrap();
    fs::write(&servers, configured.replace("\"-S\"", "\"-S\",\"-B\"")).unwrap();
    assert_eq!(verdict(), "ask", "another command line");
    fs::write(&servers, configured).unwrap();
    assert_eq!(verdict(), "allow", "control");
    assert_eq!(project.belljar(&["tools", "accept", "count", "--retract"]).status, Some(0));
    assert_eq!(verdict(), "ask");
    assert_eq!(project.belljar(&["tools", "accept", "nothing"]).status, Some(2));
}
