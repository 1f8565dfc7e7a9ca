//! Valid requests, and texts that could be read as more than one.

use super::*;

fn request(method: &str, url: &str, headers: &[(&str, &str)]) -> OutgoingRequest {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    OutgoingRequest {
        method: method.to_owned(),
        url: url.to_owned(),
        headers: headers.collect(),
        content: RequestContent::None,
        timeout: None,
    }
}

fn checked(request: OutgoingRequest) -> Result<Request<RequestBody>, MalformedFetch> {
    request.into_http(RequestBody::Whole(None))
}

#[test]
fn n5_what_could_be_read_as_more_than_one_request_is_none() {
    assert!(checked(request("GET", "http://a.example/x?y=%20", &[("a", "b c")])).is_ok());
    for method in ["", "GET /", "GE\r\nT", "G\0T", "CONNECT"] {
        let made = checked(request(method, "http://a.example/", &[])).err();
        assert_eq!(made, Some(MalformedFetch::Method), "{method:?}");
    }
    for url in [
        "",
        "http://a.example/ HTTP/1.1\r\nx: y",
        "http://a.example/\r\n",
        "http://a.example/\0",
        "http://a.example/\tx",
        "http://a.example/\u{e9}",
        "http://a .example/",
    ] {
        let made = checked(request("GET", url, &[])).err();
        assert_eq!(made, Some(MalformedFetch::Url), "{url:?}");
    }
    for (name, value, fault) in [
        ("a b", "c", MalformedFetch::HeaderName),
        ("a\r\nb", "c", MalformedFetch::HeaderName),
        ("", "c", MalformedFetch::HeaderName),
        ("a:", "c", MalformedFetch::HeaderName),
        ("a", "b\r\nc: d", MalformedFetch::HeaderValue),
        ("a", "b\0", MalformedFetch::HeaderValue),
        ("a", "\u{100}", MalformedFetch::HeaderValue),
    ] {
        let made = checked(request("GET", "http://a.example/", &[(name, value)])).err();
        assert_eq!(made, Some(fault), "{name:?}: {value:?}");
    }
}

#[test]
fn n5_code_does_not_say_how_long_a_body_is_or_which_host_is_meant() {
    let headers =
        [("Content-Length", "5"), ("HOST", "b.example"), ("Accept-Encoding", "gzip"), ("X", "y")];
    let made = checked(request("POST", "http://a.example/", &headers)).expect("a request");
    let mut names: Vec<_> = made.headers().keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "accept-encoding", "user-agent", "x"]);
    assert_eq!(made.headers()["accept-encoding"], "identity");
}

#[test]
fn requests_share_a_connection_by_origin() {
    for (url, origin) in [
        ("http://a.example/x/y", "http://a.example"),
        ("https://a.example:8443", "https://a.example:8443"),
        ("x", "x"),
    ] {
        assert_eq!(request("GET", url, &[]).origin(), origin);
    }
}
