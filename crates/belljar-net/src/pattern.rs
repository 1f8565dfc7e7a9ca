//! Patterns of hosts, as an operator writes them: `HOST`, `*.HOST` or an address, each with or without a
//! port.

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::host::{DomainName, RemoteHost, RemoteHostError};

/// The ports that a pattern without a port allows.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// A pattern of hosts and ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: PatternHost,
    /// `None` allows ports 80 and 443.
    port: Option<u16>,
}

/// The hosts that a pattern allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternHost {
    /// This name or address.
    Exactly(RemoteHost),
    /// Every name beneath this one, at any depth, and not the name itself.
    Beneath(DomainName),
}

/// Why a pattern is malformed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    /// The part before the port names no host.
    #[error("`{pattern}`: {error}")]
    Host {
        /// The pattern.
        pattern: String,
        /// The fault.
        error: RemoteHostError,
    },
    /// A URL instead of a host.
    #[error("`{pattern}`: name a host, not a URL, as in example.org or example.org:8443")]
    Url {
        /// The pattern.
        pattern: String,
    },
    /// A star somewhere else than in front.
    #[error("`{pattern}`: a star can only stand for the first part of a name, as in *.example.org")]
    Star {
        /// The pattern.
        pattern: String,
    },
    /// The part after the colon is not a port.
    #[error("`{pattern}`: the port must be a number from 1 to 65535")]
    Port {
        /// The pattern.
        pattern: String,
    },
}

impl HostPattern {
    /// The hosts that it allows.
    pub fn host(&self) -> &PatternHost {
        &self.host
    }

    /// Whether it names this host, whatever the port.
    pub fn names(&self, host: &RemoteHost) -> bool {
        match (&self.host, host) {
            (PatternHost::Exactly(named), host) => named == host,
            (PatternHost::Beneath(parent), RemoteHost::Name(name)) => name.is_beneath(parent),
            (PatternHost::Beneath(_), RemoteHost::Address(_)) => false,
        }
    }

    /// Whether it allows this port.
    pub fn allows_port(&self, port: u16) -> bool {
        match self.port {
            Some(named) => named == port,
            None => USUAL_PORTS.contains(&port),
        }
    }

    /// Whether it names its port, so that traffic there may be something else than HTTP and TLS.
    pub fn names_port(&self) -> bool {
        self.port.is_some()
    }

    /// The port that it names.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether it names one host only.
    pub fn is_exact(&self) -> bool {
        matches!(self.host, PatternHost::Exactly(_))
    }

    /// Whether every host and port that `other` allows is allowed by this pattern, too.
    pub fn contains(&self, other: &Self) -> bool {
        let has_hosts = match (&self.host, &other.host) {
            (PatternHost::Exactly(own), PatternHost::Exactly(other)) => own == other,
            (PatternHost::Exactly(_), PatternHost::Beneath(_)) => false,
            (PatternHost::Beneath(_), PatternHost::Exactly(RemoteHost::Address(_))) => false,
            (PatternHost::Beneath(own), PatternHost::Exactly(RemoteHost::Name(other))) => {
                other.is_beneath(own)
            }
            (PatternHost::Beneath(own), PatternHost::Beneath(other)) => {
                own == other || other.is_beneath(own)
            }
        };
        has_hosts
            && match other.port {
                Some(port) => self.allows_port(port),
                None => USUAL_PORTS.iter().all(|port| self.allows_port(*port)),
            }
    }

    /// The hosts and ports that both patterns allow; `None` if there are none.
    pub fn both(&self, other: &Self) -> Option<Self> {
        let port = match (self.port, other.port) {
            (port, None) if port.is_none_or(|port| other.allows_port(port)) => port,
            (None, port) if port.is_none_or(|port| self.allows_port(port)) => port,
            (own, other) if own == other => own,
            _ => return None,
        };
        [(self, other), (other, self)].into_iter().find_map(|(wide, narrow)| {
            let on = |pattern: &Self| Self { host: pattern.host.clone(), port };
            on(wide).contains(&on(narrow)).then(|| on(narrow))
        })
    }

    /// Whether both patterns name some host, whatever the ports.
    pub(crate) fn shares_host(&self, other: &Self) -> bool {
        let on_any = |pattern: &Self| Self { host: pattern.host.clone(), port: None };
        on_any(self).both(&on_any(other)).is_some()
    }

    /// Whether it is an address that was written as an address.
    pub fn is_address(&self) -> bool {
        matches!(self.host, PatternHost::Exactly(RemoteHost::Address(_)))
    }
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let pattern = || text.to_owned();
        if text.contains('/') || text.contains('@') {
            return Err(PatternError::Url { pattern: pattern() });
        }
        let (host, port) = split_port(text);
        let port = match port {
            None => None,
            Some(port) => {
                Some(read_port(port).ok_or_else(|| PatternError::Port { pattern: pattern() })?)
            }
        };
        let fault = |error| PatternError::Host { pattern: pattern(), error };
        let host = match host.strip_prefix("*.") {
            Some(parent) if !parent.contains('*') => {
                PatternHost::Beneath(DomainName::parse(parent).map_err(fault)?)
            }
            None if !host.contains('*') => {
                PatternHost::Exactly(RemoteHost::parse(host).map_err(fault)?)
            }
            Some(_) | None => return Err(PatternError::Star { pattern: pattern() }),
        };
        Ok(Self { host, port })
    }
}

/// Splits a pattern at the colon before its port. The colons of an IPv6 address are in brackets.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        Some(_) | None => (text, None),
    }
}

/// A port in its usual spelling: no sign, no leading zero.
fn read_port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain)
}

impl fmt::Display for HostPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            PatternHost::Exactly(host) => host.fmt(out)?,
            PatternHost::Beneath(parent) => write!(out, "*.{parent}")?,
        }
        match self.port {
            Some(port) => write!(out, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
