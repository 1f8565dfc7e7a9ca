//! The configuration of upstream servers, from raw to checked.
//!
//! A [`RawServer`] is what a file contains: a table `[mcp_servers.NAME]` of `belljar.toml`, or an entry of
//! a `.mcp.json` as other clients write it ([`read_mcp_json`]). A [`ServerSpec`] is what can be used:
//! name checked, variables filled in, defaults in place. Nothing here reads the environment or a
//! file; the caller passes both in as [`Surroundings`].

mod error;
mod expand;
mod raw;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use belljar_contract::hex;
use sha2::{Digest, Sha256};

pub use error::ServerConfigError;
pub use raw::{RawServer, read_mcp_json};

use expand::Expander;
use raw::TransportKind;

/// Names are part of tool names, and model APIs allow those 64 characters.
const MAX_NAME: usize = 40;
/// Between server and tool in a tool's qualified name.
const SEPARATOR: &str = "__";
/// Digits of the hash in the fingerprint of a server.
const FINGERPRINT_DIGITS: usize = 16;
/// The name under which guest code finds what Belljar itself offers.
const OWN_NAME: &str = "belljar";
const DEFAULT_MAX_CONCURRENT: usize = 8;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
const DEFAULT_IDLE: Duration = Duration::from_secs(600);
/// The longest timeout: short enough to be added to any point in time.
const LONGEST_SECONDS: u64 = 7 * 24 * 3600;

/// Variables that every server inherits: paths and locales, no secrets. A server gets other variables
/// through its `env`.
const BASICS: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// The same for whole families of variables.
const BASIC_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The environment in which a configuration is read: variables, and the directory that paths start from.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The host's environment variables, or a replacement for them.
    pub variables: &'a BTreeMap<String, String>,
    /// The directory that a relative `cwd` starts from, and the default `cwd`.
    pub directory: &'a Path,
}

/// Variables may be secrets.
impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Surroundings")
            .field("variables", &self.variables.len())
            .field("directory", &self.directory)
            .finish()
    }
}

/// A server that can be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    name: String,
    transport: TransportSpec,
    /// Whether the annotations of its tools are believed.
    pub trusted: bool,
    /// Whether the user has chosen it: it is in the user's own file, or the user accepted it.
    pub chosen: bool,
    /// How many calls it gets at once; at least one.
    pub max_concurrent: usize,
    /// How many calls it gets in any minute.
    pub rate_per_minute: Option<u32>,
    /// The longest a call may take, without the time it waits for a free place.
    pub timeout: Duration,
    /// It is ended after so long without a call, and started again on demand.
    pub idle: Duration,
    /// Globs of tools whose calls may be repeated when it is unknown whether they happened.
    pub idempotent: Vec<String>,
    /// Globs of tools that change nothing, whatever the server says.
    pub read_only: Vec<String>,
}

/// How the host connects to a server.
#[derive(Clone, PartialEq, Eq)]
pub enum TransportSpec {
    /// A program that speaks over its standard streams.
    Stdio {
        /// A path, or a name to look for on the `PATH`.
        command: String,
        /// Its command-line arguments, variables filled in.
        arguments: Vec<String>,
        /// The variables configured for it, secrets included.
        environment: BTreeMap<String, String>,
        /// The variables it inherits from the host.
        inherited: BTreeMap<String, String>,
        /// The directory it is started in.
        directory: PathBuf,
    },
    /// A server that speaks streamable HTTP.
    Http {
        /// Its endpoint, variables filled in.
        url: String,
        /// Sent with each request, secrets included.
        headers: BTreeMap<String, String>,
    },
}

/// Values may be secrets; so may arguments and URLs.
impl fmt::Debug for TransportSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, arguments, environment, directory, .. } => out
                .debug_struct("Stdio")
                .field("command", command)
                .field("arguments", &arguments.len())
                .field("environment", &environment.keys())
                .field("directory", directory)
                .finish(),
            Self::Http { headers, .. } => {
                out.debug_struct("Http").field("headers", &headers.keys()).finish_non_exhaustive()
            }
        }
    }
}

impl ServerSpec {
    /// Checks the configuration of a server and fills in defaults.
    pub fn check(
        name: &str,
        raw: RawServer,
        around: Surroundings<'_>,
    ) -> Result<Self, ServerConfigError> {
        check_name(name)?;
        check_package(name, &raw)?;
        let transport = check_transport(name, &raw, around)?;
        let seconds = |key: &'static str, value: Option<u64>, default: Duration| match value {
            None => Ok(default),
            Some(seconds @ 1..=LONGEST_SECONDS) => Ok(Duration::from_secs(seconds)),
            Some(_) => Err(ServerConfigError::OutOfRange {
                server: name.to_owned(),
                key,
                range: format!("1 to {LONGEST_SECONDS} seconds"),
            }),
        };
        let at_least_one = |key: &'static str| ServerConfigError::OutOfRange {
            server: name.to_owned(),
            key,
            range: "1 or more".to_owned(),
        };
        if raw.max_concurrent == Some(0) {
            return Err(at_least_one("max_concurrent"));
        }
        if raw.rate_per_minute == Some(0) {
            return Err(at_least_one("rate_per_minute"));
        }
        Ok(Self {
            name: name.to_owned(),
            transport,
            trusted: raw.trusted,
            chosen: false,
            max_concurrent: raw.max_concurrent.unwrap_or(DEFAULT_MAX_CONCURRENT),
            rate_per_minute: raw.rate_per_minute,
            timeout: seconds("timeout", raw.timeout, DEFAULT_TIMEOUT)?,
            idle: seconds("idle_seconds", raw.idle_seconds, DEFAULT_IDLE)?,
            idempotent: raw.idempotent,
            read_only: raw.read_only,
        })
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the host connects to it.
    pub fn transport(&self) -> &TransportSpec {
        &self.transport
    }

    /// A hash of the configuration: it changes with the command, arguments, variables and headers, and
    /// then the cached list of tools is no longer used.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        // Lengths first, so that no two lists of parts look the same when strung together.
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        part(&self.name);
        let table = match &self.transport {
            TransportSpec::Stdio { command, arguments, environment, directory, .. } => {
                part("stdio");
                part(command);
                part(&arguments.len().to_string());
                arguments.iter().for_each(|argument| part(argument));
                part(&directory.to_string_lossy());
                environment
            }
            TransportSpec::Http { url, headers } => {
                part("http");
                part(url);
                headers
            }
        };
        for (key, value) in table {
            part(key);
            part(value);
        }
        let mut fingerprint = hex::encode(&hash.finalize());
        fingerprint.truncate(FINGERPRINT_DIGITS);
        fingerprint
    }
}

fn check_name(name: &str) -> Result<(), ServerConfigError> {
    let refuse = |rule: &'static str| {
        let suggestion = suggest_name(name);
        Err(ServerConfigError::Name { name: name.to_owned(), rule, suggestion })
    };
    if name.is_empty() {
        return refuse("is empty");
    }
    if name.len() > MAX_NAME {
        return refuse("is longer than 40 characters");
    }
    if !name.bytes().all(is_name_byte) {
        return refuse("has characters other than A-Z, a-z, 0-9, `_` and `-`");
    }
    if name.contains(SEPARATOR) || name.starts_with('_') || name.ends_with('_') {
        // `a_` and its tool `b` would read as `a` and its tool `_b`.
        return refuse(
            "has `__` in it, or begins or ends with `_`, which separate server and tool",
        );
    }
    if name == OWN_NAME {
        return refuse("is the name of Belljar's own tools");
    }
    Ok(())
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// A valid name similar to this one.
fn suggest_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let words: Vec<_> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let joined: String = words.join("-").chars().take(MAX_NAME).collect();
    match joined.trim_end_matches('-') {
        "" => "server".to_owned(),
        OWN_NAME => format!("{OWN_NAME}-server"),
        joined => joined.to_owned(),
    }
}

/// Refuses a program that starts packages without the name of one.
fn check_package(server: &str, raw: &RawServer) -> Result<(), ServerConfigError> {
    let Some(command) = raw.command.as_deref().filter(|_| raw.args.is_empty()) else {
        return Ok(());
    };
    let example = match Path::new(command).file_name().and_then(|name| name.to_str()) {
        Some("npx" | "bunx" | "pnpx") => "[\"-y\", \"@modelcontextprotocol/server-memory\"]",
        Some("uvx" | "pipx") => "[\"mcp-server-time\"]",
        _ => return Ok(()),
    };
    let (server, command) = (server.to_owned(), command.to_owned());
    Err(ServerConfigError::NoPackage { server, command, example })
}

fn check_transport(
    server: &str,
    raw: &RawServer,
    around: Surroundings<'_>,
) -> Result<TransportSpec, ServerConfigError> {
    let expander = Expander { server, variables: around.variables };
    match raw.kind(server)? {
        TransportKind::Stdio { command } => {
            let directory = match &raw.cwd {
                None => around.directory.to_owned(),
                Some(cwd) => around.directory.join(expander.expand("cwd", cwd)?),
            };
            let arguments = raw.args.iter().enumerate();
            let arguments =
                arguments.map(|(at, argument)| expander.expand(&format!("args[{at}]"), argument));
            Ok(TransportSpec::Stdio {
                command: expander.expand("command", command)?,
                arguments: arguments.collect::<Result<_, _>>()?,
                environment: expander.expand_table("env", &raw.env)?,
                inherited: basics(around.variables),
                directory,
            })
        }
        TransportKind::Http { url } => Ok(TransportSpec::Http {
            url: check_url(server, expander.expand("url", url)?)?,
            headers: expander.expand_table("headers", &raw.headers)?,
        }),
    }
}

fn check_url(server: &str, url: String) -> Result<String, ServerConfigError> {
    let is_http = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    if is_http { Ok(url) } else { Err(ServerConfigError::Url { server: server.to_owned() }) }
}

fn basics(variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_basic = |name: &str| {
        BASICS.contains(&name) || BASIC_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let basic = variables.iter().filter(|(name, _)| is_basic(name));
    basic.map(|(name, value)| (name.clone(), value.clone())).collect()
}
