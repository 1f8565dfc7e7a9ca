//! Faults say the file, the line, the node and what to do.

use super::{faults, good, told, warnings};
use crate::{CodeExecution, FormatOptions, read};

#[test]
fn f8_several_faults_at_once_in_the_order_of_the_file() {
    insta::assert_snapshot!(faults("
tasks:
  - id: fetch
    tool: web
    depend_on: [start]
  - id: sum
    code: x
    language: cobol
    depends_on: [fech]
  - id: sum
    type: mcp_toll
"), @r"
    flow.yaml:3:5: `fetch`: `web` is not the name of a tool; write `server:tool`
    flow.yaml:5:5: `fetch`: `depend_on` is not supported in a task; did you mean `depends_on`?
    flow.yaml:8:15: `sum`: the language `cobol` is not supported; supported languages: typescript, javascript, python, bash
    flow.yaml:9:18: `sum`: depends on `fech`, which is not a task; did you mean `fetch`?
    flow.yaml:10:5: `sum`: unknown task type `mcp_toll`; did you mean `mcp_tool`?
    flow.yaml:10:9: two tasks are called `sum`; the other is on line 6
    ");
}

#[test]
fn f8_a_circle_is_named() {
    insta::assert_snapshot!(faults(r#"{"tasks": [
  {"id": "a", "tool": "x:y", "dependsOn": ["c"]},
  {"id": "b", "tool": "x:y", "dependsOn": ["a"]},
  {"id": "c", "tool": "x:y", "dependsOn": ["b"]},
  {"id": "d", "tool": "x:y", "dependsOn": ["c"]}
]}"#), @"flow.yaml:2:3: `a`: dependency cycle: a → c → b → a; remove one of these dependencies, or use `loop`");
}

#[test]
fn f8_code_is_off_until_the_operator_turns_it_on() {
    let agent = "
enable_code_execution: true
settings: {code: {enabled: true, enable_code_execution: true}}
nodes:
  - {name: a, run: 'return {}'}
  - {name: b, uses: code.execute, with: {code: x}}
  - {name: c, uses: code.sandbox, with: {action: create}}
";
    insta::assert_snapshot!(told(read("agent.yaml", agent, &FormatOptions::default())), @r"
    agent.yaml:5:5: `a`: code execution is off; the operator turns it on with `--enable-code-execution`, or for `belljar serve` with `enable_code_execution` in `[workflows]`; a file cannot
    agent.yaml:6:21: `b`: code execution is off; the operator turns it on with `--enable-code-execution`, or for `belljar serve` with `enable_code_execution` in `[workflows]`; a file cannot
    agent.yaml:7:21: `c`: code execution is off; the operator turns it on with `--enable-code-execution`, or for `belljar serve` with `enable_code_execution` in `[workflows]`; a file cannot
    ");
    let dag = r#"{"tasks": [{"id": "a", "code": "x"}]}"#;
    insta::assert_snapshot!(told(read("dag.json", dag, &FormatOptions::default())), @"dag.json:1:12: `a`: code execution is off; the operator turns it on with `--enable-code-execution`, or for `belljar serve` with `enable_code_execution` in `[workflows]`; a file cannot");
    insta::assert_snapshot!(warnings(&good(agent)), @r"
    flow.yaml:2:1: `enable_code_execution` in a file has no effect; only the operator can turn code execution on
    flow.yaml:3:18: `enable_code_execution` in a file has no effect; only the operator can turn code execution on
    flow.yaml:3:18: `enabled` in a file has no effect; only the operator can turn code execution on
    ");
}

#[test]
fn f8_settings_that_cannot_be_kept() {
    insta::assert_snapshot!(faults("
settings:
  code: {sandbox_mode: e2b, max_memory: 5}
nodes:
  - name: a
    uses: code.execute
    with: {code: x, allow_network: 5, language: ruby, timeout: soon}
  - {name: b, language: lua, run: 'return 1'}
  - name: c
    run: |
      -- lua
      return {}
  - {name: d, uses: code.sandbox, with: {action: destroy}}
  - {name: e, uses: code.sandbox, with: {action: clone}}
"), @r"
    flow.yaml:3:24: `sandbox_mode: e2b` is not supported: code runs on this host, not at a service; write `restricted`
    flow.yaml:3:29: `max_memory` is not supported in `settings.code`; did you mean `max_memory_mb`?
    flow.yaml:7:36: `a`: expected true, false or a list of strings, found 5
    flow.yaml:7:49: `a`: the language `ruby` is not supported; supported languages: typescript, javascript, python, bash
    flow.yaml:7:64: `a`: expected a number of seconds, or a time such as `500ms`, `30s`, `5m`, found `soon`
    flow.yaml:8:25: `b`: the language `lua` is not supported; supported languages: typescript, javascript, python, bash
    flow.yaml:11:7: `c`: the language `lua` is not supported; supported languages: typescript, javascript, python, bash
    flow.yaml:13:21: `d`: `destroy` needs a `sandbox_id`; pass the id that `create` returned
    flow.yaml:14:21: `e`: unknown action `clone`; actions: create, execute, destroy, list
    ");
    let permissive = "settings: {code: {sandbox_mode: permissive}}\nnodes: [{name: a, run: x}]";
    insta::assert_snapshot!(warnings(&good(permissive)), @"");
}

#[test]
fn f8_nodes_that_are_wrong() {
    insta::assert_snapshot!(faults("
imports: [other.yaml]
nodes:
  - {name: a, uses: nothing}
  - {name: a, run: x}
  - {run: x}
  - {name: b, rum: x}
  - {name: c, type: while_lop}
  - {name: d, run: x, goto: bb}
  - {name: e, type: while_loop, condition: x}
  - {name: f, type: dynamic_parallel, items: x, subgraph: y.yaml}
  - {name: g, type: dynamic_parallel, action: {uses: a.b}}
  - name: h
    uses: web.get
    with: {key: 'Bearer {{ secrets.token }}'}
  - {name: __end__, run: x}
edges:
  - {from: a, to: dd}
  - {from: b, to: [c, d], type: parallel, when: state.x}
config:
  interrupt_before: [bb]
"), @r#"
    flow.yaml:2:1: `imports` is not supported; other files are not read: copy the parts you need into this file, or call them as MCP tools
    flow.yaml:4:21: `a`: `nothing` is neither an action nor a tool; write `code.execute`, `code.sandbox` or a tool as `server.tool`
    flow.yaml:5:5: two nodes are called `a`; rename one of them
    flow.yaml:6:5: a node has no `name`; add one
    flow.yaml:7:15: `b`: `rum` is not supported in a node; did you mean `run`?
    flow.yaml:8:5: `c`: unknown node type `while_lop`; types are while_loop and dynamic_parallel
    flow.yaml:9:29: `d`: `bb` is not a node; did you mean `b`?
    flow.yaml:10:5: `e`: a while_loop needs `condition` and `body`; write both, and `max_iterations`
    flow.yaml:11:49: `f`: `subgraph` is not supported; other files are not read: write `steps`
    flow.yaml:12:5: `g`: dynamic_parallel needs `items`; write `items: "{{ state.list }}"`
    flow.yaml:15:17: `h`: `secrets` is not supported: a workflow holds no secrets; configure them for the MCP server that needs them
    flow.yaml:16:5: `__end__` is a reserved name; choose another name
    flow.yaml:18:19: `a`: `dd` is not a node; did you mean `d`?
    flow.yaml:19:20: `b`: parallel edges with conditions are not supported; put the condition on the node that the edge leads to, as `when`
    flow.yaml:21:22: `bb` is not a node; did you mean `b`?
    "#);
}

#[test]
fn what_is_no_workflow() {
    insta::assert_snapshot!(faults(""), @"flow.yaml:1:1: the file is empty; write `nodes:` or `tasks:`");
    insta::assert_snapshot!(faults("hello"), @"flow.yaml:1:1: not a workflow: the file has neither `nodes` nor `tasks`; write `nodes:` for an agent or `tasks:` for a DAG");
    insta::assert_snapshot!(faults("a: [1"), @"flow.yaml:2:1: not valid YAML or JSON: while parsing a flow sequence, expected ',' or ']'");
    insta::assert_snapshot!(faults("a: 1\na: 2"), @"flow.yaml:2:1: the key `a` is written twice; keep one of them");
    insta::assert_snapshot!(faults("a: 1\n---\nb: 2"), @"flow.yaml:3:1: the file holds a second document; put each workflow in its own file");
    insta::assert_snapshot!(faults("a: !ruby/object x"), @"flow.yaml:1:4: the tag `!ruby/object` is not supported; remove it");
    insta::assert_snapshot!(faults("? [a]\n: b"), @"flow.yaml:1:5: a key is a list or mapping; use text as the key");
    insta::assert_snapshot!(faults("nodes: []"), @"flow.yaml:1:1: the agent has no nodes; write at least one under `nodes:`");
    insta::assert_snapshot!(faults("tasks: 3"), @"flow.yaml:1:8: expected a list, found 3");
}

#[test]
fn what_other_types_lack() {
    insta::assert_snapshot!(faults("
tasks:
  - {id: a, type: approval}
  - {id: b, type: foreach, items: [1]}
  - {id: c, type: loop}
  - {id: d, type: workflow, workflow: other.yaml}
  - {id: e, type: wait}
  - {id: f, type: capability, capabilityId: c-9}
  - {id: g, type: sandbox, do: execute}
  - {id: h}
  - {id: 'i/j', value: 1}
  - {id: k, tool: 'a:b', timeout: long, retry: 0, on_error: maybe}
  - {id: l, code: x, sandbox_config: {allowed_write_paths: [/], allow_network: {a: b}}}
"), @r#"
    flow.yaml:3:5: `a`: `message` is missing
    flow.yaml:4:5: `b`: a foreach needs `items` and `do`
    flow.yaml:5:5: `c`: a loop needs a `body` with tasks
    flow.yaml:6:39: `d`: a nested workflow must be written out, not named; write its tasks here; other files are not read
    flow.yaml:7:5: `e`: a wait needs exactly one time; write `wait: 30s`, `wait_ms` or `until_ms`
    flow.yaml:8:5: `f`: the capability `c-9` is stored in another tool and cannot run here; write its code as `code`, or call a tool with `type: mcp_tool`
    flow.yaml:9:5: `g`: the sandbox task does not say what to do; write `do: create`, `do: list`, `do: execute` with `sandbox_id` and `code`, or `do: destroy` with `sandbox_id`
    flow.yaml:10:5: `h`: the task does not say what to do; add `tool`, `code`, `message`, `items`, `body` or a `type`
    flow.yaml:11:5: `i/j` is not a valid id: it contains one of / [ ] # ~ { } or begins or ends with a space
    flow.yaml:12:35: `k`: expected a time such as `500ms`, `30s`, `5m`, found `long`
    flow.yaml:12:48: `k`: expected a whole number from 1 to 100, found 0
    flow.yaml:12:61: `k`: expected `fail`, `continue` or `fallback: {task}`, found `maybe`
    flow.yaml:13:80: `l`: expected true, false or a list of strings, found a mapping
    "#);
}

#[test]
fn two_of_a_name_that_wait_for_another() {
    insta::assert_snapshot!(faults("
tasks:
  - {id: a, value: 1}
  - {id: b, value: 1, deps: [a]}
  - {id: b, value: 1, deps: [a]}
"), @"flow.yaml:5:10: two tasks are called `b`; the other is on line 4");
}

#[test]
fn f8_what_other_tools_have_is_not_supported_and_nothing_silly_is_guessed() {
    insta::assert_snapshot!(faults("
tasks:
  - {id: a, type: bash, retries: 3, needs: [b]}
  - {id: b, tool: 'x:y', task: one, content: two, owner: me}
  - {taskReferenceName: c, type: HTTP}
  - {id: d, value: 1, when: 'state.x =='}
"), @r"
    flow.yaml:3:5: `a`: unknown task type `bash`; write `type: code_execution` and `language: bash`
    flow.yaml:3:25: `a`: `retries` is not supported in a task; write `retry: {attempts: 3}`
    flow.yaml:3:37: `a`: `needs` is not supported in a task; write `depends_on`
    flow.yaml:4:26: `b`: `task` is not supported in a task
    flow.yaml:4:37: `b`: `content` is not supported in a task
    flow.yaml:4:51: `b`: `owner` is not supported in a task
    flow.yaml:5:5: a task has no `id`; add one
    flow.yaml:5:5: unknown task type `HTTP`; types are mcp_tool, code_execution, sandbox, approval, foreach, loop, workflow, wait, pass, capability
    flow.yaml:5:6: `taskReferenceName` is not supported in a task
    flow.yaml:6:29: `d`: not an expression: syntax error: unexpected end of input, expected expression in `state.x ==`
    ");
}

#[test]
fn f8_lua_is_known_without_being_named() {
    for code in [
        "-- Lua code\nreturn {}",
        "--lua 5\nreturn {}",
        "local x = 1\nreturn {y = x}",
        "if state.n > 1 then\n  return {}\nend",
        "for i = 1, 3 do\n  x = i\nend",
        "return { y = state.x }",
    ] {
        let text = serde_json::json!({"nodes": [{"name": "a", "run": code}]}).to_string();
        let told = faults(&text);
        assert!(told.contains("the language `lua` is not supported"), "{code}: {told}");
    }
    for code in ["x = 1  # then\nreturn {}", "end = 1\nreturn {'end': end}", "return {x == 1}"] {
        good(&serde_json::json!({"nodes": [{"name": "a", "run": code}]}).to_string());
    }
}

#[test]
fn f8_a_template_or_condition_that_cannot_be_read_is_told_where_it_stands() {
    insta::assert_snapshot!(faults("
nodes:
  - {name: a, run: x}
  - name: b
    uses: t.b
    with:
      deep: ['{{ state.x +* }}']
edges:
  - {from: __start__, to: a}
  - from: a
    to: b
    when: '{{ state.x %} %}'
"), @r"
    flow.yaml:7:14: `b`: syntax error: unexpected `*` in `{{ state.x +* }}`
    flow.yaml:12:11: `a`: not an expression: syntax error: unexpected `}` in `{{ state.x %} %}`
    ");
}

#[test]
fn f8_what_may_be_meant_otherwise_is_told() {
    insta::assert_snapshot!(warnings(&good("
nodes:
  - {name: a, run: 'return {\"x\": \"{{ state.y }}\"}'}
  - {name: b, run: \"total = 1\\nlabel = 'x'\"}
  - {name: c, run: 'x = 1'}
  - {name: d, run: \"state['x'] = 1\"}
edges:
  - {from: a, to: b}
  - {from: b, to: c}
  - {from: c, to: d}
")), @r"
    flow.yaml:3:20: `a`: `{{ }}` in the code of a node is not rendered; read the value from `state` in the code: a rendered value could be run as code
    flow.yaml:4:20: `b`: variables that the code sets do not go into the state; `return` them in a mapping, or set `state[…]`
    flow.yaml:5:20: `c`: variables that the code sets do not go into the state; `return` them in a mapping, or set `state[…]`
    flow.yaml:8:19: no edge starts at `__start__`: the agent begins with `a`; add an edge from `__start__`
    ");
}

/// A fault in one field hides no other: `files` and `template` are not called unknown with it.
#[test]
fn f8_the_shell_that_is_off_is_the_only_fault() {
    let options = FormatOptions { code: CodeExecution::On };
    let flow = "
tasks:
  - {id: a, code: ls, language: bash, files: true, template: true, no_room: false}
";
    let all = told(read("flow.yaml", flow, &options));
    assert!(all.contains("the shell is off"), "{all}");
    assert_eq!(all.lines().count(), 1, "{all}");
}
