//! Programs as models write them for everyday tasks, each in its native runtime and in a cell (A1, A2, A3, A7).
//!
//! The files in `programs/` are the table. A program prints in a cell what it prints in Node, Python or bash
//! on the same machine, and ends the same way. If its first line has `refused: message ... hint`, a cell
//! refuses it, with these words.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::{Outcome, Place, outcome},
    mcp_support::{RunningServer, serve_in_with_path},
};

const TARGET: &str = env!("CARGO_TARGET_TMPDIR");

/// Compiles what comes on standard input.
const COMPILER: &str = "const ts = require('typescript');\
    const options = { target: 'es2022', module: 'es2022' };\
    const code = require('fs').readFileSync(0, 'utf8');\
    process.stdout.write(ts.transpileModule(code, { compilerOptions: options }).outputText);";

#[sandboxed]
#[test]
fn a1_javascript_programs_behave_as_in_node() {
    check_all("javascript", &["js", "mjs"], 24);
}

#[sandboxed]
#[test]
fn a1_typescript_programs_behave_as_in_node() {
    check_all("typescript", &["ts"], 20);
}

#[sandboxed]
#[test]
fn a2_python_programs_behave_as_in_python() {
    check_all("python", &["py"], 40);
}

#[sandboxed]
#[test]
fn a3_scripts_behave_as_in_bash() {
    check_all("bash", &["sh"], 10);
}

/// Runs the programs with these extensions; there are at least so many.
fn check_all(language: &str, extensions: &[&str], least: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/programs");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| extensions.contains(&extension(file))).collect();
    files.sort();
    assert!(files.len() >= least, "{language}: {} programs", files.len());
    let place = Place::new();
    let server = serve_in_with_path(&place, &path_with_data_python());
    let wrong: Vec<String> =
        files.iter().filter_map(|file| fault(&server, language, file)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// How a program misbehaves, if it does.
fn fault(server: &RunningServer, language: &str, file: &Path) -> Option<String> {
    let code = fs::read_to_string(file).unwrap();
    let ran = server.ask("POST /v1/runs", &json!({ "language": language, "code": code }));
    let fault = match expected_refusal(&code) {
        Some((message, hint)) => refusal_fault(&ran, message, hint),
        None => difference(&ran, &natively(&code, extension(file))),
    };
    fault.map(|fault| format!("{}: {fault}", file.display()))
}

fn expected_refusal(code: &str) -> Option<(&str, &str)> {
    let (_, words) = code.lines().next()?.split_once("refused: ")?;
    words.split_once(" ... ")
}

fn refusal_fault(ran: &Value, message: &str, hint: &str) -> Option<String> {
    let said = |name: &str| ran["error"][name].as_str().unwrap_or_default().to_owned();
    let is_told = said("message").contains(message) && said("hint").contains(hint);
    (!is_told || hint.is_empty()).then(|| format!("not refused with these words: {ran:#}"))
}

fn difference(ran: &Value, native: &Outcome) -> Option<String> {
    let (error, printed) = (&ran["error"], ran["stdout"].as_str().unwrap_or_default());
    if printed != native.stdout {
        let mut pairs = native.stdout.lines().zip(printed.lines());
        let first = pairs.find(|(there, here)| there != here);
        return Some(format!("prints something else: {first:#?}\n{native:#?}\n{ran:#}"));
    }
    let has_same_end = match native.status {
        Some(0) => error.is_null(),
        status if error["code"] == "runtime.exit" => ran["exit_code"] == json!(status),
        _ => {
            let message = error["message"].as_str().unwrap_or_default();
            // Node names the code of some errors before the message.
            let first = message.lines().next().unwrap_or_default();
            let said = first.split_once(": ").map_or(first, |(_, said)| said);
            !said.is_empty() && native.stderr.contains(said)
        }
    };
    (!has_same_end).then(|| format!("ends in another way: {native:#?}\n{ran:#}"))
}

/// Runs a program in the runtime it is written for. A path below the directory it runs in is printed as it
/// would be in a cell.
fn natively(code: &str, extension: &str) -> Outcome {
    let place = Place::new();
    let name = match extension {
        "ts" => "work/main.mjs".to_owned(),
        _ => format!("work/main.{extension}"),
    };
    let code = if extension == "ts" { compiled(&place, code) } else { code.to_owned() };
    let program = place.file(&name, code);
    let runtime = match extension {
        "py" => data_python().join("python"),
        "sh" => "bash".into(),
        _ => "node".into(),
    };
    let mut command = place.command(runtime);
    let ran = outcome(command.arg(&program).env("LC_ALL", "C.UTF-8").output().unwrap());
    let folder = program.parent().unwrap().to_str().unwrap();
    Outcome { stdout: ran.stdout.replace(folder, "/work"), ..ran }
}

fn compiled(place: &Place, code: &str) -> String {
    let modules = Path::new(TARGET).join("../oracles/node_modules");
    assert!(modules.join("typescript").is_dir(), "the compiler is missing: run scripts/oracles");
    let source = fs::File::open(place.file("work/source.ts", code)).unwrap();
    let mut command = place.command("node");
    let made = command.args(["-e", COMPILER]).env("NODE_PATH", modules).stdin(Stdio::from(source));
    let made = outcome(made.output().unwrap());
    assert_eq!((made.status, made.stderr.as_str()), (Some(0), ""));
    made.stdout
}

fn extension(file: &Path) -> &str {
    file.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// The programs of a Python that has the data libraries.
fn data_python() -> PathBuf {
    let programs = Path::new(TARGET).join("../python-data/bin");
    assert!(programs.is_dir(), "{}: run scripts/python-data", programs.display());
    programs
}

fn path_with_data_python() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", data_python().display())
}
