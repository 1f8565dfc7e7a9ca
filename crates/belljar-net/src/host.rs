//! Names and addresses of hosts, in one canonical form, so that two spellings of a host cannot differ.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use thiserror::Error;

const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// The name of a host: lower case, ASCII (IDNA), letters, digits and hyphens, no trailing dot, and not
/// an address in any spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainName(String);

/// A host as a rule or a request names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RemoteHost {
    /// A name.
    Name(DomainName),
    /// An address that was written as an address.
    Address(IpAddr),
}

/// Why a text names no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RemoteHostError {
    /// Nothing is there.
    #[error("the host is empty")]
    Empty,
    /// The text is an address, but in another spelling than the usual one.
    #[error("write an IPv4 address as four decimal numbers, an IPv6 address in brackets")]
    OddAddress,
    /// The text has other characters, or parts of the wrong length.
    #[error("not a host name: use letters, digits, hyphens and dots")]
    NotAName,
}

impl DomainName {
    /// Reads a name in any case, with or without a trailing dot, international or not.
    pub fn parse(text: &str) -> Result<Self, RemoteHostError> {
        match RemoteHost::parse(text)? {
            RemoteHost::Name(name) => Ok(name),
            RemoteHost::Address(_) => Err(RemoteHostError::NotAName),
        }
    }

    /// The canonical form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name is beneath another one, at any depth, and not that name itself.
    pub fn is_beneath(&self, other: &Self) -> bool {
        self.0.strip_suffix(other.as_str()).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl RemoteHost {
    /// Reads a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn parse(text: &str) -> Result<Self, RemoteHostError> {
        if text.is_empty() {
            return Err(RemoteHostError::Empty);
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address: Result<Ipv6Addr, _> = inner.parse();
            return address.map(|it| Self::Address(it.into())).or(Err(RemoteHostError::OddAddress));
        }
        // The standard library reads only the usual spelling: no octal, no hexadecimal, four parts.
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        if text.parse::<Ipv6Addr>().is_ok() {
            return Err(RemoteHostError::OddAddress);
        }
        name(text).map(Self::Name)
    }
}

fn name(text: &str) -> Result<DomainName, RemoteHostError> {
    let is_possible = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if text.len() > 4 * MAX_NAME_BYTES || !text.chars().all(is_possible) {
        return Err(RemoteHostError::NotAName);
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    let ascii = match url::Host::parse(text) {
        Ok(url::Host::Domain(ascii)) => ascii,
        // Browsers read these as addresses: `0x7f.1`, `017700000001`, `2130706433`.
        Ok(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => return Err(RemoteHostError::OddAddress),
        Err(url::ParseError::InvalidIpv4Address) => return Err(RemoteHostError::OddAddress),
        Err(_) => return Err(RemoteHostError::NotAName),
    };
    // The conversion maps some characters to dots, and some to none.
    let is_name = ascii.len() <= MAX_NAME_BYTES && ascii.split('.').all(is_label);
    let last = ascii.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) && !last.is_empty() {
        return Err(RemoteHostError::OddAddress);
    }
    if is_name { Ok(DomainName(ascii)) } else { Err(RemoteHostError::NotAName) }
}

fn is_label(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_LABEL_BYTES).contains(&label.len())
        && label.bytes().all(is_inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for DomainName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Display for RemoteHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(out),
            Self::Address(IpAddr::V4(address)) => address.fmt(out),
            Self::Address(IpAddr::V6(address)) => write!(out, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests;
