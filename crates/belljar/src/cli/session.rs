//! `belljar session`: sessions of the host that runs for this project.
//!
//! Sessions live in the memory of `belljar serve --http`; these commands are requests to it.

mod client;

use std::{io, io::Write as _, path::Path, process::ExitCode, time::Duration};

use anyhow::{Context as _, anyhow, bail};
use belljar_contract::{RunResult, SessionInfo, SessionRequest, WorkspaceRequest};
use belljar_project::{Project, config::ProjectSettings, now_ms};
use client::{HostClient, HostRefusal, Method};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    access::requested_grants,
    arguments::{
        RunArguments, SessionCommand, SessionExecArguments, SessionForkArguments,
        SessionNewArguments,
    },
    artifacts, print_json,
    report::FrameSource,
    run::{exit_code, print_result},
    source,
    source::CodeSource,
    terminal::{columns::columns, elapsed::ago, style::TextStyle},
};

pub(crate) use client::AddressFile;

/// Runs `belljar session`: sends one request about a session to the running host.
pub(crate) fn session(command: &SessionCommand, project: &Project) -> anyhow::Result<ExitCode> {
    let client = HostClient::of_host(project)?;
    match command {
        SessionCommand::New(new) => make(&client, new),
        SessionCommand::Exec(exec) => execute(&client, exec),
        SessionCommand::Checkpoint(named) => {
            let path = format!("/v1/sessions/{}/checkpoints", segment(&named.id)?);
            let taken = client.ask(Method::Post, &path, None)?;
            for dropped in texts(&taken, "dropped") {
                writeln!(io::stderr(), "note: checkpoint {dropped} was dropped to make room")?;
            }
            show(&taken, "checkpoint_id", named.json)
        }
        SessionCommand::Rollback(back) => {
            let path = format!("/v1/sessions/{}/rollback", segment(&back.id)?);
            let body = json!({ "checkpoint_id": back.checkpoint });
            client.ask(Method::Post, &path, Some(&body))?;
            Ok(ExitCode::SUCCESS)
        }
        SessionCommand::Fork(fork) => branch(&client, fork),
        SessionCommand::List(list) => show_all(&client, list.json),
        SessionCommand::Rm(remove) => {
            for id in &remove.ids {
                client.ask(Method::Delete, &format!("/v1/sessions/{}", segment(id)?), None)?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs `belljar run --session ID`.
pub(crate) fn run_in(
    id: &str,
    arguments: &RunArguments,
    settings: &ProjectSettings,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let client = HostClient::of_host(project)?;
    let source = CodeSource::load(arguments)?;
    let mut body = code(&source, arguments.language.is_some() || arguments.file.is_some());
    if let Some(engine) = arguments.engine {
        body.insert("engine".to_owned(), engine.as_str().into());
    }
    let context = source::context(arguments, settings.maximum.context_bytes)?;
    if let Some(tokens) = arguments.tools.max_output_tokens {
        body.insert("max_output_tokens".to_owned(), tokens.into());
    }
    // The host refuses limits that are the session's own.
    let given = arguments.limits.given().iter();
    let limits: Map<_, _> = given
        .map(|(limit, amount)| (limit.json_key().to_owned(), limit.to_json(*amount).into()))
        .collect();
    body.insert("limits".to_owned(), limits.into());
    if !arguments.tools.only.is_empty() {
        body.insert("grants".to_owned(), json!({ "tools": arguments.tools.only }));
    }
    let body = with_context(&Value::from(body).to_string(), context.as_deref());
    run(&client, id, &source, &body, (arguments.json, arguments.artifacts.as_deref()))
}

/// The text of an object with the context as another field, as it was written.
fn with_context(object: &str, context: Option<&RawValue>) -> String {
    match (object.strip_suffix('}'), context) {
        (Some("{"), Some(context)) => format!("{{\"context\":{context}}}"),
        (Some(fields), Some(context)) => format!("{fields},\"context\":{context}}}"),
        (None, _) | (_, None) => object.to_owned(),
    }
}

/// Runs code in a session and prints the result.
fn run(
    client: &HostClient,
    id: &str,
    source: &CodeSource,
    body: &str,
    (as_json, directory): (bool, Option<&Path>),
) -> anyhow::Result<ExitCode> {
    let path = format!("/v1/sessions/{}/runs", segment(id)?);
    let answer = client.ask_text(Method::Post, &path, Some(body));
    let answer = answer.or_else(|error| match error.downcast_ref::<HostRefusal>() {
        Some(HostRefusal { run: Some(run), .. }) => {
            client.ask_text(Method::Get, &format!("/v1/runs/{}", segment(run)?), None)
        }
        _ => Err(error),
    })?;
    let result: RunResult = serde_json::from_slice(&answer).context("the host sent no result")?;
    let shown = FrameSource { code: &source.code, name: &source.shown_name };
    let printed = match as_json {
        true => print_json(&result),
        false => print_result(&result, shown, false),
    };
    if let Some(directory) = directory {
        artifacts::save(&result.artifacts, directory)?;
    }
    exit_code(printed, &result, None)
}

fn make(client: &HostClient, new: &SessionNewArguments) -> anyhow::Result<ExitCode> {
    let body = serde_json::to_value(request(new)?).context("cannot write the request as JSON")?;
    let made = client.ask(Method::Post, "/v1/sessions", Some(&body))?;
    show(&made, "session_id", new.json)
}

/// The session that the flags ask for.
fn request(new: &SessionNewArguments) -> anyhow::Result<SessionRequest> {
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs().max(1));
    let mut request = SessionRequest {
        language: new.language,
        engine: new.engine,
        idle_seconds: seconds(new.idle),
        lifetime_seconds: seconds(new.lifetime),
        ..SessionRequest::default()
    };
    let grants = requested_grants(&new.grants)?;
    let given = grants.given();
    for (grant, value) in grants.values().into_iter().filter(|(grant, _)| given.contains(grant)) {
        let json = value.to_json().context("a path is not UTF-8 text")?;
        let refused = |wanted| anyhow!("{} must be {wanted}", grant.key());
        request.grants.set(grant, &json).map_err(refused)?;
    }
    for (limit, amount) in new.limits.given() {
        request.limits.set(*limit, limit.to_json(*amount));
    }
    if let Some(path) = &new.workspace {
        let path = std::path::absolute(path).context("cannot make the workspace path absolute")?;
        let path = path.to_str().context("the path of the workspace is not UTF-8 text")?.to_owned();
        let (commit, commit_executable) = (false, Vec::new());
        request.workspace = Some(WorkspaceRequest { path, commit, commit_executable });
    }
    Ok(request)
}

fn execute(client: &HostClient, exec: &SessionExecArguments) -> anyhow::Result<ExitCode> {
    let (code, file) = (exec.code.clone(), exec.file.clone());
    let arguments = RunArguments { code, file, ..RunArguments::default() };
    let source = CodeSource::load(&arguments)?;
    let body = self::code(&source, exec.file.is_some());
    run(client, &exec.id, &source, &Value::from(body).to_string(), (exec.json, None))
}

/// The code, and its language if one was given; otherwise the session's language is used.
fn code(source: &CodeSource, says_language: bool) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("code".to_owned(), source.code.clone().into());
    if says_language {
        body.insert("language".to_owned(), source.language.as_str().into());
    }
    body
}

fn branch(client: &HostClient, fork: &SessionForkArguments) -> anyhow::Result<ExitCode> {
    let mut body = json!({ "count": fork.count });
    if let (Some(from), Some(fields)) = (&fork.from, body.as_object_mut()) {
        fields.insert("checkpoint_id".to_owned(), from.clone().into());
    }
    let path = format!("/v1/sessions/{}/fork", segment(&fork.id)?);
    let forked = client.ask(Method::Post, &path, Some(&body))?;
    if fork.json {
        print_json(&forked)?;
        return Ok(ExitCode::SUCCESS);
    }
    for id in texts(&forked, "session_ids") {
        writeln!(io::stdout(), "{id}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_all(client: &HostClient, as_json: bool) -> anyhow::Result<ExitCode> {
    let mut all = client.ask(Method::Get, "/v1/sessions", None)?;
    let all =
        all.get_mut("sessions").map(Value::take).context("the host sent no list of sessions")?;
    if as_json {
        print_json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let all: Vec<SessionInfo> =
        serde_json::from_value(all).context("the host sent no list of sessions")?;
    if all.is_empty() {
        writeln!(io::stderr(), "the host has no sessions: belljar session new")?;
        return Ok(ExitCode::SUCCESS);
    }
    let headings = ["SESSION", "LANGUAGE", "CREATED", "LAST USED", "RUNS", "MEMORY", "CHECKPOINTS"];
    let rows: Vec<_> = all.iter().map(row).collect();
    io::stdout().write_all(columns(headings, &rows, TextStyle::of_stdout()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn row(session: &SessionInfo) -> [String; 7] {
    let now = now_ms();
    let used =
        if session.busy { "now".to_owned() } else { ago(session.last_used_ms.cast_signed(), now) };
    let memory = session
        .memory_bytes
        .map_or_else(String::new, |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)));
    [
        session.session_id.to_string(),
        session.language.to_string(),
        ago(session.created_ms.cast_signed(), now),
        used,
        session.runs.to_string(),
        memory,
        session.checkpoints.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(" "),
    ]
}

/// Prints one field of an answer, or all of it as JSON.
fn show(answer: &Value, name: &str, as_json: bool) -> anyhow::Result<ExitCode> {
    if as_json {
        print_json(answer)?;
    } else {
        let id = answer.get(name).and_then(Value::as_str).context("the host sent no id")?;
        writeln!(io::stdout(), "{id}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn texts(answer: &Value, name: &str) -> Vec<String> {
    let list = answer.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Checks an id that becomes part of a URL path.
fn segment(id: &str) -> anyhow::Result<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if id.is_empty() || id.len() > 100 || !id.bytes().all(is_plain) {
        bail!("{id:?} is not a valid id");
    }
    Ok(id.to_owned())
}
