//! Files meant to do harm: bounded work, a fault, never a panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::examples::ALL;
use super::{faults, good};
use crate::{CodeExecution, FormatOptions, read};

fn quick(text: &str) {
    let begun = Instant::now();
    let _ = read("x", text, &FormatOptions { code: CodeExecution::WithShell });
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn aliases_of_aliases_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let list = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    insta::assert_snapshot!(faults(&bomb), @"flow.yaml:5:40: aliases make the file too large; use fewer of them");
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(100_000), vec!["*a"; 1000].join(", "));
    insta::assert_snapshot!(faults(&long), @"flow.yaml:2:161: aliases make the file too large; use fewer of them");
    insta::assert_snapshot!(faults("a: &a [*a]"), @"flow.yaml:1:8: the alias refers to itself; write the value out");
}

#[test]
fn depth_and_length_are_bounded() {
    insta::assert_snapshot!(faults(&"[".repeat(100_000)), @"flow.yaml:1:256: not valid YAML or JSON: recursion limit exceeded");
    insta::assert_snapshot!(faults(&"- ".repeat(100)), @"flow.yaml:1:129: nested more than 64 levels deep; flatten it");
    insta::assert_snapshot!(faults(&format!("a: {}", "x".repeat(1 << 20))), @"flow.yaml:1:1: the file has 1048579 bytes, at most 1048576 are allowed; split it, or move data out of it");
    let many = format!("tasks: [{}]", "{id: a},".repeat(10_001));
    insta::assert_snapshot!(faults(&many), @"flow.yaml:1:9: more than 10000 tasks; use `foreach`");
}

#[test]
fn large_files_take_no_more_than_their_share() {
    let nodes: Vec<String> = (0..10_000).map(|n| format!("- {{name: n{n}, run: x}}")).collect();
    let chain = format!("nodes:\n{}", nodes.join("\n"));
    quick(&chain);
    assert_eq!(good(&chain).dag.tasks.len(), 10_001);
    let keys: String = (0..60_000).map(|n| format!("k{n}: 1\n")).collect();
    quick(&keys);
    quick(&format!("nodes:\n- name: a\n  uses: a.b\n  with:\n{}", keys.replace("k", "    k")));
    let merges = format!("a: &a {{}}\nb: {{<<: [{}]}}\n", vec!["*a"; 60_000].join(", "));
    quick(&merges);
    quick(&"{{".repeat(200_000));
    quick(&format!("nodes: [{{name: a, uses: a.b, with: {{x: '{}'}}}}]", "{{ a ".repeat(100_000)));
    quick(&format!(
        "nodes: [{{name: a, uses: a.b, with: {{x: '{}'}}}}]",
        "$OUTPUT[".repeat(100_000)
    ));
    let ring: String = (0..9_000)
        .map(|n| format!("- {{id: t{n}, value: 1, deps: [t{}]}}\n", (n + 1) % 9_000))
        .collect();
    quick(&format!("tasks:\n{ring}"));
}

#[test]
fn what_would_multiply_is_bounded() {
    let node = |n: usize, more: &str| format!("- {{name: n{n}, run: x{more}}}\n");
    let all = |count: usize, more: &str| (0..count).map(|n| node(n, more)).collect::<String>();
    let ring = format!("nodes:\n{}- {{name: z, run: x, goto: n0}}", all(9_000, ""));
    insta::assert_snapshot!(faults(&ring), @"flow.yaml:2:3: `n0`: more than 500 routes lead to this node or around its loop; split the agent");
    let star = format!("nodes:\n{}- {{name: z, run: x}}", all(600, ", goto: [{if: a, to: z}]"));
    insta::assert_snapshot!(faults(&star), @"flow.yaml:602:3: `z`: more than 500 routes lead to this node or around its loop; split the agent");
    let ways = "{if: a, to: b},".repeat(501);
    insta::assert_snapshot!(faults(&format!("nodes: [{{name: a, run: x, goto: [{ways}]}}, {{name: b, run: x}}]")), @"flow.yaml:1:9: `a`: more than 500 routes lead from this node; add nodes in between");
    let modules = "m,".repeat(300);
    insta::assert_snapshot!(faults(&format!("settings: {{code: {{allowed_modules: [{modules}]}}}}\nnodes: [{{name: a, run: x}}]")), @"flow.yaml:1:18: more than 256 modules; name fewer, or none");
    let reducers: String = (0..300).map(|n| format!("k{n}: {{reducer: append}},")).collect();
    insta::assert_snapshot!(faults(&format!("state_schema: {{{reducers}}}\nnodes: [{{name: a, run: x}}]")), @"flow.yaml:1:1: more than 200 reducers; declare fewer");
    // Unknown names by the thousand are not each compared with all the others.
    quick(&format!("nodes:\n{}", all(9_000, ", goto: nowhere_at_all")));
    let keys: String = (0..60_000).map(|n| format!("key{n}: 1,")).collect();
    quick(&format!("nodes: [{{name: a, {keys}}}]"));
    let deps: String =
        (0..9_000).map(|n| format!("- {{id: t{n}, value: 1, deps: [u{n}]}}\n")).collect();
    quick(&format!("tasks:\n{deps}"));
    quick(&format!(
        "nodes: [{{name: a, uses: a.b, with: {{x: '{}'}}}}]",
        "{{ a }}".repeat(120_000)
    ));
}

/// Parts of workflows, one a line.
const PARTS: &str = r#"nodes:
tasks:
name: a
name: b
id: a
run: x
uses: code.execute
with:
goto: a
goto:
if: x
to: b
edges:
from: a
type: parallel
type: while_loop
type: dynamic_parallel
type: foreach
body:
steps:
items: x
action:
code: x
tool: a:b
depends_on: [a]
fan_in: a
when: false
config:
settings:
retry: 3
on_error:
{{ x }}
\ud83d
!!str x
# c
---
...
%TAG ! x
1e999"#;

/// Text that is nearly a workflow.
fn nearly() -> impl Strategy<Value = String> {
    let marks =
        ["- ", "\n", "\n  ", "\n    ", "\n- ", "{", "}", "[", "]", ",", ": ", "&a ", "*a", "<<: "];
    let odd = ["|", ">", "'", "\"", "é", "\t", "~", "0x", "-."];
    let parts: Vec<&str> = PARTS.lines().chain(marks).chain(marks).chain(odd).collect();
    prop::collection::vec(prop::sample::select(parts), 0..60).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn reading_never_panics(text in any::<String>()) {
        let _ = read("x", &text, &FormatOptions { code: CodeExecution::WithShell });
    }

    #[test]
    fn reading_what_is_nearly_right_never_panics(text in nearly()) {
        let read = read("x", &text, &FormatOptions { code: CodeExecution::WithShell });
        if let Err(faults) = read {
            prop_assert!(!faults.is_empty());
            prop_assert!(faults.iter().all(|fault| fault.line >= 1 && fault.column >= 1));
        }
    }

    #[test]
    fn an_example_with_slips_never_panics(
        example in prop::sample::select(ALL.to_vec()),
        slips in prop::collection::vec((any::<prop::sample::Index>(), 0..4u8, any::<char>()), 1..6),
    ) {
        let mut lines: Vec<String> = example.1.lines().map(str::to_owned).collect();
        for (place, kind, letter) in slips {
            let at = place.index(lines.len());
            match kind {
                0 => lines[at].clear(),
                1 => lines[at].insert_str(0, "  "),
                2 => lines[at].push(letter),
                _ => {
                    let again = lines[at].clone();
                    lines.insert(at, again);
                }
            }
        }
        if let Err(faults) = read("x", &lines.join("\n"), &FormatOptions { code: CodeExecution::WithShell }) {
            prop_assert!(!faults.is_empty());
            prop_assert!(faults.iter().all(|fault| fault.line as usize <= lines.len() + 8));
        }
    }
}
