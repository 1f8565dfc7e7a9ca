//! Servers as written in files: strict in `belljar.toml`, lenient in the files of other clients.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;
use serde_json::Value;

use super::ServerConfigError;

/// One table `[mcp_servers.NAME]` of `belljar.toml`. Unknown keys are errors.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawServer {
    /// A program that speaks over its standard streams.
    pub command: Option<String>,
    /// The command-line arguments of the program.
    pub args: Vec<String>,
    /// Variables it gets in addition to a few harmless ones.
    pub env: BTreeMap<String, String>,
    /// The directory the program is started in; relative ones start from the project.
    pub cwd: Option<String>,
    /// `stdio` or `http`; needed only where `command` and `url` do not say it.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The endpoint of a server that speaks streamable HTTP.
    pub url: Option<String>,
    /// Headers sent with each request.
    pub headers: BTreeMap<String, String>,
    /// Whether the server is left out, as if it were not configured.
    pub disabled: bool,
    /// Whether the annotations of its tools are believed.
    pub trusted: bool,
    /// How many calls it gets at once.
    pub max_concurrent: Option<usize>,
    /// How many calls it gets in any minute.
    pub rate_per_minute: Option<u32>,
    /// The longest a call may take, in seconds.
    pub timeout: Option<u64>,
    /// After how many seconds without a call it is ended.
    pub idle_seconds: Option<u64>,
    /// Globs of tools whose calls may be repeated when it is unknown whether they happened.
    pub idempotent: Vec<String>,
    /// Globs of tools that change nothing.
    pub read_only: Vec<String>,
}

/// Values may be secrets, arguments and addresses too.
impl fmt::Debug for RawServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RawServer")
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .field("headers", &self.headers.keys())
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}

/// How the host connects to a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TransportKind<'a> {
    Stdio { command: &'a str },
    Http { url: &'a str },
}

impl RawServer {
    /// The transport, by `type` or else by whether `command` or `url` is set.
    pub(super) fn kind(&self, server: &str) -> Result<TransportKind<'_>, ServerConfigError> {
        let server = || server.to_owned();
        let none = || ServerConfigError::NoTransport { server: server() };
        let (command, url) = (self.command.as_deref(), self.url.as_deref());
        match self.kind.as_deref() {
            Some("stdio") => Ok(TransportKind::Stdio { command: command.ok_or_else(none)? }),
            Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => {
                Ok(TransportKind::Http { url: url.ok_or_else(none)? })
            }
            Some("sse") => Err(ServerConfigError::Sse { server: server() }),
            Some(kind) => {
                Err(ServerConfigError::UnknownType { server: server(), kind: kind.to_owned() })
            }
            None => match (command, url) {
                (Some(command), None) => Ok(TransportKind::Stdio { command }),
                (None, Some(url)) => Ok(TransportKind::Http { url }),
                (None, None) => Err(none()),
                (Some(_), Some(_)) => Err(ServerConfigError::TwoTransports { server: server() }),
            },
        }
    }
}

/// One server as other clients write it. Unknown keys are ignored.
#[derive(Deserialize)]
struct ForeignServer {
    command: Option<String>,
    #[serde(default)]
    args: Vec<Scalar>,
    #[serde(default)]
    env: BTreeMap<String, Scalar>,
    cwd: Option<String>,
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, Scalar>,
    #[serde(default)]
    disabled: bool,
}

/// A text, or a value that people write instead of one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Bool(bool),
    Number(serde_json::Number),
}

impl Scalar {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => number.to_string(),
        }
    }
}

impl From<ForeignServer> for RawServer {
    fn from(foreign: ForeignServer) -> Self {
        let texts = |table: BTreeMap<String, Scalar>| {
            table.into_iter().map(|(key, value)| (key, value.into_text())).collect()
        };
        Self {
            command: foreign.command,
            args: foreign.args.into_iter().map(Scalar::into_text).collect(),
            env: texts(foreign.env),
            cwd: foreign.cwd,
            kind: foreign.kind,
            url: foreign.url,
            headers: texts(foreign.headers),
            disabled: foreign.disabled,
            ..Self::default()
        }
    }
}

/// Reads the servers of a `.mcp.json`, or of any JSON object with an `mcpServers` in it (VS Code calls
/// it `servers`). Unknown keys are ignored.
pub fn read_mcp_json(text: &str) -> Result<BTreeMap<String, RawServer>, ServerConfigError> {
    // Some editors put a byte order mark first.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut file: serde_json::Map<String, Value> = serde_json::from_str(text)?;
    let servers = file.remove("mcpServers").or_else(|| file.remove("servers"));
    let servers = servers.ok_or(ServerConfigError::NoServers)?;
    let servers: BTreeMap<String, ForeignServer> = serde_json::from_value(servers)?;
    Ok(servers.into_iter().map(|(name, server)| (name, server.into())).collect())
}
