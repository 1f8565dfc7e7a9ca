//! The headers of requests and answers that a proxy removes, and those that a rule sets.

use hyper::{
    HeaderMap,
    header::{self, HeaderName, HeaderValue, InvalidHeaderName, InvalidHeaderValue},
};

use crate::rules::HeaderRule;

/// Headers that concern one connection only. `Expect` is answered by the proxy.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
];
/// The same, with names that hyper does not know.
const HOP_BY_HOP_NAMES: [&str; 3] = ["proxy-connection", "keep-alive", "http2-settings"];
/// Headers by which some servers take another method or path than the request's own.
const OVERRIDES: [&str; 11] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-method",
    "x-forwarded-method",
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
    "x-override-url",
    "x-forwarded-uri",
    "x-forwarded-path",
];
/// Headers that are about the connection or the framing of a message, which no rule may set.
const NOT_SETTABLE: [HeaderName; 2] = [header::HOST, header::CONTENT_LENGTH];

/// Removes what concerns one connection only.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    for name in HOP_BY_HOP_NAMES {
        headers.remove(name);
    }
    // A guest may name any header there, and the length of the body is not one of the connection.
    for name in listed.iter().filter(|name| *name != "content-length" && *name != "host") {
        headers.remove(name.as_str());
    }
}

/// A header of the request by which a server may take another method or path.
pub(crate) fn override_in(headers: &HeaderMap) -> Option<&'static str> {
    let mut names = headers.keys().map(alike);
    names.find_map(|name| OVERRIDES.into_iter().find(|one| *one == name))
}

/// Why a rule cannot set its headers.
#[derive(Debug)]
pub(crate) struct BadHeader;

impl From<InvalidHeaderName> for BadHeader {
    fn from(_: InvalidHeaderName) -> Self {
        Self
    }
}

impl From<InvalidHeaderValue> for BadHeader {
    fn from(_: InvalidHeaderValue) -> Self {
        Self
    }
}

/// Replaces what the guest has sent by the headers of a rule. Answers in parts, or in another encoding,
/// could hide a value that is to be removed from them, so they are not asked for.
pub(crate) fn set(headers: &mut HeaderMap, rules: &[HeaderRule]) -> Result<(), BadHeader> {
    for rule in rules {
        let (name, value) = checked(rule)?;
        let is_alike = |other: &HeaderName| alike(other) == alike(&name);
        let others: Vec<_> = headers.keys().filter(|other| is_alike(other)).cloned().collect();
        for other in others {
            headers.remove(other);
        }
        headers.insert(name, value);
    }
    if !rules.is_empty() {
        headers.remove(header::RANGE);
        headers.remove(header::IF_RANGE);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    Ok(())
}

/// A name in the form in which names are compared: some servers read both `-` and `_` as `_`.
fn alike(name: &HeaderName) -> String {
    name.as_str().replace('_', "-")
}

/// The header of a rule, if a request can have it.
pub(crate) fn checked(rule: &HeaderRule) -> Result<(HeaderName, HeaderValue), BadHeader> {
    let name = HeaderName::from_bytes(rule.name.as_bytes())?;
    let mut value = HeaderValue::from_str(rule.value.reveal())?;
    value.set_sensitive(true);
    let is_settable = !HOP_BY_HOP.contains(&name)
        && !HOP_BY_HOP_NAMES.contains(&name.as_str())
        && !NOT_SETTABLE.contains(&name);
    if is_settable { Ok((name, value)) } else { Err(BadHeader) }
}

#[cfg(test)]
mod tests;
