//! Where a request goes, and what is refused whatever the rules say.

use hyper::{HeaderMap, Method, Uri, header, http::request::Parts};
use thiserror::Error;

use crate::{
    approval::RequestSummary, connection::IsSeen, headers, host::RemoteHost, policy::NetRefusal,
};

/// How a request travels to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// The server of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestTarget {
    pub(crate) scheme: Scheme,
    pub(crate) host: RemoteHost,
    pub(crate) port: u16,
}

/// Why a request is refused whatever the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestFault {
    /// The server would repeat the request, with all headers in it.
    #[error("the methods TRACE and TRACK are never allowed")]
    Trace,
    /// The bytes after it would not be requests.
    #[error("requests to this host must not ask for another protocol (Upgrade)")]
    Upgrade,
    /// The server may take another method or path than the rules have seen.
    #[error("the header {0} can name another method or path")]
    Override(&'static str),
    /// The request does not have the form `METHOD /PATH`.
    #[error("requests in this tunnel must name a path of its host")]
    Form,
    /// The head of a request in a plain tunnel does not end.
    #[error("the head of the request is too long, or was not sent in time")]
    Head,
    /// A rule with headers and no encryption.
    #[error("the rule sets headers, so the request must be HTTPS")]
    InClear,
    /// The name or the value of a header of the rule.
    #[error("a header of the rule cannot be sent; it needs a valid name and a value of one line")]
    Header,
}

impl Scheme {
    /// That of an absolute URL.
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        match uri.scheme_str()? {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl RequestTarget {
    /// The value of the `Host` header.
    pub(crate) fn host_header(&self) -> String {
        match (&self.host, self.port) {
            (host, port) if port == self.scheme.port() => host.to_string(),
            (host, port) => format!("{host}:{port}"),
        }
    }

    /// Checks a request to this server.
    pub(crate) fn check(&self, parts: &Parts, is_seen: IsSeen) -> Result<(), NetRefusal> {
        let fault = |fault| Err(NetRefusal::Fault(fault));
        let is_method = |name: &str| parts.method.as_str().eq_ignore_ascii_case(name);
        if is_method("TRACE") || is_method("TRACK") {
            return fault(RequestFault::Trace);
        }
        if parts.method == Method::CONNECT {
            return fault(RequestFault::Form);
        }
        if self.scheme == Scheme::Http && self.port == Scheme::Https.port() {
            return Err(NetRefusal::PlainHttp);
        }
        check_named_hosts(&self.host, self.port, &parts.headers)?;
        if is_seen == IsSeen(false) {
            return Ok(());
        }
        if parts.headers.contains_key(header::UPGRADE) {
            return fault(RequestFault::Upgrade);
        }
        if let Some(name) = headers::override_in(&parts.headers) {
            return fault(RequestFault::Override(name));
        }
        if parts.uri.path().starts_with('/') { Ok(()) } else { fault(RequestFault::Form) }
    }
}

/// A request as a person and the audit log are shown it.
pub(crate) fn summary(parts: &Parts, body_bytes: Option<u64>) -> RequestSummary {
    let (method, path) = (parts.method.to_string(), parts.uri.path().to_owned());
    RequestSummary { method, path, body_bytes }
}

/// The host and port in a URI, which must have no user in it.
pub(crate) fn authority(uri: &Uri, usual_port: Option<u16>) -> Option<(&str, u16)> {
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let (host, whole) = (authority.host(), authority.as_str());
    let port = match authority.port() {
        Some(port) if whole.ends_with(&format!(":{port}")) => port.as_u16(),
        // The text behind the host is not a port.
        Some(_) => return None,
        None => usual_port.filter(|_| whole == host)?,
    };
    Some((host, port))
}

/// The `Host` header must name the same host and port, if it is there, and at most once.
pub(crate) fn check_named_hosts(
    allowed: &RemoteHost,
    port: u16,
    headers: &HeaderMap,
) -> Result<(), NetRefusal> {
    let is_same = |named: &[u8]| {
        let uri = Uri::try_from(named).ok();
        let named = uri.as_ref().and_then(|uri| authority(uri, Some(port)));
        named.is_some_and(|(host, named_port)| {
            named_port == port && RemoteHost::parse(host).is_ok_and(|named| named == *allowed)
        })
    };
    let hosts: Vec<_> = headers.get_all(header::HOST).iter().map(|it| it.as_bytes()).collect();
    let other = match hosts.as_slice() {
        [] => return Ok(()),
        [only] if is_same(only) => return Ok(()),
        [only] => only,
        [_, second, ..] => second,
    };
    let named = String::from_utf8_lossy(other).escape_default().take(100).collect();
    Err(NetRefusal::OtherName { allowed: allowed.clone(), place: "Host header", named })
}
