//! Recognizes the head of an HTTP/1 request at the beginning of a plain tunnel, and checks whose request it is.
//!
//! The bytes come from the guest. A server may read them more leniently than the standard, so lines may end in
//! any way here, and what is odd names another host.

use hyper::{
    HeaderMap, Uri,
    header::{self, HeaderValue},
};

use crate::{
    host::RemoteHost,
    policy::NetRefusal,
    request::{authority, check_named_hosts},
};

/// A longer head is refused.
pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;
/// No method is longer.
const MAX_METHOD_BYTES: usize = 32;

/// The state of reading a head, after the bytes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadProgress {
    /// They may become one.
    Incomplete,
    /// Only ends of lines so far, which servers skip.
    Blank,
    /// They are none.
    NotHttp,
    /// It is complete.
    Complete,
}

/// Reads the beginning of a connection.
pub(crate) fn read(bytes: &[u8]) -> HeadProgress {
    let bytes = without_blank_lines(bytes);
    if bytes.is_empty() {
        return HeadProgress::Blank;
    }
    let method = bytes.iter().take_while(|byte| is_of_method(**byte)).count();
    let is_method = (1..=MAX_METHOD_BYTES).contains(&method)
        && bytes.get(method).is_none_or(|after| b" \t\r\n".contains(after));
    let first = bytes.split(is_line_end).next().unwrap_or_default();
    // Without a space behind it, a word in lower case is more likely the text of another protocol.
    let is_other_text = method == bytes.len() && bytes.iter().any(u8::is_ascii_lowercase);
    match first.len() == bytes.len() {
        _ if !is_method || is_other_text => HeadProgress::NotHttp,
        true => HeadProgress::Incomplete,
        false if !names_version(first) => HeadProgress::NotHttp,
        false if end_of_head(bytes).is_some() => HeadProgress::Complete,
        false => HeadProgress::Incomplete,
    }
}

/// Checks what is there when the guest sends no more. Some servers answer a head without its end.
pub(crate) fn check_last(bytes: &[u8], host: &RemoteHost, port: u16) -> Result<(), NetRefusal> {
    let first = without_blank_lines(bytes).split(is_line_end).next().unwrap_or_default();
    if names_version(first) { check(bytes, host, port) } else { Ok(()) }
}

/// Checks the host in a complete head, as the request in absolute form would be checked.
pub(crate) fn check(head: &[u8], host: &RemoteHost, port: u16) -> Result<(), NetRefusal> {
    let head = without_blank_lines(head);
    let head = end_of_head(head).and_then(|end| head.get(..end)).unwrap_or(head);
    let mut lines = head.split(is_line_end);
    let target = lines.next().unwrap_or_default();
    let target = target.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(1);
    let target = target.unwrap_or_default();
    if !target.starts_with(b"/") && target != b"*" {
        check_target(target, host, port)?;
    }
    let mut named: Vec<Vec<u8>> = Vec::new();
    let mut is_host = false;
    for line in lines.filter(|line| !line.is_empty()) {
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            // It continues the header before it.
            if let Some(last) = named.last_mut().filter(|_| is_host) {
                last.extend_from_slice(line);
            }
            continue;
        }
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = line.split_at(colon);
        is_host = name.trim_ascii().eq_ignore_ascii_case(header::HOST.as_str().as_bytes());
        if is_host {
            named.push(value.get(1..).unwrap_or_default().trim_ascii().to_vec());
        }
    }
    let mut headers = HeaderMap::new();
    for value in named {
        // A value that no header can have cannot be the name of the host.
        let value = HeaderValue::from_bytes(&value);
        headers.append(header::HOST, value.unwrap_or(HeaderValue::from_static("?")));
    }
    check_named_hosts(host, port, &headers)
}

/// A target in absolute form, or that of `CONNECT`, names a host, too.
fn check_target(target: &[u8], host: &RemoteHost, port: u16) -> Result<(), NetRefusal> {
    let uri = Uri::try_from(target).ok();
    let named = uri.as_ref().and_then(|uri| authority(uri, Some(port)));
    let is_same = named.is_some_and(|(name, named_port)| {
        named_port == port && RemoteHost::parse(name).is_ok_and(|named| named == *host)
    });
    if is_same {
        return Ok(());
    }
    let named = String::from_utf8_lossy(target).escape_default().take(100).collect();
    Err(NetRefusal::OtherName { allowed: host.clone(), place: "request", named })
}

/// A character of a token (RFC 9110).
fn is_of_method(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

const fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn without_blank_lines(bytes: &[u8]) -> &[u8] {
    let blank = bytes.iter().take_while(|byte| is_line_end(byte)).count();
    bytes.get(blank..).unwrap_or_default()
}

/// Whether a line ends like that of a request, in any case.
fn names_version(line: &[u8]) -> bool {
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.skip(1).any(|word| word.get(..5).is_some_and(|it| it.eq_ignore_ascii_case(b"http/")))
}

/// Where the empty line is that ends a head.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let ends = [&b"\n\n"[..], b"\n\r\n"];
    ends.iter().filter_map(|end| memchr::memmem::find(bytes, end)).min()
}

#[cfg(test)]
mod tests;
