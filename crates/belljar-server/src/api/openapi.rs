//! `/openapi.json`: the API as OpenAPI 3.1, generated from the types that bodies are decoded into.

use std::sync::LazyLock;

use belljar_contract::{
    ExecuteRequest, MAX_JSON_INTEGER, SessionFile, SessionInfo, SessionRequest,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    body::{DecisionRequest, ForkRequest, RollbackRequest, SearchRequest},
    error::ErrorBody,
    events::EventsQuery,
    runs::{RunListQuery, RunQuery},
    shapes::{
        ApprovalList, CheckpointList, EventList, ForkedSessions, Health, RecordedDecision,
        RolledBack, RunList, RunReply, SessionList,
    },
    workflows::body::{
        self as workflow, CommandRequest, WorkflowBody, WorkflowEventList, WorkflowEventsQuery,
        WorkflowForkBody, WorkflowList, WorkflowState,
    },
};
use crate::{
    backend::ToolsFound,
    sessions::{CheckpointTaken, FileList},
    workflows::WorkflowCommandAnswer,
};

const SCHEMAS: &str = "#/components/schemas";
/// Names separated by slashes; none of them is `.` or `..`.
const FILE_PATH: &str = r"^(?!\.{1,2}(/|$))(?!.*/\.{1,2}(/|$))[^/\u0000-\u001f\u007f-\u009f]{1,80}(/[^/\u0000-\u001f\u007f-\u009f]{1,80}){0,8}$";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BYTES: &str = "application/octet-stream";

/// The operations that take a session's id, and the parameter it goes into.
const OF_SESSIONS: &[(&str, &str)] = &[
    ("getSession", "id"),
    ("runInSession", "id"),
    ("checkpoint", "id"),
    ("listCheckpoints", "id"),
    ("rollback", "id"),
    ("fork", "id"),
    ("listFiles", "id"),
    ("putFile", "id"),
    ("getFile", "id"),
    ("deleteFile", "id"),
    ("destroySession", "id"),
];

/// The document; built once, on first use.
pub(super) fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| DocumentWriter::new().write());
    &DOCUMENT
}

/// Writes the paths, and collects the schemas they refer to.
struct DocumentWriter {
    types: SchemaGenerator,
    paths: Map<String, Value>,
}

/// One operation while it is being built.
struct Operation {
    fields: Map<String, Value>,
    parameters: Vec<Value>,
    responses: Map<String, Value>,
}

impl DocumentWriter {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = format!("{}/", SCHEMAS.trim_start_matches('#')).into();
        settings.meta_schema = None;
        Self { types: settings.into_generator(), paths: Map::new() }
    }

    fn write(mut self) -> Value {
        self.runs();
        self.sessions();
        self.branches();
        self.files();
        self.workflows();
        self.others();
        let error = self.named::<ErrorBody>();
        let mut schemas = Value::Object(self.types.take_definitions(true));
        bound_integers(&mut schemas);
        let mut paths = Value::Object(self.paths);
        bound_integers(&mut paths);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Belljar",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Runs the code an LLM agent writes, sealed in a sandbox.",
                "license": {"name": "MIT", "identifier": "MIT"},
            },
            "servers": [{"url": "/"}],
            "security": [{"token": []}],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer",
                    "description": "The token in .belljar/token of the project."}},
                "responses": {"error": {
                    "description": "An error; nothing was changed.",
                    "content": {JSON: {"schema": error}},
                }},
            },
        })
    }

    fn runs(&mut self) {
        let run = self.named::<ExecuteRequest>();
        let result = self.named::<RunReply>();
        let started = |name: &str, summary: &str| {
            Operation::new(name, summary)
                .takes(&run, true)
                .answers(
                    "200",
                    "The result; with `Accept: text/event-stream`, the events as they happen.",
                    &[(JSON, result.clone()), (EVENTS, json!({"type": "string"}))],
                )
                .answers(
                    "202",
                    "The run waits for a person, and continues after the decision.",
                    &[(JSON, result.clone())],
                )
        };
        let run_it = started("run", "Run code");
        let next = [("getRun", "id"), ("abortRun", "id")];
        self.add("post", "/v1/runs", run_it.leads_to("200", "id", &next));
        let in_session = started("runInSession", "Run code in a session").id();
        self.add("post", "/v1/sessions/{id}/runs", in_session);
        let list = self.named::<RunList>();
        let query = self.query::<RunListQuery>();
        let runs = Operation::new("listRuns", "List the newest runs").query(query);
        self.add("get", "/v1/runs", runs.gives("200", &list));
        let query = self.query::<RunQuery>();
        let look = Operation::new("getRun", "Get the state of a run").id().query(query);
        self.add("get", "/v1/runs/{id}", look.gives("200", &result));
        let abort = Operation::new("abortRun", "End a run").id();
        self.add("delete", "/v1/runs/{id}", abort.gives("200", &result));
    }

    fn sessions(&mut self) {
        let (asked, session) = (self.named::<SessionRequest>(), self.named::<SessionInfo>());
        let create = Operation::new("createSession", "Create a session").takes(&asked, true);
        let create = create.gives("201", &session).leads_to("201", "session_id", OF_SESSIONS);
        self.add("post", "/v1/sessions", create);
        let all = self.named::<SessionList>();
        let list = Operation::new("listSessions", "List the live sessions");
        self.add("get", "/v1/sessions", list.gives("200", &all));
        let look = Operation::new("getSession", "Get a session").id();
        self.add("get", "/v1/sessions/{id}", look.gives("200", &session));
        let destroy = Operation::new("destroySession", "End a session").id();
        self.add(
            "delete",
            "/v1/sessions/{id}",
            destroy.answers("204", "The session has ended.", &[]),
        );
    }

    fn branches(&mut self) {
        let taken = self.named::<CheckpointTaken>();
        let checkpoint = Operation::new("checkpoint", "Take a checkpoint of a session").id();
        let at = "/v1/sessions/{id}/checkpoints";
        self.add("post", at, checkpoint.gives("201", &taken));
        let all = self.named::<CheckpointList>();
        let list = Operation::new("listCheckpoints", "List the checkpoints of a session").id();
        self.add("get", at, list.gives("200", &all));
        let (back, done) = (self.named::<RollbackRequest>(), self.named::<RolledBack>());
        let rollback = Operation::new("rollback", "Roll a session back to a checkpoint").id();
        let rollback = rollback.takes(&back, true).gives("200", &done);
        self.add("post", "/v1/sessions/{id}/rollback", rollback);
        let (asked, forked) = (self.named::<ForkRequest>(), self.named::<ForkedSessions>());
        let fork = Operation::new("fork", "Fork a session").id();
        let fork = fork.takes(&asked, false).gives("201", &forked);
        self.add("post", "/v1/sessions/{id}/fork", fork);
    }

    fn files(&mut self) {
        let (info, all) = (self.named::<SessionFile>(), self.named::<FileList>());
        let list = Operation::new("listFiles", "List the files beneath /work").id();
        self.add("get", "/v1/sessions/{id}/files", list.gives("200", &all));
        let at = "/v1/sessions/{id}/files/{path}";
        let bytes = json!({"type": "string", "format": "binary"});
        let get = Operation::new("getFile", "Read a file").id().path();
        let get = get.answers("200", "The bytes of the file.", &[(BYTES, bytes.clone())]);
        self.add("get", at, get);
        let body = json!({"required": true, "content": {BYTES: {"schema": bytes}}});
        let put = Operation::new("putFile", "Write a file").id().path().with("requestBody", body);
        self.add("put", at, put.gives("200", &info));
        let handle = Operation::new("getBlob", "Read a file or a value by its handle")
            .named_in_path("handle");
        let handle = handle.answers(
            "200",
            "Its bytes.",
            &[(BYTES, json!({"type": "string", "format": "binary"}))],
        );
        self.add("get", "/v1/blobs/{handle}", handle);
        let delete = Operation::new("deleteFile", "Remove a file").id().path();
        self.add("delete", at, delete.answers("204", "It is deleted.", &[]));
    }

    fn workflows(&mut self) {
        let (asked, stands) = (self.named::<WorkflowBody>(), self.named::<WorkflowState>());
        let create = Operation::new("runWorkflow", "Run a workflow").takes(&asked, true);
        let next = [("getWorkflow", "id"), ("workflowEvents", "id"), ("commandWorkflow", "id")];
        let create = create.gives("201", &stands).leads_to("201", "id", &next);
        self.add("post", "/v1/workflows", create);
        let (query, all) =
            (self.query::<workflow::WorkflowListQuery>(), self.named::<WorkflowList>());
        let list = Operation::new("listWorkflows", "List workflows, newest first").query(query);
        self.add("get", "/v1/workflows", list.gives("200", &all));
        let query = self.query::<workflow::WorkflowQuery>();
        let look = Operation::new("getWorkflow", "Get the state of a workflow").id().query(query);
        self.add("get", "/v1/workflows/{id}", look.gives("200", &stands));
        let (query, all) = (self.query::<WorkflowEventsQuery>(), self.named::<WorkflowEventList>());
        let events = Operation::new("workflowEvents", "List or follow the events of a workflow");
        let said = "A list; with `Accept: text/event-stream`, as it happens.";
        let events = events
            .id()
            .query(query)
            .answers("200", said, &[(JSON, all), (EVENTS, json!({"type": "string"}))])
            .answers(
                "204",
                "To a client that follows: the workflow has ended, and there are no more events.",
                &[],
            );
        self.add("get", "/v1/workflows/{id}/events", events);
        let (asked, answer) =
            (self.named::<CommandRequest>(), self.named::<WorkflowCommandAnswer>());
        let command = Operation::new("commandWorkflow", "Send a command to a workflow").id();
        let command = command.takes(&asked, true).gives("200", &answer).answers(
            "202",
            "The command is queued; the workflow has not answered yet.",
            &[(JSON, answer)],
        );
        self.add("post", "/v1/workflows/{id}/commands", command);
        let asked = self.named::<WorkflowForkBody>();
        let fork = Operation::new("forkWorkflow", "Fork a workflow from a checkpoint").id();
        let fork = fork.takes(&asked, false).gives("201", &stands);
        self.add("post", "/v1/workflows/{id}/fork", fork);
        let forget = Operation::new("forgetWorkflow", "Delete a workflow that has ended").id();
        self.add("delete", "/v1/workflows/{id}", forget.answers("204", "It is deleted.", &[]));
    }

    fn others(&mut self) {
        let waiting = self.named::<ApprovalList>();
        let list = Operation::new("listApprovals", "List tool calls that wait for a person");
        self.add("get", "/v1/approvals", list.gives("200", &waiting));
        let (asked, decided) = (self.named::<DecisionRequest>(), self.named::<RecordedDecision>());
        let decide = Operation::new("decide", "Decide about a tool call").id();
        let decide = decide.takes(&asked, true).gives("200", &decided);
        self.add("post", "/v1/approvals/{id}", decide);
        let (query, all) = (self.query::<EventsQuery>(), self.named::<EventList>());
        let events = Operation::new("events", "List or follow events").query(query);
        let said = "A list; with `Accept: text/event-stream`, as it happens.";
        let events =
            events.answers("200", said, &[(JSON, all), (EVENTS, json!({"type": "string"}))]);
        self.add("get", "/v1/events", events);
        let (asked, found) = (self.named::<SearchRequest>(), self.named::<ToolsFound>());
        let search = Operation::new("searchTools", "Find tools for an intent");
        let search = search.takes(&asked, true).gives("200", &found);
        self.add("post", "/v1/tools/search", search);
        let health = self.named::<Health>();
        let alive = Operation::new("health", "Get the health of the server");
        let alive = alive.with("security", json!([]));
        self.add("get", "/healthz", alive.gives("200", &health));
        let text = json!({"type": "string"});
        let metrics = Operation::new("metrics", "Counters and histograms, for Prometheus");
        let metrics = metrics.answers(
            "200",
            "Metrics in the text format of Prometheus.",
            &[("text/plain", text)],
        );
        self.add("get", "/metrics", metrics);
        let this = Operation::new("openapi", "This document");
        self.add("get", "/openapi.json", this.gives("200", &json!({"type": "object"})));
    }

    fn named<T: JsonSchema>(&mut self) -> Value {
        self.types.subschema_for::<T>().to_value()
    }

    /// The fields of a type, as query parameters.
    fn query<T: JsonSchema>(&mut self) -> Vec<Value> {
        let schema: Schema = T::json_schema(&mut self.types);
        let fields = schema.get("properties").and_then(Value::as_object);
        let parameter = |(name, schema): (&String, &Value)| {
            let mut schema = schema.as_object().cloned().unwrap_or_default();
            let text = schema.remove("description");
            let kinds = schema.get("type").and_then(Value::as_array);
            // A query parameter can be absent but never null.
            if let Some(kind) = kinds.and_then(|kinds| kinds.first()).cloned() {
                schema.insert("type".to_owned(), kind);
            }
            json!({"name": name, "in": "query", "description": text, "schema": schema})
        };
        fields.into_iter().flatten().map(parameter).collect()
    }

    fn add(&mut self, method: &str, path: &str, operation: Operation) {
        let at = self.paths.entry(path).or_insert_with(|| json!({}));
        if let Some(methods) = at.as_object_mut() {
            methods.insert(method.to_owned(), operation.into_value());
        }
    }
}

impl Operation {
    fn new(name: &str, summary: &str) -> Self {
        let error = json!({"$ref": "#/components/responses/error"});
        let fields = [("operationId", name), ("summary", summary)];
        let fields = fields.map(|(field, text)| (field.to_owned(), json!(text)));
        let responses = ["4XX", "5XX"].map(|status| (status.to_owned(), error.clone()));
        Self {
            fields: fields.into_iter().collect(),
            parameters: Vec::new(),
            responses: responses.into_iter().collect(),
        }
    }

    fn into_value(self) -> Value {
        let Self { mut fields, parameters, responses } = self;
        fields.insert("parameters".to_owned(), Value::Array(parameters));
        fields.insert("responses".to_owned(), Value::Object(responses));
        Value::Object(fields)
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.to_owned(), value);
        self
    }

    fn id(self) -> Self {
        self.named_in_path("id")
    }

    fn named_in_path(self, name: &str) -> Self {
        let schema = json!({"type": "string", "minLength": 1});
        self.query(vec![json!({"name": name, "in": "path", "required": true, "schema": schema})])
    }

    fn path(self) -> Self {
        let schema = json!({"type": "string", "pattern": FILE_PATH});
        let text = "Relative to /work; slashes are not escaped.";
        self.query(vec![json!({
            "name": "path", "in": "path", "required": true, "description": text, "schema": schema,
        })])
    }

    fn query(mut self, more: Vec<Value>) -> Self {
        self.parameters.extend(more);
        self
    }

    fn takes(self, schema: &Value, required: bool) -> Self {
        let content = json!({JSON: {"schema": schema}});
        self.with("requestBody", json!({"required": required, "content": content}))
    }

    fn gives(self, status: &str, schema: &Value) -> Self {
        self.answers(status, "Done.", &[(JSON, schema.clone())])
    }

    fn answers(mut self, status: &str, text: &str, content: &[(&str, Value)]) -> Self {
        let one = |(kind, schema): &(&str, Value)| ((*kind).to_owned(), json!({"schema": schema}));
        let content: Map<String, Value> = content.iter().map(one).collect();
        let answer = match content.is_empty() {
            true => json!({"description": text}),
            false => json!({"description": text, "content": content}),
        };
        self.responses.insert(status.to_owned(), answer);
        self
    }

    /// Links to the operations that take the value of a field of the answer.
    fn leads_to(mut self, status: &str, field: &str, operations: &[(&str, &str)]) -> Self {
        let link = |(operation, parameter): &(&str, &str)| {
            let from = format!("$response.body#/{field}");
            let link = json!({"operationId": operation, "parameters": {*parameter: from}});
            ((*operation).to_owned(), link)
        };
        let links: Map<String, Value> = operations.iter().map(link).collect();
        if let Some(answer) = self.responses.get_mut(status).and_then(Value::as_object_mut) {
            answer.insert("links".to_owned(), Value::Object(links));
        }
        self
    }
}

/// Adds the maximum to every integer; the generated schema only has its width.
fn bound_integers(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let most = match fields.get("format").and_then(Value::as_str) {
                Some("uint64") => Some(MAX_JSON_INTEGER),
                Some("uint32") => Some(u64::from(u32::MAX)),
                _ => None,
            };
            if let Some(most) = most {
                fields.remove("format");
                fields.entry("maximum").or_insert_with(|| json!(most));
            }
            fields.values_mut().for_each(bound_integers);
        }
        Value::Array(items) => items.iter_mut().for_each(bound_integers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
