//! A12: code in a file may name its engine, wherever it may name its language.

use belljar_contract::{EngineName, Language};
use belljar_workflow::{Action, SandboxAction, Task};

use super::{faults, good, told};
use crate::{CodeExecution, FormatOptions, read};

const DAG: &str = "
tasks:
  - {id: named, code: x, engine: cpython}
  - {id: both, code: x, language: js, engine: quickjs}
  - {id: usual, code: x}
  - {id: box, type: sandbox, do: create, engine: bash}
";
const AGENT: &str = "
nodes:
  - {name: a, run: 'return {}', engine: quickjs, language: typescript}
  - {name: b, uses: code.execute, with: {code: x, engine: cpython}}
  - {name: c, uses: code.sandbox, with: {action: create, engine: bash}}
";

/// The language and the engine of each task that has code.
fn engines(text: &str) -> Vec<(Language, Option<EngineName>)> {
    let of = |task: &Task| {
        if let Action::CodeExecution(code) = &task.action {
            return Some((code.language, code.engine));
        }
        let Action::Sandbox(SandboxAction::Create { language, engine, .. }) = &task.action else {
            return None;
        };
        Some((*language, *engine))
    };
    good(text).dag.tasks.iter().filter_map(of).collect()
}

#[test]
fn a12_an_engine_is_read_and_gives_the_language_if_none_is_said() {
    let some = |language, engine| (language, Some(engine));
    let expected = [
        some(Language::Python, EngineName::CPython),
        some(Language::JavaScript, EngineName::QuickJs),
        (Language::TypeScript, None),
        some(Language::Bash, EngineName::Bash),
    ];
    assert_eq!(engines(DAG), expected);
    let expected = [
        some(Language::TypeScript, EngineName::QuickJs),
        some(Language::Python, EngineName::CPython),
        some(Language::Bash, EngineName::Bash),
    ];
    assert_eq!(engines(AGENT), expected);
}

#[test]
fn a12_a_wrong_engine_is_a_fault_at_its_line() {
    let wrong = DAG.replace("code: x, engine: cpython", "code: x, engine: perl");
    assert_eq!(
        faults(&wrong.replace("language: js", "language: py")),
        format!(
            "flow.yaml:3:34: `named`: there is no engine `perl`; engines: {}\n\
             flow.yaml:4:47: `both`: the engine quickjs does not run python; engines that run \
             python: cpython",
            EngineName::names()
        )
    );
}

/// A file cannot have the shell by naming its engine instead of its language.
#[test]
fn f8_the_engine_of_the_shell_needs_the_shell_to_be_on() {
    let without = |text| told(read("flow.yaml", text, &FormatOptions { code: CodeExecution::On }));
    for text in [DAG, AGENT] {
        let faults = without(text);
        assert!(faults.contains("the shell is off"), "{faults}");
        assert_eq!(faults.lines().count(), 1, "{faults}");
    }
}
