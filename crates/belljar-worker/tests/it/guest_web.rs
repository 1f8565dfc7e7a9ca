//! Web classes and `Intl` where Node 20 says nothing, less, or something else (A1).

use belljar_contract::Stream;
use serde_json::json;

use crate::harness::{run, value, values};

/// A1. The label `latin1` means windows-1252 on the web, C1 range included.
#[test]
fn encodings_follow_the_web() {
    let actual = values(&[
        "new TextDecoder('latin1').decode(new Uint8Array([0x80, 0xe9, 0x9f, 0x41]))",
        "new TextDecoder('utf-16be').decode(new Uint8Array([0, 0x61, 0xd8]))",
        "new TextDecoder('utf-16le', { fatal: true }).decode(new Uint8Array([0x3d, 0xd8]))",
        "new TextDecoder('shift_jis')",
        "new TextDecoder().decode('text')",
        "new TextEncoder().encodeInto('a', [])",
        "new TextDecoder().decode(new TextEncoder().encode('x'.repeat(300_000))).length",
        "new Uint8Array([1, 2]).toBase64()",
    ]);
    let expected = json!([
        "€éŸA",
        "a\u{fffd}",
        "TypeError: The encoded data was not valid for encoding utf-16le",
        "RangeError: The \"shift_jis\" encoding is not supported: use utf-8, utf-16le, utf-16be or latin1",
        "TypeError: TextDecoder.decode: the input must be an ArrayBuffer or a view of one",
        "TypeError: TextEncoder.encodeInto: the destination must be a Uint8Array",
        300_000,
        "AQI=",
    ]);
    assert_eq!(actual, expected);
}

#[test]
fn a1_urls_can_be_asked_without_throwing() {
    let actual = values(&[
        "URL.parse('nope')",
        "URL.parse('x', 'http://a/').href",
        "new URL()",
        "new URLSearchParams([['a']])",
        "new URLSearchParams('a=\\ud800').get('a')",
        "(() => { const u = new URL('http://a'); u.href = 'nope'; })()",
        "Object.prototype.toString.call(new URL('http://a'))",
        "URL.prototype.toString.call({})",
    ]);
    let expected = json!([
        null,
        "http://a/x",
        "TypeError: new URL needs 1 argument, got 0",
        "TypeError: URLSearchParams: each entry must be a [name, value] pair",
        "\u{fffd}",
        "TypeError: Invalid URL",
        "[object URL]",
        "TypeError: object is not an instance of the class",
    ]);
    let (actual, expected) = (actual.as_array().unwrap(), expected.as_array().unwrap());
    // The last message is the engine's; that it refuses is what counts.
    assert_eq!(actual[..7], expected[..7]);
    assert!(actual[7].as_str().is_some_and(|text| text.starts_with("TypeError: ")), "{actual:?}");
}

#[test]
fn a1_what_is_not_there_says_so() {
    let actual = values(&[
        "structuredClone()",
        "structuredClone(new Proxy({}, {}))",
        "structuredClone({}, { transfer: [{}] })",
        "new AbortSignal()",
        "AbortSignal.timeout(-1)",
        "new EventTarget().dispatchEvent({})",
    ]);
    let expected = json!([
        "TypeError: structuredClone needs the value to copy",
        "DataCloneError: #<Object> could not be cloned.",
        "DataCloneError: Value could not be transferred: only an ArrayBuffer can, once",
        "TypeError: Illegal constructor: use new AbortController().signal",
        "RangeError: AbortSignal.timeout needs a number of milliseconds",
        "TypeError: dispatchEvent needs an Event",
    ]);
    assert_eq!(actual, expected);
}

#[test]
fn a1_signals_end_by_the_clock_and_call_onabort() {
    let code = "const signal = AbortSignal.timeout(5);
        const seen = [];
        signal.onabort = (event) => seen.push(event.type);
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return [signal.aborted, signal.reason.name, signal.reason.message, seen];";
    let expected =
        json!([true, "TimeoutError", "The operation was aborted due to timeout", ["abort"]]);
    assert_eq!(value(code), expected);
}

/// A1. One listener's mistake is told, and the next listener is called.
#[test]
fn a_listener_that_throws_is_told() {
    let outcome = run("const target = new EventTarget(); let heard = 0;
target.addEventListener('x', () => { throw 'oops'; });
target.addEventListener('x', () => { heard += 1; });
target.dispatchEvent(new Event('x'));
return heard;");
    assert_eq!(outcome.value, json!(1));
    let told = "Uncaught in a listener for \"x\": 'oops'\n";
    assert_eq!(outcome.prints, [(Stream::Stderr, told.into())]);
}

#[test]
fn a1_traces_name_the_agents_lines() {
    let outcome = run("function where() { console.trace('here %d', 1); }\nwhere();");
    let told = "Trace: here 1\n    at where (main.ts:1:28)\n    at main.ts:2:1\n";
    assert_eq!(outcome.printed(Stream::Stderr), told);
}

/// A1. A locale without data is answered in American English and says so; offsets are zones.
#[test]
fn unknown_locales_fall_back_and_offsets_are_zones() {
    let actual = values(&[
        "new Intl.NumberFormat('et-EE').resolvedOptions().locale",
        "(1234.5).toLocaleString('et-EE')",
        "new Intl.NumberFormat(['tlh', 'de-AT']).resolvedOptions().locale",
        "new Date(0).toLocaleDateString('en-AU')",
        "new Date(0).toLocaleString('en-US', { timeZone: '+05:30', timeZoneName: 'short' })",
        "new Intl.DateTimeFormat('en', { timeZone: 'europe/berlin' }).resolvedOptions().timeZone",
        "[2, 10, 1].toLocaleString()",
        "Intl.DateTimeFormat.supportedLocalesOf(['et', 'fr-CA'])",
        "new Intl.NumberFormat('en', { style: 'unit', unit: 'parsec' })",
        "(5).toLocaleString('en', { style: 'nonsense' })",
        "new Date(8.64e15).toLocaleString('en-US', { timeZone: 'Asia/Tokyo' })",
    ]);
    let expected = json!([
        "en-US",
        "1,234.5",
        "de-AT",
        "01/01/1970",
        "1/1/1970, 5:30:00 AM GMT+5:30",
        "Europe/Berlin",
        "2,10,1",
        ["fr-CA"],
        "RangeError: Invalid unit argument for Intl.NumberFormat() 'parsec'",
        "RangeError: Value nonsense out of range for Intl options property style",
        "9/13/275760, 12:00:00 AM",
    ]);
    assert_eq!(actual, expected);
}
