//! Agents as they are written for other tools, run whole.

use belljar_testing::sandboxed;
use serde_json::json;

use crate::command::Place;

#[sandboxed]
#[test]
fn f8_what_code_changes_in_the_state_counts() {
    let place = Place::new();
    place.file(
        "work/agent.yaml",
        r#"
state_schema: {total: {type: int, reducer: sum, default: 1}}
initial_state: {messages: [one], n: 1, kept: {deep: [1]}}
nodes:
  - name: with_return
    run: |
      state["computed"] = "yes"
      state["source"] = "state"
      state["messages"].append("two")
      return {"source": json.dumps([1])}
  - name: without_return
    run: |
      state.n = state.n + 1
      state["total"] += 4
      state["kept"]["deep"].append(2)
      state.setdefault("more", "set")
  - name: itself
    run: |
      # The state as a whole is what was changed in it.
      state["year"] = datetime.date(2024, 5, 6).year
      return state
  - name: plain
    run: |
      state["flag"] = True
      return 5
"#,
    );
    let ran =
        place.belljar(&["workflow", "run", "agent.yaml", "--json", "--enable-code-execution"]);
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    let wanted = json!({
        "messages": ["one", "two"], "n": 2, "kept": {"deep": [1, 2]}, "total": 5,
        "computed": "yes", "source": "[1]", "more": "set", "year": 2024, "flag": true, "result": 5,
    });
    assert_eq!(ran.json()["output"], wanted);
}

#[sandboxed]
#[test]
fn f8_what_is_refused_is_granted_in_the_file() {
    let place = Place::new();
    place.file("work/agent.yaml", "nodes: [{name: a, run: import subprocess}]");
    let ran = place.belljar(&["workflow", "run", "agent.yaml", "--enable-code-execution"]);
    assert_eq!(ran.status, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("grant it with `allowed_modules: [subprocess]`"), "{ran:#?}");
    assert!(!ran.stderr.contains("--module"), "{ran:#?}");
}

#[test]
fn f8_validate_says_that_tools_were_not_looked_up() {
    let place = Place::new();
    place.file("work/agent.yaml", "nodes: [{name: a, uses: tracker.find}]");
    place.file("work/other.yaml", "tasks: [{id: a, value: 1}]");
    let found = place.belljar(&["workflow", "validate", "agent.yaml"]);
    assert_eq!(found.status, Some(0), "{found:#?}");
    assert!(found.stderr.contains("its tools were not checked"), "{found:#?}");
    let found = place.belljar(&["workflow", "validate", "agent.yaml", "--json"]).json();
    assert_eq!((&found["valid"], &found["tools_checked"]), (&json!(true), &json!(false)));
    let found = place.belljar(&["workflow", "validate", "other.yaml"]);
    assert_eq!(found.stderr, "");
}
