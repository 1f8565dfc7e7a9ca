//! `fetch` of TypeScript and Python against real servers: what gets through, and what is refused whatever
//! the code does (A5, N1, N2, N4, N5).

use std::{fs, path::Path};

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::Place,
    internet::{Internet, inside},
};

const WEB: &[&str] = &["--net", "web.example.com"];

/// Runs TypeScript whose `attempt` gives a value, or the error it threw.
fn script(internet: &Internet, place: &Place, code: &str, flags: &[&str]) -> Value {
    let attempt = "const attempt = (what) => Promise.resolve().then(what).catch((e) => \
                   [e.name, e.message, e.host].filter((part) => part !== undefined).join(': '));\n";
    internet.run(place, "typescript", &format!("{attempt}{code}"), flags)
}

fn value<'a>(result: &'a Value, at: &str) -> &'a Value {
    assert_eq!(result["error"], Value::Null, "{result:#}");
    result["result"].pointer(at).unwrap_or(&Value::Null)
}

/// Requests and answers of all kinds.
const MANY_REQUESTS: &str = "
            const at = 'https://web.example.com';
            const first = await fetch(new URL(at + '/first#part'));
            const plain = await (await fetch('http://web.example.com/plain')).text();
            const post = await (await fetch(at + '/request', {
              method: 'post', body: JSON.stringify({ a: 1 }),
              headers: new Headers({ 'Content-Type': 'application/json', 'X-Own': '\\u00e9', 'Content-Length': '3' }),
            })).json();
            const form = new FormData();
            form.append('name', 'value');
            form.append('file', new Blob(['content']), 'a.txt');
            const sent = await (await fetch(new Request(at + '/request', { method: 'PUT', body: form }))).json();
            const params = await (await fetch(at + '/request', { method: 'POST', body: new URLSearchParams({ a: 'b' }) })).json();
            const bytes = new Uint8Array(3_000_000).fill(65);
            const large = await (await fetch(at + '/request', { method: 'POST', body: bytes })).json();
            async function* parts() { for (const text of ['one ', 'two']) yield new TextEncoder().encode(text); }
            const streamed = await (await fetch(at + '/request', { method: 'POST', body: ReadableStream.from(parts()), duplex: 'half' })).json();
            const answer = await fetch(at + '/request');
            const chunked = await fetch(at + '/chunked');
            const texts = [];
            for await (const part of chunked.body.pipeThrough(new TextDecoderStream())) texts.push(part);
            let received = 0;
            for await (const part of (await fetch(at + '/large')).body) received += part.length;
            const head = await fetch(at + '/large', { method: 'HEAD' });
            const twice = await fetch(at + '/chunked');
            const copy = twice.clone();
            const endless = (await fetch(at + '/endless')).body.getReader();
            const begun = (await endless.read()).value.length > 0;
            await endless.cancel();
            const many = await Promise.all(Array.from({ length: 40 }, async (_, i) => (await fetch(at + '/n' + i)).text()));
            return {
              first: [first.status, first.ok, first.url, await first.text(), first.headers.get('content-type')],
              plain, post, sent: sent.headers['Content-Type'].split(';')[0], params: params.begins,
              large: [large.bytes, large.headers['Content-Length']],
              streamed: [streamed.begins, streamed.headers['Transfer-Encoding']],
              cookies: answer.headers.getSetCookie(), texts: texts.join(''), received,
              head: [head.status, (await head.bytes()).length],
              copies: [await twice.text(), await copy.text()], begun,
              many: many.every((text, i) => text === 'hello from /n' + i),
              blob: (await (await fetch(at + '/chunked')).blob()).size,
              buffer: (await (await fetch('http://web.example.com/old')).arrayBuffer()).byteLength,
            };";

#[sandboxed]
#[test]
fn n1_fetch_sends_requests_and_reads_answers() {
    inside("network_fetch::n1_fetch_sends_requests_and_reads_answers", |internet| {
        let place = Place::new();
        let result = script(internet, &place, MANY_REQUESTS, WEB);
        let first =
            json!([200, true, "https://web.example.com/first", "hello from /first", "text/plain"]);
        assert_eq!(value(&result, "/first"), &first);
        assert_eq!(value(&result, "/plain"), "hello from /plain");
        assert_eq!(value(&result, "/post/begins"), "{\"a\":1}");
        assert_eq!(value(&result, "/post/headers/Content-Type"), "application/json");
        assert_eq!(value(&result, "/post/headers/X-Own"), "\u{e9}");
        assert_eq!(value(&result, "/post/headers/Content-Length"), "7");
        assert_eq!(value(&result, "/sent"), "multipart/form-data");
        assert_eq!(value(&result, "/params"), "a=b");
        assert_eq!(value(&result, "/large"), &json!([3_000_000, "3000000"]));
        assert_eq!(value(&result, "/streamed"), &json!(["one two", "chunked"]));
        assert_eq!(value(&result, "/cookies"), &json!(["a=1", "b=2"]));
        assert_eq!(value(&result, "/texts"), "one two three");
        assert_eq!(value(&result, "/received"), 8 << 20);
        assert_eq!(value(&result, "/head"), &json!([200, 0]));
        assert_eq!(value(&result, "/copies"), &json!(["one two three", "one two three"]));
        assert_eq!(
            (value(&result, "/begun"), value(&result, "/many")),
            (&json!(true), &json!(true))
        );
        assert_eq!((value(&result, "/blob"), value(&result, "/buffer")), (&json!(13), &json!(13)));
    });
}

#[sandboxed]
#[test]
fn n1_redirects_are_requests_of_their_own() {
    inside("network_fetch::n1_redirects_are_requests_of_their_own", |internet| {
        let place = Place::new();
        let code = "
            const to = (status, location) => `https://web.example.com/redirect?${status},${location}`;
            const headers = { Authorization: 'mine', Cookie: 'c=1', 'X-Own': 'kept' };
            const methods = {};
            for (const status of [301, 302, 303, 307, 308]) {
              const response = await fetch(to(status, '/request'), { method: 'POST', body: 'x' });
              methods[status] = [response.redirected, response.url, (await response.json()).method];
            }
            const same = await (await fetch(to(302, '/request'), { headers })).json();
            const cross = await (await fetch(to(302, 'http://web.example.com/request'), { headers })).json();
            const manual = await fetch(to(302, '/request'), { redirect: 'manual' });
            return {
              methods, same: same.headers, cross: cross.headers, manual: [manual.status, manual.headers.get('location')],
              error: await attempt(() => fetch(to(302, '/request'), { redirect: 'error' })),
              other: await attempt(() => fetch(to(302, 'https://other.example.com/'))),
              inner: await attempt(() => fetch(to(302, 'http://10.1.2.3/'))),
              metadata: await attempt(() => fetch(to(307, 'http://169.254.169.254/latest'))),
              scheme: await attempt(() => fetch(to(302, 'file:///etc/passwd'))),
              loop: await attempt(() => fetch(to(302, '/redirect?302,' + to(302, '/x')))),
            };";
        let result = script(internet, &place, code, WEB);
        for (status, method) in
            [("301", "GET"), ("302", "GET"), ("303", "GET"), ("307", "POST"), ("308", "POST")]
        {
            let expected = json!([true, "https://web.example.com/request", method]);
            assert_eq!(value(&result, &format!("/methods/{status}")), &expected);
        }
        assert_eq!(value(&result, "/same/Authorization"), "mine");
        assert_eq!(value(&result, "/same/Cookie"), "c=1");
        assert_eq!(value(&result, "/cross/X-Own"), "kept");
        assert_eq!(value(&result, "/cross/Authorization"), &Value::Null);
        assert_eq!(value(&result, "/cross/Cookie"), &Value::Null);
        assert_eq!(value(&result, "/manual"), &json!([302, "/request"]));
        let text = |at: &str| value(&result, at).as_str().unwrap_or_default().to_owned();
        assert!(
            text("/error").starts_with("TypeError: fetch failed: the server redirects"),
            "{result:#}"
        );
        for at in ["/other", "/inner", "/metadata"] {
            assert!(text(at).starts_with("PermissionError: fetch: "), "{at}: {result:#}");
        }
        assert!(
            text("/scheme").starts_with("TypeError: fetch failed: the server redirects to"),
            "{result:#}"
        );
        assert!(!internet.names().iter().any(|name| name.starts_with("other")));
        let asked = internet.requests();
        assert!(asked.iter().all(|line| line.contains("web.example.com")), "{asked:?}");
    });
}

/// The control requests, those that the rules refuse, and those that are no requests.
const REFUSED: &str = "
    const at = 'https://web.example.com';
    const get = (url, init) => attempt(async () => (await fetch(url, init)).text());
    return {
      control: await get(at + '/allowed/x?y=1'),
      post: await get(at + '/allowed/x', { method: 'POST', body: 'x' }),
      refused: [
        await get('https://other.example.com/allowed/x'),
        await get('https://web.example.com:8443/allowed/x'),
        await get('http://web.example.com:443/allowed/x'),
        await get(at + '/other'),
        await get(at + '/allowed/x', { method: 'PUT', body: 'x' }),
        await get(at + '/allowed/not/x', { method: 'POST', body: 'x' }),
        await get(at + '/allowed//x'),
        await get(at + '/allowed/%2e%2e/other'),
        await get(at + '/allowed/..%2fother'),
        await get(at + '/allowed/x', { headers: { 'X-HTTP-Method-Override': 'DELETE' } }),
        await get(at + '/allowed/x', { headers: { Upgrade: 'websocket', Connection: 'Upgrade' } }),
        await get('http://inner.example.com/'),
        await get('http://127.0.0.1/'),
        await get('http://2130706433/'),
        await get('http://0x7f.1/'),
        await get('http://[::ffff:127.0.0.1]/'),
        await get('http://[64:ff9b::7f00:1]/'),
        await get('http://localhost/'),
        await get('http://web.example.com.evil.example/'),
      ],
      notRequests: [
        await get('https://user:secret@web.example.com/allowed/x'),
        await get('ftp://web.example.com/'),
        await get('//web.example.com/'),
        await get(at + '/allowed/x', { method: 'TRACE' }),
        await get(at + '/allowed/x', { method: 'CONNECT' }),
        await get(at + '/allowed/x', { method: 'GET /other HTTP/1.1\\r\\nX: ' }),
        await get(at + '/allowed/x', { headers: [['A\\r\\nB', 'c']] }),
        await get(at + '/allowed/x', { headers: { A: 'b\\r\\nC: d' } }),
        await get(at + '/allowed/x', { headers: { A: 'b\\0' } }),
        await get(at + '/allowed/x', { method: 'GET', body: 'x' }),
      ],
    };";

/// Refusals of every kind, each beside a request that gets through.
#[sandboxed]
#[test]
fn n2_fetch_is_refused_what_the_rules_do_not_allow() {
    inside("network_fetch::n2_fetch_is_refused_what_the_rules_do_not_allow", |internet| {
        let place = Place::new();
        let rules = r#"[net]
allow = [
  "inner.example.com",
  { host = "web.example.com", methods = ["GET", "POST"], paths = ["/allowed/**", "/request"] },
]
deny = [{ host = "web.example.com", methods = ["POST"], paths = ["/allowed/not/**"] }]
"#;
        place.file(".config/belljar/belljar.toml", rules);
        let hosts = ["--net", "web.example.com", "--net", "inner.example.com"];
        let result = script(internet, &place, REFUSED, &hosts);
        assert_eq!(value(&result, "/control"), "hello from /allowed/x", "{result:#}");
        assert_eq!(value(&result, "/post"), "1 bytes");
        for (at, wanted) in [("/refused", "PermissionError: "), ("/notRequests", "TypeError: ")] {
            for (index, text) in value(&result, at).as_array().expect("a list").iter().enumerate() {
                let text = text.as_str().expect("a text");
                assert!(text.starts_with(wanted), "{at} {index}: {text}");
            }
        }
        // Nothing but the controls has arrived, and no other name was asked for.
        let (mut asked, names) = (internet.requests(), internet.names());
        asked.sort();
        assert_eq!(
            asked,
            [
                "GET https://web.example.com/allowed/x?y=1 -",
                "POST https://web.example.com/allowed/x -",
            ]
        );
        assert!(
            names.iter().all(|name| name == "web.example.com" || name == "inner.example.com"),
            "{names:?}"
        );
        let rows = internet.belljar(&place, &["audit", "--json"]).json();
        let denied = |row: &&Value| row["outcome"] == "permission.network";
        assert_eq!(rows.as_array().expect("a list").iter().filter(denied).count(), 19, "{rows:#}");
    });
}

#[sandboxed]
#[test]
fn n1_a_fetch_can_be_ended_and_fails_as_in_browsers() {
    inside("network_fetch::n1_a_fetch_can_be_ended_and_fails_as_in_browsers", |internet| {
        let place = Place::new();
        let code = "
            const at = 'https://web.example.com';
            const controller = new AbortController();
            const aborted = attempt(async () => {
              const response = await fetch(at + '/endless', { signal: controller.signal });
              for await (const part of response.body) controller.abort();
            });
            return {
              aborted: await aborted,
              before: await attempt(() => fetch(at + '/x', { signal: AbortSignal.abort('no') })),
              late: await attempt(async () => (await fetch(at + '/endless', { signal: AbortSignal.any([AbortSignal.timeout(200)]) })).text()),
              after: await attempt(async () => (await fetch(at + '/after')).text()),
              closed: await attempt(() => fetch('https://web.example.com:9/')),
              used: await attempt(async () => { const r = await fetch(at + '/x'); await r.text(); return r.text(); }),
            };";
        let flags = [WEB, &["--net", "web.example.com:9"]].concat();
        let result = script(internet, &place, code, &flags);
        let text = |at: &str| value(&result, at).as_str().unwrap_or_default().to_owned();
        assert!(text("/aborted").starts_with("AbortError: "), "{result:#}");
        assert!(text("/late").starts_with("TimeoutError: "), "{result:#}");
        assert_eq!(text("/after"), "hello from /after");
        assert!(
            text("/closed").starts_with("TypeError: fetch failed: could not reach"),
            "{result:#}"
        );
        assert!(text("/used").starts_with("TypeError: "), "{result:#}");
        assert!(internet.requests().iter().any(|line| line.contains("has ended")));
    });
}

#[sandboxed]
#[test]
fn a5_without_hosts_a_fetch_is_refused_and_says_which_to_grant() {
    let place = Place::new();
    for (language, code) in [
        ("typescript", "await fetch('https://api.example.com/x')"),
        ("python", "fetch('https://api.example.com/x')"),
    ] {
        let result = place.belljar(&["run", "--json", "-l", language, "-c", code]).json();
        assert_eq!(result["error"]["type"], "PermissionError", "{result:#}");
        assert_eq!(result["error"]["code"], "permission.network", "{result:#}");
        let hint = result["error"]["hint"].as_str().unwrap_or_default();
        assert!(hint.ends_with("Grant it with --net api.example.com:443."), "{result:#}");
        let logs = result["logs"].to_string();
        assert!(logs.contains("[blocked] fetch("), "{result:#}");
    }
}

/// A header that the host adds: the server has it, and nothing that the code or a file can show.
#[sandboxed]
#[test]
fn n4_a_credential_of_a_fetch_is_at_the_server_only() {
    inside("network_fetch::n4_a_credential_of_a_fetch_is_at_the_server_only", |internet| {
        let place = Place::new();
        let rule = r#"[net]
allow = [{ host = "web.example.com", methods = ["GET"], paths = ["/**"], headers = { Authorization = "Bearer ${TEST_TOKEN}" } }]
"#;
        place.file(".config/belljar/belljar.toml", rule);
        let secret = ["the-token-of-", "a-fetch-4713"].concat();
        let typescript = "const at = 'https://web.example.com';
            const own = { headers: { Authorization: 'mine' } };
            const echo = await (await fetch(at + '/authorization', own)).text();
            const request = await (await fetch(at + '/request')).json();
            let plain; try { await fetch('http://web.example.com/x') } catch (e) { plain = e.name }
            return [echo, request.headers.Authorization, plain]";
        let python = "at = 'https://web.example.com'
try: fetch('http://web.example.com/x')
except PermissionError as error: plain = 'PermissionError'
[fetch(at + '/authorization', headers={'Authorization': 'mine'}).text(), fetch(at + '/request').json()['headers']['Authorization'], plain]";
        for (language, code) in [("typescript", typescript), ("python", python)] {
            for more in [&[][..], &["--durable"]] {
                let mut command = internet.command(&place);
                command.env("TEST_TOKEN", &secret);
                command.args(["run", "--json", "-l", language, "-c", code]).args(WEB).args(more);
                let ran = crate::command::outcome(command.output().unwrap());
                let masked = format!("Bearer {}", "*".repeat(secret.len()));
                let expected = json!([masked, masked, "PermissionError"]);
                assert_eq!(ran.json()["result"], expected, "{language} {more:?}: {ran:#?}");
                assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(&secret));
            }
        }
        let bearer = format!(" Bearer {secret}");
        let received = internet.requests();
        assert!(
            received.len() == 8 && received.iter().all(|line| line.ends_with(&bearer)),
            "{received:?}"
        );
        let mut files = 0;
        search(place.path(), &mut |bytes| {
            files += 1;
            assert!(memchr::memmem::find(bytes, secret.as_bytes()).is_none());
        });
        assert!(files > 1, "the journal and the audit log at least");
    });
}

fn search(directory: &Path, look: &mut impl FnMut(&[u8])) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match (path.is_symlink(), path.is_dir()) {
            (false, true) => search(&path, look),
            (false, false) if path.is_file() => look(&fs::read(&path).unwrap()),
            _ => {}
        }
    }
}

/// Frames that a guest writes itself: one that is whole is checked like any other, one that is not ends
/// the run.
#[sandboxed]
#[test]
fn n5_frames_that_are_forged_reach_nothing() {
    inside("network_fetch::n5_frames_that_are_forged_reach_nothing", |internet| {
        let place = Place::new();
        let run = |heads: &[&str]| internet.run(&place, "python", &forge(heads), WEB);
        let control = run(&["{}"]);
        assert_eq!(control["result"], json!([true]), "{control:#}");
        assert_eq!(internet.requests(), ["GET https://web.example.com/x -"]);
        for head in [
            "{'extra': 1}",
            "{'call': 2}",
            "{'body': 'whole', 'length': 1}",
            "{'headers': [['a', 'b']] * 101}",
        ] {
            let ended = run(&[head]);
            assert_eq!(ended["error"]["code"], "sandbox.protocol", "{head}: {ended:#}");
        }
        let refused = run(&[
            "{'url': 'https://web.example.com/x HTTP/1.1\\r\\nA: b\\r\\n\\r\\n'}",
            "{'url': 'https://web.example.com/\\0'}",
            "{'url': 'https://user@web.example.com/'}",
            "{'url': 'https://web.example.com:443:80/'}",
            "{'url': 'web.example.com'}",
            "{'method': 'GET /y HTTP/1.1\\r\\nA: b\\r\\n\\r\\nGET'}",
            "{'method': 'CONNECT'}",
            "{'method': 'TRACE'}",
            "{'headers': [['A\\r\\nB', 'c']]}",
            "{'headers': [['A', 'b\\r\\nC: d']]}",
            "{'headers': [['A', 'b\\0']]}",
            "{'url': 'https://other.example.com/'}",
            "{'url': 'http://0x7f.1/'}",
            "{'url': 'http://localhost/'}",
            "{'url': 'http://[::ffff:10.1.2.3]/'}",
        ]);
        assert_eq!(refused["result"], json!(vec![false; 15]), "{refused:#}");
        assert_eq!(internet.requests().len(), 1, "{:?}", internet.requests());
    });
}

/// Python that writes requests to the socket of its cell, and says which of them were answered.
fn forge(heads: &[&str]) -> String {
    let heads = heads.join(", ");
    format!(
        "import json, os, stat, struct
def is_socket(fd):
    try: return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError: return False
fd = next(fd for fd in range(3, 64) if is_socket(fd))
heads = [{heads}]
for number, more in enumerate(heads, 1):
    head = dict(call=number, line=None, method='GET', url='https://web.example.com/x', headers=[], body='none', length=None, timeout_ms=None)
    head = json.dumps(head | more).encode()
    os.write(fd, struct.pack('<B3xII', 78, len(head), 0) + head)
got, answered = b'', {{}}
while len(answered) < len(heads):
    got += os.read(fd, 65536)
    while len(got) >= 12:
        _, head, body = struct.unpack_from('<B3xII', got)
        if len(got) < 12 + head + body: break
        reply = json.loads(got[12 : 12 + head])
        answered[reply['call']] = reply['ok']
        got = got[12 + head + body :]
[answered[number] for number in sorted(answered)]"
    )
}
