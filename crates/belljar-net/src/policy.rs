//! The decision about a host and a port, and about an address. Pure: nothing here resolves or connects.

use std::net::IpAddr;

use thiserror::Error;

use crate::{
    address::AddressClass,
    host::{DomainName, RemoteHost, RemoteHostError},
    pattern::HostPattern,
};

/// One rule: hosts and ports that code may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetRule {
    /// The hosts and ports.
    pub pattern: HostPattern,
    /// Whether their names may lead to addresses that are not public.
    pub private: bool,
}

/// The hosts that one run may reach. No rule is no network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetPolicy {
    rules: Vec<NetRule>,
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
    /// Plain HTTP to the port of HTTPS.
    #[error("plain HTTP to port 443")]
    PlainHttp,
    /// The run has moved all the bytes it may.
    #[error("the run has moved all the bytes it may")]
    Bytes,
    /// The connection could not be written to the audit log.
    #[error("the connection could not be recorded")]
    NotRecorded,
}

impl NetPolicy {
    /// A policy of these rules.
    pub fn new(rules: Vec<NetRule>) -> Self {
        Self { rules }
    }

    /// A policy that allows these hosts and ports, as far as their addresses are public.
    pub fn of_patterns(patterns: impl IntoIterator<Item = HostPattern>) -> Self {
        let rules = patterns.into_iter().map(|pattern| NetRule { pattern, private: false });
        Self { rules: rules.collect() }
    }

    /// Whether nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule that allows a host and port. Of several, one that names the port decides.
    pub(crate) fn rule_for(&self, host: &RemoteHost, port: u16) -> Result<&NetRule, NetRefusal> {
        let of_host = || self.rules.iter().filter(|rule| rule.pattern.names(host));
        let matching = || of_host().filter(|rule| rule.pattern.allows_port(port));
        let with_port = matching().find(|rule| rule.pattern.names_port());
        with_port.or_else(|| matching().next()).ok_or_else(|| match of_host().next() {
            Some(_) => NetRefusal::Port,
            None => NetRefusal::Host,
        })
    }
}

impl NetRule {
    /// Checks an address that an allowed host leads to.
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), NetRefusal> {
        if self.private || self.pattern.is_address() {
            return Ok(());
        }
        let class = AddressClass::of(address);
        let is_public = class == AddressClass::Public;
        if is_public { Ok(()) } else { Err(NetRefusal::Address { address, class }) }
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

impl NetRefusal {
    /// Whether an operator could allow it with `--net`.
    pub fn is_for_lack_of_rule(&self) -> bool {
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
