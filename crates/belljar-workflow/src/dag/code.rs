//! Code in a graph: its text, its grants and its limits.

use belljar_contract::JsonMap;
use belljar_contract::{EngineName, Language, Limit, LimitsRequest, TaskGrants};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap as _};

/// Code and what it may reach and use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Code {
    /// The language of the code; Python in a graph that states none.
    pub language: Language,
    /// The engine that runs it; `None` is the operator's for its language. Written only if it is stated,
    /// because the hash of this text names the run of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// The code; not a template, unless `template` says so.
    pub code: String,
    /// Whether the code is a template, for code that an earlier task wrote.
    pub template: bool,
    /// The shape of the task's result.
    pub shape: ResultShape,
    /// The code's `context`, templates; the results of dependencies are in `context.deps`.
    pub context: JsonMap,
    /// A description of the code's purpose, by which tools are found for it.
    pub intent: Option<String>,
    /// The grants of the code.
    pub grants: TaskGrants,
    /// The limits of the code.
    #[serde(serialize_with = "task_limits")]
    pub limits: Box<LimitsRequest>,
    /// Whether the code sees the files of the workflow.
    pub files: bool,
    /// Whether the code has no writable files at all, neither its own nor the workflow's.
    pub no_room: bool,
}

impl Default for Code {
    fn default() -> Self {
        Self {
            language: Language::Python,
            engine: None,
            code: String::new(),
            template: false,
            shape: ResultShape::default(),
            context: JsonMap::new(),
            intent: None,
            grants: TaskGrants::default(),
            limits: Box::default(),
            files: false,
            no_room: false,
        }
    }
}

/// The shape of the result of a code task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultShape {
    /// The value the code returned; when the code fails, the task fails.
    #[default]
    Value,
    /// `{success, stdout, stderr, return_value, error, execution_time_ms}`; when the code fails,
    /// the task ends with `success: false`.
    Report,
    /// As `Value`, for the body of a node: the keys of `context` are global names, and the code may
    /// `return` at top level.
    Node,
}

/// Writes limits as workflows have always had them: four that are there even when nothing states them,
/// then the others that are stated. The hash of this text names the run of a task, so a run that an
/// earlier version began is found only if the text stays the same.
pub(super) fn task_limits<S: Serializer>(
    limits: &LimitsRequest,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    const ALWAYS: [Limit; 4] =
        [Limit::Timeout, Limit::Memory, Limit::OutputBytes, Limit::ToolCalls];
    let stated = limits.stated();
    let mut map = serializer.serialize_map(None)?;
    for limit in ALWAYS {
        let number = stated.iter().find(|(other, _)| *other == limit).map(|(_, number)| number);
        map.serialize_entry(limit.json_key(), &number)?;
    }
    for (limit, number) in stated.iter().filter(|(limit, _)| !ALWAYS.contains(limit)) {
        map.serialize_entry(limit.json_key(), number)?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a task's run is a hash of this text, so code that names no engine is written as it
    /// was before there were any.
    #[test]
    fn f6_an_engine_is_written_only_if_it_is_stated() {
        let mut code = Code { code: "1".into(), ..Code::default() };
        let rest = r#""code":"1","template":false,"shape":"value","context":{},"intent":null,"grants":{"tools":null,"read":[],"write":false,"env":[],"modules":null,"commands":[],"permissive":false},"limits":{"timeout_ms":null,"memory_mb":null,"output_bytes":null,"tool_calls":null},"files":false,"no_room":false}"#;
        let text = |code: &Code| serde_json::to_string(code).unwrap_or_default();
        assert_eq!(text(&code), format!(r#"{{"language":"python",{rest}"#));
        code.engine = Some(EngineName::CPython);
        let stated = format!(r#"{{"language":"python","engine":"cpython",{rest}"#);
        assert_eq!(text(&code), stated);
        assert_eq!(serde_json::from_str::<Code>(&stated).ok(), Some(code));
    }

    /// The text that names the runs of tasks is the one that version 0.1.0 wrote.
    #[test]
    fn f6_limits_are_written_as_they_always_were() {
        let text = |limits: LimitsRequest| {
            let code = Code { limits: Box::new(limits), ..Code::default() };
            serde_json::to_value(&code).map(|code| code["limits"].to_string()).ok()
        };
        let none = r#"{"memory_mb":null,"output_bytes":null,"timeout_ms":null,"tool_calls":null}"#;
        assert_eq!(text(LimitsRequest::default()).as_deref(), Some(none));
        let some = r#"{"memory_mb":64,"output_bytes":null,"timeout_ms":500,"tool_calls":null}"#;
        let limits =
            LimitsRequest { timeout_ms: Some(500), memory_mb: Some(64), ..Default::default() };
        assert_eq!(text(limits).as_deref(), Some(some));
        let read: Code =
            serde_json::from_str(&format!("{{\"limits\":{some}}}")).unwrap_or_default();
        assert_eq!((read.limits.timeout_ms, read.limits.memory_mb), (Some(500), Some(64)));
    }

    /// Likewise the text of a task's grants: read and written again it is the one of version 0.1.0, for
    /// grants that are asked for and for those that are not.
    #[test]
    fn f6_grants_are_written_as_they_always_were() {
        let none = concat!(
            r#"{"tools":null,"read":[],"write":false,"env":[],"modules":null,"#,
            r#""commands":[],"permissive":false}"#
        );
        let all = concat!(
            r#"{"tools":["git__log"],"read":["/a","/b"],"write":["/c"],"env":["HOME"],"#,
            r#""modules":["os"],"commands":["rm","git"],"permissive":true}"#
        );
        let empty = concat!(
            r#"{"tools":[],"read":[],"write":true,"env":[],"modules":[],"#,
            r#""commands":[],"permissive":false}"#
        );
        for (asked, written) in [("{}", none), (none, none), (all, all), (empty, empty)] {
            let code: Code =
                serde_json::from_str(&format!("{{\"grants\":{asked}}}")).expect("code");
            assert_eq!(serde_json::to_string(&code.grants).expect("JSON"), written, "{asked}");
        }
        let sorted = r#"{"commands":[],"env":[],"modules":null,"permissive":false,"read":[],"tools":null,"write":false}"#;
        let code = serde_json::to_value(Code::default()).expect("JSON");
        assert_eq!(code["grants"].to_string(), sorted);
        for wrong in
            [r#"{"reads":[]}"#, r#"{"read":"/a"}"#, r#"{"write":1}"#, r#"{"env":{"A":"b"}}"#]
        {
            assert!(serde_json::from_str::<TaskGrants>(wrong).is_err(), "{wrong}");
        }
    }
}
