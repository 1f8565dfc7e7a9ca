//! The rules of a host: which hosts, methods and paths code may reach, which a person is asked about, and
//! which it may never reach.

use std::fmt;

use thiserror::Error;

use crate::{
    address::AddressClass, headers::checked, host::RemoteHost, path::PathPattern,
    pattern::HostPattern, policy::NetRefusal,
};

/// One rule. Without methods, paths and headers it is about whole connections; with them, about each
/// request, so the proxy has to see the requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetRule {
    /// The hosts and ports.
    pub pattern: HostPattern,
    /// Whether their names may lead to addresses that are not public.
    pub private: bool,
    /// The methods, in upper case; none means all.
    pub methods: Vec<String>,
    /// The paths; none means all.
    pub paths: Vec<PathPattern>,
    /// Headers that the host sets in each request.
    pub headers: Vec<HeaderRule>,
    /// For a rule that asks: ask about each connection or request, not only about the first.
    pub each: bool,
}

/// A header that the host sets, with a value that code never sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderRule {
    /// The name, in lower case.
    pub name: String,
    /// The value.
    pub value: Secret,
}

/// A value that no message and no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// All rules. What matches `deny` is refused, even if other rules match it; then what matches `ask` is
/// asked about; then what matches `allow` is allowed; everything else is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetRules {
    /// Hosts and requests that are allowed.
    pub allow: Vec<NetRule>,
    /// Hosts and requests that a person is asked about.
    pub ask: Vec<NetRule>,
    /// Hosts and requests that are refused.
    pub deny: Vec<NetRule>,
}

/// Why a rule is malformed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NetRuleError {
    /// Headers for more than one host.
    #[error("`{0}`: headers need an exact host, not a pattern")]
    HeadersForPattern(HostPattern),
    /// Headers without methods and paths.
    #[error("`{0}`: headers need methods and paths")]
    HeadersForEverything(HostPattern),
    /// Headers for a port on which requests are not encrypted.
    #[error("`{0}`: headers need HTTPS; name another port than 80")]
    HeadersInClear(HostPattern),
    /// A header that no request can have, or one that belongs to the connection.
    #[error(
        "`{pattern}`: the header `{name}` cannot be set: it needs a valid name that is not about the connection, and a value of one line"
    )]
    Header {
        /// The hosts of the rule.
        pattern: HostPattern,
        /// The name of the header.
        name: String,
    },
    /// A method that can never be allowed.
    #[error("`{pattern}`: the method `{method}` cannot be allowed")]
    Method {
        /// The hosts of the rule.
        pattern: HostPattern,
        /// The method.
        method: String,
    },
}

impl NetRule {
    /// A rule about whole connections to public addresses.
    pub fn of_host(pattern: HostPattern) -> Self {
        Self {
            pattern,
            private: false,
            methods: Vec::new(),
            paths: Vec::new(),
            headers: Vec::new(),
            each: false,
        }
    }

    /// Checks what the fields demand of each other.
    ///
    /// # Errors
    /// Headers without an exact host, HTTPS, methods and paths; a header that cannot be set; a method that
    /// is none.
    pub fn checked(self) -> Result<Self, NetRuleError> {
        let pattern = || self.pattern.clone();
        let is_method = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
                && !matches!(text, "CONNECT" | "TRACE" | "TRACK")
        };
        if let Some(method) = self.methods.iter().find(|method| !is_method(method)) {
            return Err(NetRuleError::Method { pattern: pattern(), method: method.clone() });
        }
        if let Some(header) = self.headers.iter().find(|header| checked(header).is_err()) {
            return Err(NetRuleError::Header { pattern: pattern(), name: header.name.clone() });
        }
        if !self.headers.is_empty() {
            if !self.pattern.is_exact() {
                return Err(NetRuleError::HeadersForPattern(pattern()));
            }
            if self.methods.is_empty() || self.paths.is_empty() {
                return Err(NetRuleError::HeadersForEverything(pattern()));
            }
            if self.pattern.port() == Some(80) {
                return Err(NetRuleError::HeadersInClear(pattern()));
            }
        }
        Ok(self)
    }

    /// Whether the rule is about each request, so that the proxy has to see the requests.
    pub fn is_about_requests(&self) -> bool {
        !self.methods.is_empty() || !self.paths.is_empty() || !self.headers.is_empty()
    }

    /// Whether the rule names this host and port.
    pub(crate) fn names(&self, host: &RemoteHost, port: u16) -> bool {
        self.pattern.names(host) && self.pattern.allows_port(port)
    }

    /// The same for a rule that denies: one that names no port is about all ports.
    pub(crate) fn names_to_deny(&self, host: &RemoteHost, port: u16) -> bool {
        self.pattern.names(host) && self.pattern.port().is_none_or(|named| named == port)
    }

    /// Whether the rule names this method and path, as a rule that allows has to. The path is without its
    /// query.
    pub(crate) fn names_request(&self, method: &str, path: &str) -> bool {
        let has_method = self.methods.is_empty() || self.methods.iter().any(|it| it == method);
        let has_path = self.paths.is_empty() || self.paths.iter().any(|it| it.matches(path));
        has_method && has_path
    }

    /// The same for a rule that asks or denies, which counts if a server could read the request as one that
    /// it names.
    pub(crate) fn may_name_request(&self, method: &str, path: &str) -> bool {
        let is_method = |named: &String| named.eq_ignore_ascii_case(method);
        let has_method = self.methods.is_empty() || self.methods.iter().any(is_method);
        let has_path = self.paths.is_empty() || self.paths.iter().any(|it| it.may_match(path));
        has_method && has_path
    }

    /// Checks an address that an allowed host leads to.
    pub(crate) fn check_address(&self, address: std::net::IpAddr) -> Result<(), NetRefusal> {
        let class = AddressClass::of(address);
        let is_within = match class {
            AddressClass::Public => true,
            // The owner of a name must not be able to lead code to these, in whatever form.
            AddressClass::Metadata | AddressClass::LinkLocal | AddressClass::Embedded => {
                self.pattern.is_address()
            }
            AddressClass::Loopback
            | AddressClass::Unspecified
            | AddressClass::Private
            | AddressClass::CarrierNat
            | AddressClass::Multicast
            | AddressClass::Documentation
            | AddressClass::Reserved => self.includes_own_addresses(),
        };
        if is_within { Ok(()) } else { Err(NetRefusal::Address { address, class }) }
    }

    /// Whether the host's own addresses are within the rule.
    pub(crate) fn includes_own_addresses(&self) -> bool {
        self.private || self.pattern.is_address()
    }

    /// Whether a tunnel to this port has to be TLS.
    pub(crate) fn demands_tls(&self, port: u16) -> bool {
        port == 443 || !self.pattern.names_port()
    }
}

impl NetRules {
    /// Rules that allow these hosts and ports and nothing else.
    pub fn of_patterns(patterns: impl IntoIterator<Item = HostPattern>) -> Self {
        let allow = patterns.into_iter().map(NetRule::of_host).collect();
        Self { allow, ..Self::default() }
    }

    /// Whether nothing could ever be allowed.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty()
    }

    /// The patterns of everything that is allowed or asked about: what a request for all hosts gets.
    pub fn patterns(&self) -> impl Iterator<Item = &HostPattern> {
        self.allow.iter().chain(&self.ask).map(|rule| &rule.pattern)
    }
}

impl Secret {
    /// Keeps a value.
    pub const fn new(value: String) -> Self {
        Self(value)
    }

    /// The value itself, for the request that carries it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

impl fmt::Display for NetRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.methods.is_empty() {
            write!(out, "{} ", self.methods.join(","))?;
        }
        self.pattern.fmt(out)?;
        for (index, path) in self.paths.iter().enumerate() {
            write!(out, "{}{path}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
