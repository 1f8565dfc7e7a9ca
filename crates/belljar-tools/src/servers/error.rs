//! What is wrong with the configuration of a server, and what to write instead.

use thiserror::Error;

/// Why a server cannot be used as it is configured. Messages name server and key, and never the value
/// of a variable.
#[derive(Debug, Error)]
pub enum ServerConfigError {
    /// The file is not what it should be.
    #[error("not a list of MCP servers: {0}")]
    Json(#[from] serde_json::Error),
    /// The file has no servers in it.
    #[error("no `mcpServers` in it")]
    NoServers,
    /// The name cannot be part of a tool's name.
    #[error("the server name `{name}` {rule}; rename it, for example to `{suggestion}`")]
    Name {
        /// The name as it is configured.
        name: String,
        /// What is wrong with it.
        rule: &'static str,
        /// A name that would do.
        suggestion: String,
    },
    /// It can be neither started nor reached.
    #[error("server `{server}` has neither `command` nor `url`; it needs one of them")]
    NoTransport {
        /// The server's name in the configuration.
        server: String,
    },
    /// It could be both started and reached.
    #[error("server `{server}` has both `command` and `url`; remove one, or say which by `type`")]
    TwoTransports {
        /// The server's name in the configuration.
        server: String,
    },
    /// The transport of the first protocol revision, superseded in 2025.
    #[error(
        "server `{server}` has type `sse`, which Belljar does not speak; most such servers also offer \
         streamable HTTP: set `type` to `http` and `url` to that endpoint"
    )]
    Sse {
        /// The server's name in the configuration.
        server: String,
    },
    /// Its `type` is no transport that this program knows.
    #[error("server `{server}` has type `{kind}`; known are `stdio` and `http`")]
    UnknownType {
        /// The server's name in the configuration.
        server: String,
        /// The `type` as it is configured.
        kind: String,
    },
    /// The endpoint is no HTTP address.
    #[error("`url` of server `{server}` does not begin with http:// or https://")]
    Url {
        /// The server's name in the configuration.
        server: String,
    },
    /// A variable has no value.
    #[error(
        "`{key}` of server `{server}` needs the variable `{variable}`, which is not set; set it, or \
         give a default: ${{{variable}:-…}}"
    )]
    Unset {
        /// The server's name in the configuration.
        server: String,
        /// Where it is used.
        key: String,
        /// The variable that is not set.
        variable: String,
    },
    /// Something between `${` and `}` that is no variable.
    #[error("`{key}` of server `{server}` has `${{{text}}}` in it, which is not a variable")]
    NotAVariable {
        /// The server's name in the configuration.
        server: String,
        /// Where it is used.
        key: String,
        /// What is written there.
        text: String,
    },
    /// A number that makes no sense.
    #[error("`{key}` of server `{server}` must be {range}")]
    OutOfRange {
        /// The server's name in the configuration.
        server: String,
        /// The key whose number is out of range.
        key: &'static str,
        /// What it may be.
        range: String,
    },
}
