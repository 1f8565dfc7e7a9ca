//! The first ten minutes of a new user: from an empty directory to an answer in an MCP client, only with
//! the commands, configuration and code of README.md and with the commands that messages name.
//!
//! The server and the client are real; `scripts/servers` and `scripts/clients` install them.

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{clients::MCP_1, command::Outcome, http_docs::keeps, mcp_support::Project};

const README: &str = include_str!("../../../../README.md");
const PACKAGE: &str = "@modelcontextprotocol/server-filesystem";

/// The blocks of README in a language, in their order.
fn blocks(language: &str) -> Vec<&'static str> {
    let mut blocks = Vec::new();
    for block in README.split(&format!("\n```{language}\n")).skip(1) {
        blocks.push(block.split_once("\n```").expect("a block that is opened is closed").0);
    }
    blocks
}

/// The block of README in a language that has this text.
fn block(language: &str, text: &str) -> &'static str {
    let found = blocks(language).into_iter().find(|block| block.contains(text));
    found.unwrap_or_else(|| panic!("README has no {language} block with {text}"))
}

/// The command of README that begins so, as a user would paste it.
fn readme_command(beginning: &str) -> String {
    let mut lines = blocks("console").into_iter().flat_map(str::lines);
    let line =
        lines.find_map(|line| line.strip_prefix("$ ").filter(|line| line.starts_with(beginning)));
    line.unwrap_or_else(|| panic!("README has no command {beginning}")).to_owned()
}

/// Runs a command as a user does: in the project's directory, by a shell.
fn paste(project: &Project, command: &str) -> Outcome {
    let mut shell = project.command("bash");
    let (status, stdout, stderr) = project.finish("shell", shell.args(["-c", command]));
    Outcome { status: status.code(), stdout, stderr }
}

/// The same with a command that succeeds.
fn paste_well(project: &Project, command: &str) -> String {
    let done = paste(project, command);
    assert_eq!(done.status, Some(0), "{command}: {done:#?}");
    done.stdout
}

/// The structured content of an answer to the client that is configured as README says.
fn ask(project: &Project, question: &[&str]) -> Value {
    let client: Value =
        serde_json::from_str(block("json", "\"belljar\"")).expect("README has JSON");
    let server = &client["mcpServers"]["belljar"];
    let arguments = server["args"].as_array().expect("it has arguments");
    let arguments = arguments.iter().map(|argument| argument.as_str().expect("they are texts"));
    let mut connection = vec!["--stdio", server["command"].as_str().expect("it has a command")];
    connection.extend(arguments);
    let answer = MCP_1.ask_over(project, &connection, question);
    assert_eq!(answer["isError"], false, "{answer:#}");
    answer["structured"].clone()
}

/// The policy that `belljar tools list` shows for a tool.
fn policy(project: &Project, tool: &str) -> String {
    let list = paste_well(project, &readme_command("belljar tools list"));
    let mut rows = list.lines().map(str::split_whitespace);
    let row = rows.find_map(|mut row| (row.next() == Some(tool)).then(|| row.next()));
    row.flatten().unwrap_or_else(|| panic!("{tool} is missing: {list}")).to_owned()
}

/// A log of 20,000 lines, which is more than a model can read.
fn log() -> String {
    let line = |n: usize| match n % 1_000 {
        7 => format!("2026-01-01 ERROR disk {n}\n"),
        _ => format!("2026-01-01 INFO request {n}\n"),
    };
    (0..20_000).map(line).collect()
}

#[sandboxed]
#[test]
fn e1_a_newcomer_gets_an_answer_by_readme_alone() {
    let project = Project::empty(PACKAGE);
    let checked = paste_well(&project, &readme_command("belljar doctor"));
    assert!(checked.contains("code runs here"), "{checked}");

    // Before there is a server, the message says where one is configured.
    let none = paste(&project, &readme_command("belljar tools list"));
    assert!(none.stderr.contains("add servers to .mcp.json"), "{none:#?}");
    project.file(".mcp.json", block("json", PACKAGE));
    project.file("app.log", log());
    assert_eq!(policy(&project, "fs__read_text_file"), "ask");

    // The first call waits for a person: the answer names the command that decides.
    let code = block("ts", "mcp.fs.");
    let waiting = ask(&project, &["--code", code]);
    assert_eq!(waiting["status"], "approval_required", "{waiting:#}");
    let command = waiting["approval"]["command"].as_str().expect("it names a command");
    let message = waiting["message"].as_str().expect("it has a message");
    assert!(message.contains(&format!("`{command}`")), "{waiting:#}");
    let pending = paste_well(&project, "belljar approvals");
    assert!(pending.contains("fs__read_text_file"), "{pending}");
    let approved = paste_well(&project, command);
    assert!(approved.starts_with("approved apr_"), "{approved}");

    // The message says to call get_run then.
    assert!(message.contains("get_run"), "{waiting:#}");
    let run = waiting["run_id"].as_str().expect("it names the run");
    let answer = ask(&project, &["--run", run]);
    let expected = json!({ "errors": 20, "last": "2026-01-01 ERROR disk 19007" });
    assert_eq!(answer["status"], "completed", "{answer:#}");
    assert_eq!(answer["result"], expected, "{answer:#}");

    // An accepted server is not asked about again when it only reads; the other tools still ask.
    paste_well(&project, &readme_command("belljar tools accept fs"));
    assert_eq!(policy(&project, "fs__read_text_file"), "allow");
    assert_eq!(policy(&project, "fs__write_file"), "ask");
    let answer = ask(&project, &["--code", code]);
    assert_eq!(answer["result"], expected, "{answer:#}");
    project.assert_no_processes();
}

/// The commands of a section of README, each with what it prints. A command ends where its quotes do.
fn examples(section: &str) -> Vec<(String, String)> {
    let (_, text) =
        README.split_once(&format!("\n## {section}\n")).expect("README has the section");
    let (text, _) = text.split_once("\n## ").expect("another section follows");
    let mut examples: Vec<(String, String)> = Vec::new();
    for block in text.split("\n```console\n").skip(1) {
        let (block, _) = block.split_once("\n```").expect("a block that is opened is closed");
        for line in block.lines() {
            match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => examples.push((command.to_owned(), String::new())),
                (None, Some((command, _))) if command.matches('\'').count() % 2 == 1 => {
                    *command = format!("{command}\n{line}");
                }
                (None, Some((_, printed))) => *printed = format!("{printed}{line}\n"),
                (None, None) => panic!("a block begins with a command: {line}"),
            }
        }
    }
    examples
}

#[sandboxed]
#[test]
fn a1_examples_of_readme_do_what_they_promise() {
    let project = Project::empty(PACKAGE);
    project.file("analyse.ts", "export default context.length;\n");
    project.file("commits.json", "[1, 2]\n");
    project.file("src/main.c", "int main() {}\n");
    project.file(
        "fix.py",
        "for name in ('main.c', 'util.c'):\n    with open('src/' + name, 'a') as file:\n        file.write('//\\n')\n",
    );
    let examples = examples("Run code");
    assert!(examples.len() >= 8, "only {} examples were found", examples.len());
    for (command, promise) in examples {
        let done = paste(&project, &command);
        let printed = format!("{}{}", done.stdout, done.stderr);
        if promise.is_empty() {
            assert_eq!(done.status, Some(0), "{command}: {done:#?}");
        } else {
            assert!(
                keeps(promise.trim(), printed.trim()),
                "{command}\npromised: {promise}\n{done:#?}"
            );
        }
    }
    let changed = std::fs::read_to_string(project.path("src/main.c")).expect("it is there");
    assert_eq!(changed, "int main() {}\n//\n", "only the last command commits");
    project.assert_no_processes();
}
