//! The decision about a host and a port, and about a request. Pure: nothing here resolves or connects.

use std::{net::IpAddr, sync::Arc};

use thiserror::Error;

use crate::{
    address::AddressClass,
    host::{DomainName, RemoteHost, RemoteHostError},
    path::is_ambiguous,
    pattern::HostPattern,
    request::RequestFault,
    rules::{NetRule, NetRules},
};

/// The hosts that one run may reach: its granted patterns, as far as the rules go. Without patterns, it has no
/// network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetPolicy {
    granted: Vec<HostPattern>,
    rules: Arc<NetRules>,
}

/// How the rules decide about a connection to a host and port, before anything is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostDecision<'a> {
    /// The connection as a whole is allowed.
    Allow(&'a NetRule),
    /// A person has to be asked about the connection.
    Ask(&'a NetRule),
    /// Each request has to be decided about, so the proxy must see them. The rule is the first that could
    /// allow one; it decides about addresses.
    EachRequest(&'a NetRule),
}

/// How the rules decide about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestDecision<'a> {
    /// It is allowed, with the headers of this rule.
    Allow(&'a NetRule),
    /// A person has to be asked.
    Ask(&'a NetRule),
}

/// Why a connection was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NetRefusal {
    /// The request names no host.
    #[error("{0}")]
    Malformed(RemoteHostError),
    /// No rule names the host.
    #[error("no rule allows this host")]
    Host,
    /// Rules name the host, but not this port.
    #[error("no rule allows this port of the host")]
    Port,
    /// A rule under `deny` names it.
    #[error("a rule denies it")]
    Denied,
    /// Rules name the host, but not this method and path.
    #[error("no rule allows this method and path of the host")]
    Request,
    /// Servers could read the method or the path in different ways.
    #[error("the method or the path can be read in two ways")]
    Reading,
    /// A person was asked and said no.
    #[error("a person denied it")]
    NotApproved,
    /// A person has to be asked, and nobody answered.
    #[error("it needs approval, and nobody approved it")]
    Unanswered,
    /// The name leads to an address that the rule does not include.
    #[error("{address} is {class}")]
    Address {
        /// The address.
        address: IpAddr,
        /// Its class.
        class: AddressClass,
    },
    /// The name leads to this machine.
    #[error("{address} is an address of this machine")]
    OwnAddress {
        /// The address.
        address: IpAddr,
    },
    /// A tunnel that has to be TLS is something else.
    #[error("the tunnel is not TLS")]
    NotTls,
    /// A TLS tunnel does not show the name of its server.
    #[error("the TLS tunnel shows no server name")]
    NoServerName,
    /// A TLS tunnel hides the name of its server.
    #[error("the TLS tunnel uses an encrypted client hello")]
    HiddenServerName,
    /// Inside the connection another name is used than the rule allowed.
    #[error("the connection is for {allowed}, but its {place} names {named}")]
    OtherName {
        /// The host that the rule allowed.
        allowed: RemoteHost,
        /// Where the other name is.
        place: &'static str,
        /// The other name, or what is there instead of a name.
        named: String,
    },
    /// Belljar itself listens there.
    #[error("Belljar listens on port {port} of this machine, and no rule can allow that")]
    OwnPort {
        /// The port.
        port: u16,
    },
    /// The host has as many connections as it may have.
    #[error("the run has {most} connections to this host, the most at one time")]
    HostConnections {
        /// How many it may have.
        most: usize,
    },
    /// The request itself is at fault.
    #[error("{0}")]
    Fault(RequestFault),
    /// The rules are about requests, and there is no certificate with which to see them.
    #[error("the rules for this host name methods or paths, but its requests are encrypted")]
    NoAuthority,
    /// Plain HTTP to the port of HTTPS.
    #[error("plain HTTP to port 443")]
    PlainHttp,
    /// The run has moved all the bytes it may.
    #[error("the run went over its {most} bytes (net_bytes) in one direction")]
    Bytes {
        /// How many it may move.
        most: u64,
    },
    /// The run has made all the connections it may.
    #[error("the run went over its {most} connections (net_connections)")]
    Connections {
        /// How many it may make.
        most: u32,
    },
    /// The connection could not be written to the audit log.
    #[error("the connection could not be recorded")]
    NotRecorded,
}

impl<'a> HostDecision<'a> {
    pub(crate) const fn rule(self) -> &'a NetRule {
        let (Self::Allow(rule) | Self::Ask(rule) | Self::EachRequest(rule)) = self;
        rule
    }
}

impl<'a> RequestDecision<'a> {
    pub(crate) const fn rule(self) -> &'a NetRule {
        let (Self::Allow(rule) | Self::Ask(rule)) = self;
        rule
    }
}

impl NetPolicy {
    /// A policy that allows the granted patterns, as far as the rules go.
    pub fn new(granted: Vec<HostPattern>, rules: Arc<NetRules>) -> Self {
        Self { granted, rules }
    }

    /// A policy that allows these hosts and ports, as far as their addresses are public.
    pub fn of_patterns(patterns: impl IntoIterator<Item = HostPattern>) -> Self {
        let granted: Vec<_> = patterns.into_iter().collect();
        let rules = NetRules::of_patterns(granted.iter().cloned());
        Self::new(granted, Arc::new(rules))
    }

    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty() || self.rules.is_empty()
    }

    /// Whether the proxy has to see the requests to some granted host, which takes an authority of the
    /// run, and a cell that trusts it.
    pub fn sees_requests(&self) -> bool {
        let NetRules { allow, ask, deny } = &*self.rules;
        let is_granted =
            |rule: &&NetRule| self.granted.iter().any(|granted| granted.shares_host(&rule.pattern));
        allow.iter().chain(ask).chain(deny).filter(is_granted).any(NetRule::is_about_requests)
    }

    /// Decides about a host and port.
    pub(crate) fn decide_host(
        &self,
        host: &RemoteHost,
        port: u16,
    ) -> Result<HostDecision<'_>, NetRefusal> {
        self.check_granted(host, port)?;
        let rules = &*self.rules;
        let named = |rules: &'_ [NetRule]| rules.iter().any(|rule| rule.names(host, port));
        let mut deny = rules.deny.iter().filter(|rule| rule.names_to_deny(host, port));
        let is_denied = |rule: &NetRule| !rule.is_about_requests();
        let has_deny = deny.clone().next().is_some();
        if deny.any(is_denied) {
            return Err(NetRefusal::Denied);
        }
        if !named(&rules.allow) && !named(&rules.ask) {
            let allowing = rules.allow.iter().chain(&rules.ask);
            return Err(refusal_of(allowing.map(|rule| &rule.pattern), host));
        }
        let ask = most_exact(&rules.ask, host, port, |_| true);
        let allow = most_exact(&rules.allow, host, port, |_| true);
        let mut all = rules.allow.iter().chain(&rules.ask).filter(|rule| rule.names(host, port));
        let of_requests = has_deny || all.any(NetRule::is_about_requests);
        match (of_requests, ask, allow) {
            (true, ask, allow) => {
                allow.or(ask).map(HostDecision::EachRequest).ok_or(NetRefusal::Host)
            }
            (false, Some(rule), _) => Ok(HostDecision::Ask(rule)),
            (false, None, Some(rule)) => Ok(HostDecision::Allow(rule)),
            (false, None, None) => Err(NetRefusal::Host),
        }
    }

    /// Decides about one request to a host whose requests the proxy sees. The path is without its query.
    pub(crate) fn decide_request(
        &self,
        host: &RemoteHost,
        port: u16,
        method: &str,
        path: &str,
    ) -> Result<RequestDecision<'_>, NetRefusal> {
        self.check_granted(host, port)?;
        if is_ambiguous(path) {
            return Err(NetRefusal::Reading);
        }
        let may_name = |rule: &NetRule| rule.may_name_request(method, path);
        let rules = &*self.rules;
        if rules.deny.iter().any(|rule| rule.names_to_deny(host, port) && may_name(rule)) {
            return Err(NetRefusal::Denied);
        }
        let names = |rule: &NetRule| rule.names_request(method, path);
        if let Some(rule) = most_exact(&rules.ask, host, port, names) {
            return Ok(RequestDecision::Ask(rule));
        }
        // A yes would cover a request that the rule does not name.
        if most_exact(&rules.ask, host, port, may_name).is_some() {
            return Err(NetRefusal::Reading);
        }
        let allow = most_exact(&rules.allow, host, port, names);
        allow.map(RequestDecision::Allow).ok_or(NetRefusal::Request)
    }

    fn check_granted(&self, host: &RemoteHost, port: u16) -> Result<(), NetRefusal> {
        let mut granted = self.granted.iter();
        let is_granted = granted.any(|it| it.names(host) && it.allows_port(port));
        if is_granted { Ok(()) } else { Err(refusal_of(self.granted.iter(), host)) }
    }
}

/// The rule that names a host and port most exactly: one about requests before one about connections, one
/// that names the port before one that does not, otherwise the first.
fn most_exact<'a>(
    rules: &'a [NetRule],
    host: &RemoteHost,
    port: u16,
    is_meant: impl Fn(&NetRule) -> bool,
) -> Option<&'a NetRule> {
    let matching = rules.iter().filter(|rule| rule.names(host, port) && is_meant(rule));
    // Of equal ones, `min_by_key` returns the first.
    matching.min_by_key(|rule| (!rule.is_about_requests(), !rule.pattern.names_port()))
}

fn refusal_of<'a>(
    mut patterns: impl Iterator<Item = &'a HostPattern>,
    host: &RemoteHost,
) -> NetRefusal {
    if patterns.any(|pattern| pattern.names(host)) { NetRefusal::Port } else { NetRefusal::Host }
}

impl NetRefusal {
    /// Whether no rule names the host and port, so that granting them would help.
    pub const fn is_for_lack_of_rule(&self) -> bool {
        matches!(self, Self::Host | Self::Port)
    }
}

/// Checks the name that a TLS client shows against the host that a rule allowed.
pub(crate) fn check_server_name(
    allowed: &RemoteHost,
    shown: Option<&[u8]>,
) -> Result<(), NetRefusal> {
    let place = "TLS server name";
    match (allowed, shown) {
        // TLS has no server name for an address.
        (RemoteHost::Address(_), None) => Ok(()),
        (RemoteHost::Name(_), None) => Err(NetRefusal::NoServerName),
        (allowed, Some(bytes)) => {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let is_same = match (allowed, DomainName::parse(text)) {
                (RemoteHost::Name(allowed), Ok(shown)) => *allowed == shown,
                (RemoteHost::Name(_) | RemoteHost::Address(_), _) => false,
            };
            let named = String::from_utf8_lossy(bytes).escape_default().take(100).collect();
            let refusal = NetRefusal::OtherName { allowed: allowed.clone(), place, named };
            if is_same { Ok(()) } else { Err(refusal) }
        }
    }
}

#[cfg(test)]
mod tests;
