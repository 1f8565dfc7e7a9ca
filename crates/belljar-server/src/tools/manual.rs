//! The manual: everything about the tools that does not fit into their descriptions.

/// The answer of `search_tools` without an intent.
pub(crate) fn manual() -> &'static str {
    MANUAL
}

const MANUAL: &str = "\
execute_code: runs code once, in a new sandbox, or in a session with session_id.
- code: TypeScript and JavaScript `return` their value; in Python the last expression counts; bash returns \
its output, as JSON if it is JSON.
- language: typescript (default), javascript, python, bash. engine: quickjs, deno, cpython, bash.
- network: hosts that Python and bash may reach, [\"api.example.org\", \"*.example.org:8443\"], or true for all \
that the operator allows; programs find the proxy by themselves, and there is nothing else. No pip and no npm. \
Python has the packages of this machine, if the operator shares them. Files: /work is empty and ends with the run; what is in /work/out comes back, pictures as pictures.
- Tools: `await mcp.server.tool({...})`, in Python `mcp.server.tool(...)`. `tools.search(intent)`, \
`tools.describe(name)` and `load(handle)` are there, too. tools: names of the tools that the code may call.
- context: any JSON, the global `context`. An object assigned to the global `state` comes back as state.
- sandbox_config: timeoutMs (30000), memoryMb, and other limits. Within what the operator allows: \
allowedReadPaths and allowWrite (true or paths), workspace (a directory, at /work; {path, commit}; the answer \
lists changes), env ({NAME: value}, or [NAME] of the operator), modules and commands (names).
- max_output_tokens: the budget of the answer (2000). Beyond it a value becomes a summary with a handle: \
`load(handle)` in code returns all of it.
- durable: true keeps the run over restarts. intent: words that name fitting tools in the answer.
- status approval_required: a person decides; tell the user, then call get_run with run_id (wait_ms).
Files in an answer have a uri: read it as a resource, or with load(handle) in code.
sandbox: create {language, network} gives a session_id; checkpoint gives a checkpoint_id; rollback needs both; fork \
{count, checkpoint_id}; execute {code}; destroy; list.
run_workflow: workflow is an object or its text, JSON or YAML: {tasks: [{id, tool: \"server__tool\", \
arguments: {...}} | {id, code, language} | {id, type: \"approval\", message}]}, each with depends_on: [id]. \
A string \"{{tasks.ID.output}}\" is the result of a task. inputs: an object.
get_workflow: id, wait_ms; after: N gives events. Without id: the list.
workflow_command: id and command; the answers of get_workflow list the commands.
search_tools: intent, k (5).";

#[cfg(test)]
mod tests {
    use super::MANUAL;

    #[test]
    fn e4_the_manual_is_short_enough_to_be_an_answer() {
        assert!(belljar_contract::tokens::estimate(MANUAL, 2_000) < 1_000);
    }
}
