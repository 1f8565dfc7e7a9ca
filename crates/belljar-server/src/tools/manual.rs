//! The manual: everything about the tools that does not fit into their descriptions.

/// The answer of `search_tools` without an intent. Each tool has a paragraph that begins with its name.
pub(crate) fn manual() -> &'static str {
    MANUAL
}

const MANUAL: &str = "\
execute_code: runs code once in a new sandbox, or in a session.
- code: TypeScript and JavaScript `return` their value; in Python the last expression counts; bash returns \
its output, as JSON if it is JSON.
- language: typescript (default), javascript, python, bash. engine: quickjs, cpython, bash.
- network: hosts that the code may reach, [\"api.example.org\", \"*.example.org:8443\"], or true for all \
that the operator allows; by `fetch`, or by programs, which find their proxy themselves. No pip and no npm. \
Python has the packages of this machine, if the operator shares them. Files: /work is empty and ends with the run; \
what is in /work/out comes back, pictures as pictures.
- Tools: `await mcp.server.tool({...})`, in Python `mcp.server.tool(...)`. `tools.search(intent)`, \
`tools.describe(name)` and `load(handle)` are there, too. tools: names of the tools that the code may call. \
intent: words that name fitting tools in the answer.
- context: any JSON, the global `context`. An object assigned to the global `state` comes back as state.
- sandbox_config: timeoutMs (30000), memoryMb, and other limits. Within what the operator allows: \
allowedReadPaths and allowWrite (true or paths), workspace (a directory, at /work; {path, commit}; the answer \
lists changes), env ({NAME: value}, or [NAME] of the operator), modules and commands (names).
- max_output_tokens: the budget of the answer (2000). Beyond it a value becomes a summary with a handle: \
`load(handle)` in code returns all of it.
- session_id: of sandbox; variables and files stay. durable: true keeps the run over restarts.
- status approval_required: a person decides; tell the user, then call get_run.
Files in an answer have a uri: read it as a resource, or with load(handle) in code.
search_tools: intent: what a tool should do; k: how many (5).
get_run: run_id, of an answer; wait_ms: how long to wait for the end.
sandbox: action, each with its arguments: create {language, engine, network} gives a session_id; execute {session_id, code, \
context}; checkpoint {session_id} gives a checkpoint_id; rollback {session_id, checkpoint_id}; fork {session_id, \
count, checkpoint_id}; destroy {session_id}; list.
run_workflow: workflow is an object or its text, JSON or YAML: {tasks: [{id, tool: \"server__tool\", \
arguments: {...}} | {id, code, language} | {id, type: \"approval\", message}]}, each with depends_on: [id]. \
A string \"{{tasks.ID.output}}\" is the result of a task. inputs: an object. id: a name of your choice; wait_ms.
workflow_command: id; command, with its arguments beside it: the answers of get_workflow list those that fit.
get_workflow: id, wait_ms; after: N gives events. Without id: the list.";

#[cfg(test)]
mod tests {
    use belljar_contract::{EngineName, Language};

    use super::MANUAL;
    use crate::{
        call::{GET_RUN_FIELDS, SEARCH_FIELDS, sandbox, workflow},
        request,
        tools::{self, WorkflowTools},
    };

    #[test]
    fn e4_the_manual_is_short_enough_to_be_an_answer() {
        assert!(belljar_contract::tokens::estimate(MANUAL, 2_000) < 1_100);
    }

    /// The paragraph of a tool: from its name to the name of the next one.
    fn paragraph(tool: &str) -> &'static str {
        let mut text = MANUAL;
        if !text.starts_with(&format!("{tool}:")) {
            text = text.split_once(&format!("\n{tool}:")).expect("the manual has every tool").1;
        }
        let others = tools::NAMES.iter().filter_map(|name| text.find(&format!("\n{name}:")));
        text.split_at(others.min().unwrap_or(text.len())).0
    }

    fn is_named(word: &str, text: &str) -> bool {
        text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .any(|part| part == word)
    }

    /// E4: what the list of tools leaves out is behind one call.
    #[test]
    fn e4_the_manual_has_every_argument_of_every_tool() {
        let decoded = [
            (tools::EXECUTE, request::FIELDS),
            (tools::SEARCH, SEARCH_FIELDS),
            (tools::GET_RUN, GET_RUN_FIELDS),
            (tools::SANDBOX, sandbox::FIELDS),
            (tools::RUN_WORKFLOW, workflow::RUN_FIELDS),
            (tools::WORKFLOW_COMMAND, &["id", "command"]),
            (tools::GET_WORKFLOW, workflow::GET_FIELDS),
        ];
        assert_eq!(decoded.map(|(tool, _)| tool), *tools::NAMES);
        for tool in tools::own(WorkflowTools::Offered) {
            let known = decoded.iter().find(|(name, _)| *name == tool.name).unwrap().1;
            for listed in tool.input_schema["properties"].as_object().unwrap().keys() {
                assert!(known.contains(&listed.as_str()), "{} takes no {listed}", tool.name);
            }
            for field in known {
                let text = paragraph(&tool.name);
                assert!(is_named(field, text), "{}: {field} is missing: {text}", tool.name);
            }
        }
    }

    #[test]
    fn e4_the_manual_names_the_engines_and_languages_that_there_are() {
        let (_, text) = MANUAL.split_once("engine: ").unwrap();
        let (listed, _) = text.split_once('.').unwrap();
        let engines: Vec<_> = EngineName::ALL.iter().map(|engine| engine.as_str()).collect();
        assert_eq!(listed.split(", ").collect::<Vec<_>>(), engines);
        let (_, text) = MANUAL.split_once("language: ").unwrap();
        for language in Language::ALL {
            assert!(is_named(language.as_str(), text.split_once('.').unwrap().0), "{language:?}");
        }
    }
}
