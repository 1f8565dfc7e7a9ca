//! Errors in the configuration of a server, and what to write instead.

use thiserror::Error;

/// Why a server cannot be used as it is configured. Messages name server and key, and never the value
/// of a variable.
#[derive(Debug, Error)]
pub enum ServerConfigError {
    /// The file is not valid JSON, or not in the form of `.mcp.json`.
    #[error("not a list of MCP servers: {0}")]
    Json(#[from] serde_json::Error),
    /// The file has no servers in it.
    #[error("the file has no `mcpServers`")]
    NoServers,
    /// The name cannot be part of a tool's name.
    #[error("the server name `{name}` {rule}; rename it, for example to `{suggestion}`")]
    Name {
        /// The name as it is configured.
        name: String,
        /// The rule that it breaks.
        rule: &'static str,
        /// A valid name similar to it.
        suggestion: String,
    },
    /// It has neither a command nor a URL.
    #[error("server `{server}` has neither `command` nor `url`; it needs one of them")]
    NoTransport {
        /// The server's name in the configuration.
        server: String,
    },
    /// A program that starts packages gets no package: it would wait for input for ever.
    #[error(
        "server `{server}`: `{command}` starts a package, and `args` names none; for example \
         `args`: {example}"
    )]
    NoPackage {
        /// The server's name in the configuration.
        server: String,
        /// The program that is to be started.
        command: String,
        /// Arguments that name a package.
        example: &'static str,
    },
    /// It has both a command and a URL.
    #[error(
        "server `{server}` has both `command` and `url`; remove one, or choose one with `type`"
    )]
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
    /// The endpoint is not an HTTP URL.
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
        /// The key in which it is used.
        key: String,
        /// The variable that is not set.
        variable: String,
    },
    /// The text between `${` and `}` is not the name of a variable.
    #[error("`{key}` of server `{server}` has `${{{text}}}` in it, which is not a variable")]
    NotAVariable {
        /// The server's name in the configuration.
        server: String,
        /// The key in which it is used.
        key: String,
        /// The text between the braces.
        text: String,
    },
    /// A number is out of range.
    #[error("`{key}` of server `{server}` must be {range}")]
    OutOfRange {
        /// The server's name in the configuration.
        server: String,
        /// The key whose number is out of range.
        key: &'static str,
        /// The values that are allowed.
        range: String,
    },
}
