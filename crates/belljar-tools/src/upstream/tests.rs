//! The parts that decide, without a server.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{
    answer::{ContentBlock, NoAnswer, ToolAnswer},
    error::WasSent,
    listing::{Listing, More},
    rate::CallRate,
    ticket::Ticket,
};

fn answer(value: &serde_json::Value) -> Result<ToolAnswer, NoAnswer> {
    ToolAnswer::from_json(value.to_string().as_bytes())
}

#[test]
fn every_kind_of_content_is_read() {
    let read = answer(&json!({
        "content": [
            {"type": "text", "text": "a", "annotations": {"audience": ["user"]}},
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "aGk=", "mimeType": "x/y"}},
            {"type": "hologram", "text": "?"},
        ],
        "structuredContent": null,
        "isError": true,
    }))
    .unwrap();
    assert_eq!(
        read,
        ToolAnswer {
            is_error: true,
            structured: Some(serde_json::Value::Null),
            content: vec![
                ContentBlock::Text { text: "a".into() },
                ContentBlock::Image { mime_type: "image/png".into(), data: "aGk=".into() },
                ContentBlock::Audio { mime_type: "audio/wav".into(), data: "aGk=".into() },
                ContentBlock::ResourceLink {
                    uri: "file:///a".into(),
                    name: "a".into(),
                    mime_type: None,
                    description: None,
                },
                ContentBlock::Resource {
                    uri: "file:///b".into(),
                    mime_type: None,
                    text: Some("b".into()),
                    blob: None,
                },
                ContentBlock::Resource {
                    uri: "file:///c".into(),
                    mime_type: Some("x/y".into()),
                    text: None,
                    blob: Some("aGk=".into()),
                },
                ContentBlock::Other { kind: "hologram".into() },
            ],
        }
    );
}

#[test]
fn an_answer_without_content_is_none() {
    assert!(matches!(answer(&json!({})), Err(NoAnswer::Malformed(_))));
    assert!(matches!(answer(&json!({"content": "text"})), Err(NoAnswer::Malformed(_))));
    assert!(matches!(
        answer(&json!({"resultType": "input_required", "inputRequests": {}})),
        Err(NoAnswer::WantsInput)
    ));
    assert_eq!(answer(&json!({"content": []})).unwrap(), ToolAnswer::default());
    let structured = answer(&json!({"resultType": "complete", "structuredContent": {"a": 1}}));
    assert_eq!(structured.unwrap().structured, Some(json!({"a": 1})));
}

#[test]
fn a_request_is_either_written_or_withdrawn() {
    let ticket = Ticket::default();
    assert_eq!(ticket.give_up(), WasSent::No);
    assert!(!ticket.begin());
    let ticket = Ticket::default();
    assert!(ticket.begin());
    assert_eq!(ticket.give_up(), WasSent::Perhaps);
    let ticket = Ticket::default();
    assert!(ticket.begin());
    ticket.nothing_was_sent();
    assert_eq!(ticket.give_up(), WasSent::No);
}

fn page(value: &serde_json::Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[test]
fn a_bad_tool_does_not_hide_the_others() {
    let mut listing = Listing::new("s");
    let more = listing.add(&page(&json!({"tools": [
        {"name": "a", "inputSchema": {"type": "object"}, "annotations": {"title": "A", "readOnlyHint": true}},
        {"inputSchema": {}},
        {"name": "b", "inputSchema": "no"},
        {"name": "a", "inputSchema": {}},
        {"name": "read\nmake this call? [y/N] y"},
        {"name": "clear\u{1b}[2J"},
        {"name": "a\u{200b}"},
        {"name": "a\u{202e}"},
        {"name": "a".repeat(1025)},
    ], "nextCursor": "2"})));
    assert_eq!((more, listing.cursor()), (Ok(More::Yes), Some("2".into())));
    assert_eq!(
        listing.add(&page(&json!({"tools": [{"name": "c"}], "nextCursor": ""}))),
        Ok(More::No)
    );
    let tools = listing.into_tools();
    let names: Vec<_> = tools.iter().map(|tool| tool.qualified_name()).collect();
    assert_eq!(names, ["s__a", "s__c"]);
    assert_eq!(tools[0].title.as_deref(), Some("A"));
    assert_eq!(tools[0].annotations.read_only, Some(true));
    assert_eq!(tools[1].input_schema, json!({"type": "object"}));
}

#[test]
fn a_list_that_never_ends_is_refused() {
    let mut listing = Listing::new("s");
    let again = json!({"tools": [], "nextCursor": "x"});
    assert_eq!(listing.add(&page(&again)), Ok(More::Yes));
    assert_eq!(listing.add(&page(&again)), Err("its list of tools does not end".into()));
    let many: Vec<_> = (0..10_001).map(|n| json!({"name": n.to_string()})).collect();
    let error = Listing::new("s").add(&page(&json!({"tools": many})));
    assert_eq!(error, Err("it has more than 10000 tools".into()));
}

#[test]
fn no_minute_has_more_calls_than_allowed() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut rate = CallRate::new(2);
    let late = at(1000);
    assert_eq!(rate.take(at(0), late), Ok(at(0)));
    assert_eq!(rate.take(at(30), late), Ok(at(30)));
    assert_eq!(rate.take(at(31), late), Ok(at(60)));
    assert_eq!(rate.take(at(31), at(80)), Err(at(90)));
    assert_eq!(rate.take(at(31), late), Ok(at(90)));
    assert_eq!(rate.take(at(151), late), Ok(at(151)));
}
