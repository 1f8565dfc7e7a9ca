//! E3: what a result names by a handle is read over HTTP, and never as a page.

use belljar_testing::sandboxed;
use serde_json::json;

use crate::{
    command::Place,
    mcp_support::{Reply, RunningServer, serve_in},
};

const PAGE: &str = "<!doctype html><script>fetch('/v1/runs')</script>";

/// The handle of a page that code wrote.
fn stored_page(server: &RunningServer) -> String {
    let code = format!("import os; os.makedirs('out'); open('out/page.html', 'w').write({PAGE:?})");
    let run = server.ask("POST /v1/runs", &json!({"language": "python", "code": code}));
    let page = &run["artifacts"][0];
    assert_eq!((&page["path"], &page["mediaType"]), (&json!("out/page.html"), &json!("text/html")));
    page["handle"].as_str().unwrap_or_else(|| panic!("no handle: {run:#}")).to_owned()
}

/// Headers that keep a browser from showing the body, whatever it is.
fn assert_download(reply: &Reply) {
    let head = reply.head.to_ascii_lowercase();
    for header in [
        "content-type: application/octet-stream",
        "content-disposition: attachment",
        "x-content-type-options: nosniff",
    ] {
        assert!(head.lines().any(|line| line == header), "{header}: {reply:#?}");
    }
}

#[sandboxed]
#[test]
fn e3_a_stored_page_is_a_download() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let line = format!("GET /v1/blobs/{}", stored_page(&server));
    let reply = server.api(&line, "");
    assert_eq!((reply.status, reply.body.as_str()), (200, PAGE), "{reply:#?}");
    assert_download(&reply);
    // Without the token, and for a page of another site, there is nothing.
    let refused = server.http(&line, &[("Host", server.address())], "");
    assert_eq!(refused.status, 401, "{refused:#?}");
    assert!(!refused.body.contains("script"), "{refused:#?}");
    let bearer = format!("Bearer {}", server.token);
    let other = [
        ("Host", server.address()),
        ("Authorization", &bearer),
        ("Origin", "https://evil.example"),
    ];
    let refused = server.http(&line, &other, "");
    assert_eq!(refused.status, 403, "{refused:#?}");
    assert!(!refused.body.contains("script"), "{refused:#?}");
}

/// A large value is read by its handle like a file.
#[sandboxed]
#[test]
fn e5_a_large_value_is_read_by_its_handle() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let request = json!({"code": "return Array(5000).fill('<b>')", "max_output_tokens": 500});
    let run = server.ask("POST /v1/runs", &request);
    let handle = run["result"]["handle"].as_str().unwrap_or_else(|| panic!("no handle: {run:#}"));
    let reply = server.api(&format!("GET /v1/blobs/{handle}"), "");
    let value: Vec<String> = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(value, vec!["<b>"; 5000]);
    assert_download(&reply);
}

#[sandboxed]
#[test]
fn e3_a_handle_that_names_nothing_is_unknown() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let handle = stored_page(&server);
    let absent = format!("blob_{}", "0".repeat(handle.len() - 5));
    for odd in [&*absent, "blob_", "run_1", "..%2f..%2ftoken", "%00", "blob_%27%20or%201=1"] {
        let reply = server.api(&format!("GET /v1/blobs/{odd}"), "");
        assert_eq!(reply.status, 404, "{odd}: {reply:#?}");
        let error: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(error["error"]["code"], "blob.unknown", "{odd}: {error}");
        assert_eq!(error["error"]["type"], "NotFoundError", "{odd}: {error}");
    }
    let unreadable = server.api("GET /v1/blobs/%ff", "");
    assert_eq!(unreadable.status, 400, "{unreadable:#?}");
    // Control: the page itself is there.
    assert_eq!(server.api(&format!("GET /v1/blobs/{handle}"), "").status, 200);
}
