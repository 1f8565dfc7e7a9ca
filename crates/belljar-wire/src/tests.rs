//! Round trips, and what arbitrary bytes do to the decoder: nothing (A7, "strict decoding").

use std::io::Cursor;

use belljar_contract::{ErrorCode, Language, Stream};
use proptest::prelude::*;

use crate::{
    Caps, Command, DecodeError, Durable, Event, FetchAsk, FetchBody, FetchHead, FetchReply,
    FetchRequest, FetchStep, GuestError, GuestGrants, GuestLimits, GuestNetwork, Header, Message,
    ReadError, RunCommand, RunValue, ToolCall, ToolReply, read_message, write_message,
};

const CAPS: Caps = Caps { body_bytes: 1 << 20, text_bytes: 1 << 20 };

fn bytes_of(message: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_message(&mut bytes, message).expect("fits a frame");
    bytes
}

fn limits() -> impl Strategy<Value = GuestLimits> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>()).prop_map(
        |(memory_bytes, wall_ms, cpu_ms, result_bytes, processes, open_files)| GuestLimits {
            memory_bytes,
            wall_ms,
            cpu_ms,
            result_bytes,
            processes,
            open_files,
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    let language = proptest::sample::select(vec![
        Language::TypeScript,
        Language::JavaScript,
        Language::Python,
        Language::Bash,
    ]);
    let durable = proptest::option::of(
        ("[0-9a-f]{64}", any::<u32>())
            .prop_map(|(seed, now)| Durable { seed, now_ms: f64::from(now) }),
    );
    let arguments = proptest::collection::vec("\\PC{0,20}", 0..3);
    let kind = (language, "\\PC{0,40}", durable, any::<bool>(), arguments);
    let run = (kind, limits(), grants(), "\\PC{0,400}", any::<Vec<u8>>());
    let run = run.prop_map(|(kind, limits, grants, code, context)| {
        let (language, file_name, durable, session, arguments) = kind;
        Command::Run(RunCommand {
            language,
            file_name,
            arguments,
            limits,
            grants,
            code,
            context,
            durable,
            session,
        })
    });
    let now_ms = || any::<u32>().prop_map(f64::from);
    let reply = (any::<u32>(), proptest::option::of(now_ms()), any::<bool>(), any::<Vec<u8>>());
    let reply = reply.prop_map(|(call, now_ms, ok, body)| {
        Command::ToolReply(ToolReply {
            call,
            now_ms,
            outcome: if ok { Ok(body) } else { Err(body) },
        })
    });
    prop_oneof![
        run,
        reply,
        now_ms().prop_map(|now_ms| Command::Timer { now_ms }),
        Just(Command::Branch),
        Just(Command::Reroot),
    ]
}

fn tool_call() -> impl Strategy<Value = Event> {
    let server = proptest::option::of("\\PC{0,20}");
    let line = proptest::option::of(any::<u32>());
    (any::<u32>(), server, "\\PC{0,20}", line, any::<Vec<u8>>()).prop_map(
        |(call, server, tool, line, arguments)| {
            Event::ToolCall(ToolCall { call, server, tool, line, arguments })
        },
    )
}

fn fetch() -> impl Strategy<Value = Event> {
    let headers = || proptest::collection::vec(("\\PC{0,20}", "\\PC{0,40}"), 0..4);
    let body = prop_oneof![
        Just(FetchBody::None),
        any::<Vec<u8>>().prop_map(FetchBody::Whole),
        proptest::option::of(any::<u64>()).prop_map(|length| FetchBody::Pieces { length }),
    ];
    let line = proptest::option::of(any::<u32>());
    let timeout_ms = proptest::option::of(any::<u32>());
    let request = ("\\PC{0,10}", "\\PC{0,80}", headers(), body, timeout_ms, line).prop_map(
        |(method, url, headers, body, timeout_ms, line)| {
            FetchStep::Begin(FetchRequest { method, url, headers, body, timeout_ms, line })
        },
    );
    let send = (any::<u32>(), any::<bool>(), any::<Vec<u8>>())
        .prop_map(|(fetch, is_last, piece)| FetchStep::Send { fetch, is_last, piece });
    let step = prop_oneof![request, send, any::<u32>().prop_map(|fetch| FetchStep::Read { fetch })];
    prop_oneof![
        (any::<u32>(), step).prop_map(|(call, step)| Event::Fetch(FetchAsk { call, step })),
        any::<u32>().prop_map(|fetch| Event::FetchCancelled { fetch }),
    ]
}

fn grants() -> impl Strategy<Value = GuestGrants> {
    let names = || proptest::collection::vec("\\PC{0,10}", 0..4);
    let env = proptest::collection::btree_map("\\PC{0,10}", "\\PC{0,40}", 0..4);
    let network = proptest::sample::select(vec![
        GuestNetwork::None,
        GuestNetwork::Fetch,
        GuestNetwork::Sockets,
    ]);
    let granted = (env, names(), names(), any::<bool>(), network, names());
    granted.prop_map(|(env, modules, commands, permissive, network, paths)| GuestGrants {
        env,
        modules,
        commands,
        permissive,
        network,
        paths,
    })
}

fn event() -> impl Strategy<Value = Event> {
    let stream = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr), Just(Stream::Log)];
    let own = ErrorCode::ALL.iter().copied().filter(|code| code.is_a_cells_own());
    let code = proptest::sample::select(own.collect::<Vec<_>>());
    prop_oneof![
        Just(Event::Ready),
        ("\\PC{0,40}", "\\PC{0,40}")
            .prop_map(|(mechanism, message)| Event::Refused { mechanism, message }),
        (stream, any::<Vec<u8>>()).prop_map(|(stream, text)| Event::Print { stream, text }),
        "\\PC{0,80}".prop_map(|attempt| Event::Denied { attempt }),
        "\\PC{0,80}".prop_map(|path| Event::Artifact { path }),
        tool_call(),
        fetch(),
        any::<u32>().prop_map(|at| Event::TimerWanted { at_ms: f64::from(at) }),
        (any::<bool>(), any::<Vec<u8>>()).prop_map(|(cut, value)| Event::State { cut, value }),
        (any::<bool>(), any::<bool>(), any::<Vec<u8>>())
            .prop_map(|(lossy, cut, value)| Event::Done(RunValue { lossy, cut, value })),
        (code, "\\PC{0,80}", any::<u32>(), any::<u32>()).prop_map(|(code, text, line, column)| {
            Event::Failed(GuestError::new(code, &*text).at(line, column).with_hint(&*text))
        }),
        Just(Event::Branched),
        Just(Event::Rerooted),
        "\\PC{0,80}".prop_map(|message| Event::NotBranched { message }),
    ]
}

proptest! {
    #[test]
    fn every_command_survives_the_wire(command in command()) {
        let read: Command = read_message(&mut Cursor::new(bytes_of(&command)), CAPS).unwrap();
        prop_assert_eq!(read, command);
    }

    #[test]
    fn every_event_survives_the_wire(event in event()) {
        let read: Event = read_message(&mut Cursor::new(bytes_of(&event)), CAPS).unwrap();
        prop_assert_eq!(read, event);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
        let _ = read_message::<Event>(&mut Cursor::new(&bytes), CAPS);
        let _ = read_message::<Command>(&mut Cursor::new(&bytes), CAPS);
    }

    #[test]
    fn a_flipped_byte_never_panics(event in event(), at in any::<usize>(), bits in 1u8..) {
        let mut bytes = bytes_of(&event);
        let at = at % bytes.len();
        bytes[at] ^= bits;
        let _ = read_message::<Event>(&mut Cursor::new(&bytes), CAPS);
    }

    #[test]
    fn a_cut_frame_is_never_a_message(event in event(), cut in any::<usize>()) {
        let bytes = bytes_of(&event);
        let cut = &bytes[..cut % bytes.len()];
        prop_assert!(read_message::<Event>(&mut Cursor::new(cut), CAPS).is_err());
    }
}

#[test]
fn a_body_over_the_cap_is_refused_before_it_is_read() {
    let large = Event::Done(RunValue { lossy: false, cut: false, value: vec![b'0'; 2000] });
    let read = read_message::<Event>(
        &mut Cursor::new(bytes_of(&large)),
        Caps { body_bytes: 1999, ..CAPS },
    );
    assert!(matches!(
        read,
        Err(ReadError::Decode(DecodeError::BodyTooLarge { bytes: 2000, cap: 1999 }))
    ));
    // Control: one byte more and the same frame passes.
    let caps = Caps { body_bytes: 2000, ..CAPS };
    assert_eq!(read_message::<Event>(&mut Cursor::new(bytes_of(&large)), caps).unwrap(), large);
}

#[test]
fn a_header_that_lies_costs_no_memory() {
    let mut bytes = vec![69, 0, 0, 0, 14, 0, 0, 0];
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    bytes.extend_from_slice(b"{\"lossy\":true}");
    let caps = Caps { body_bytes: u32::MAX, ..CAPS };
    let read = read_message::<Event>(&mut Cursor::new(bytes), caps);
    assert!(matches!(read, Err(ReadError::Io(error))
        if error.kind() == std::io::ErrorKind::UnexpectedEof));
}

#[test]
fn unknown_fields_kinds_and_reserved_bits_are_refused() {
    let refuse = |kind: u8, reserved: u8, head: &[u8], body: &[u8]| {
        let mut bytes = vec![kind, reserved, 0, 0];
        bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(body);
        match read_message::<Event>(&mut Cursor::new(bytes), CAPS) {
            Err(ReadError::Decode(error)) => error.to_string(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(refuse(65, 0, b"{}", b""), "Ok(Ready)");
    assert_eq!(refuse(65, 1, b"{}", b""), "reserved header bytes are set");
    assert_eq!(refuse(65, 0, b"{\"x\":1}", b""), "head does not decode");
    assert_eq!(refuse(65, 0, b"{}", b"x"), "body does not fit its head");
    assert_eq!(refuse(1, 0, b"{}", b""), "unknown frame kind 1");
    assert_eq!(refuse(255, 0, b"{}", b""), "unknown frame kind 255");
}

/// The frames of branching have nothing in them, and a run is no session's unless it says so (B4).
#[test]
fn b4_branching_frames_are_bare_and_sessions_are_asked_for() {
    let read = |kind: u8, head: &[u8], body: &[u8]| {
        let mut bytes = vec![kind, 0, 0, 0];
        bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(body);
        read_message::<Command>(&mut Cursor::new(bytes), CAPS)
    };
    assert_eq!(read(4, b"{}", b"").unwrap(), Command::Branch);
    assert_eq!(read(5, b"{}", b"").unwrap(), Command::Reroot);
    for kind in [4, 5] {
        assert!(matches!(read(kind, b"{}", b"x"), Err(ReadError::Decode(DecodeError::Body))));
        let unknown = read(kind, b"{\"x\":1}", b"");
        assert!(matches!(unknown, Err(ReadError::Decode(DecodeError::Head(_)))));
    }
    let head = br#"{"language":"bash","file_name":"m","limits":{"memory_bytes":1,"wall_ms":1,
        "cpu_ms":1,"result_bytes":1,"processes":1,"open_files":1},"grants":{},"code_bytes":0,
        "durable":null}"#;
    assert!(matches!(read(1, head, b""), Ok(Command::Run(RunCommand { session: false, .. }))));
}

#[test]
fn codes_are_their_wire_names() {
    for code in ErrorCode::ALL {
        assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{}\"", code.as_str()));
    }
}

#[test]
fn headers_fit_their_size() {
    assert_eq!(bytes_of(&Event::Ready).len(), Header::SIZE + 2);
}

#[test]
fn printed_text_has_a_cap_of_its_own() {
    let print = Event::Print { stream: Stream::Stdout, text: vec![b'x'; 100] };
    let caps = Caps { text_bytes: 99, ..CAPS };
    let read = read_message::<Event>(&mut Cursor::new(bytes_of(&print)), caps);
    assert!(matches!(
        read,
        Err(ReadError::Decode(DecodeError::BodyTooLarge { bytes: 100, cap: 99 }))
    ));
    let value = Event::Done(RunValue { lossy: false, cut: false, value: vec![b'0'; 100] });
    assert_eq!(read_message::<Event>(&mut Cursor::new(bytes_of(&value)), caps).unwrap(), value);
}

/// A cell cannot say that it was aborted, or that the sandbox is to blame.
#[test]
fn codes_that_are_the_hosts_to_give_are_refused() {
    for code in ErrorCode::ALL {
        let failed = Event::Failed(GuestError::new(*code, "x"));
        let read = read_message::<Event>(&mut Cursor::new(bytes_of(&failed)), CAPS);
        if code.is_a_cells_own() {
            assert_eq!(read.unwrap(), failed);
        } else {
            assert!(matches!(
                read,
                Err(ReadError::Decode(DecodeError::ForeignCode(foreign))) if foreign == *code
            ));
        }
    }
}

/// A request says once what its body is, and pieces are small (A7).
#[test]
fn a7_frames_of_a_fetch_say_one_thing() {
    let read = |kind: u8, head: &str, body: &[u8]| {
        let mut bytes = vec![kind, 0, 0, 0];
        bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(body);
        match read_message::<Event>(&mut Cursor::new(bytes), CAPS) {
            Err(ReadError::Decode(error)) => error.to_string(),
            Ok(Event::Fetch(_) | Event::FetchCancelled { .. }) => "fetch".to_owned(),
            other => format!("{other:?}"),
        }
    };
    let begin = |url: &str, headers: &str, body: &str| {
        format!(
            r#"{{"call":1,"line":null,"method":"GET","url":"{url}","headers":[{headers}],"body":{body}}}"#
        )
    };
    let plain = |body: &str| begin("http://a/", "", body);
    assert_eq!(read(78, &plain(r#""none","length":null"#), b""), "fetch");
    assert_eq!(read(78, &plain(r#""whole","length":null"#), b"x"), "fetch");
    assert_eq!(read(78, &plain(r#""pieces","length":7"#), b""), "fetch");
    for (body, bytes) in [
        (r#""none","length":null"#, &b"x"[..]),
        (r#""none","length":0"#, b""),
        (r#""whole","length":1"#, b"x"),
        (r#""pieces","length":1"#, b"x"),
    ] {
        assert_eq!(read(78, &plain(body), bytes), "body does not fit its head", "{body}");
    }
    assert_eq!(read(78, &plain(r#""half","length":null"#), b""), "head does not decode");
    let none = r#""none","length":null"#;
    let long = format!("http://a/{}", "x".repeat(16 << 10));
    assert_eq!(read(78, &begin(&long, "", none), b""), "a name of 16393 bytes is too long");
    let headers = vec![r#"["a","b"]"#; 101].join(",");
    assert_eq!(read(78, &begin("http://a/", &headers, none), b""), "101 headers are too many");
    let piece = vec![0; 256 << 10];
    assert_eq!(read(79, r#"{"call":2,"fetch":1,"last":false}"#, &piece), "fetch");
    let over = "body of 262145 bytes is over the cap of 262144";
    assert_eq!(
        read(79, r#"{"call":2,"fetch":1,"last":false}"#, &[&piece[..], b"x"].concat()),
        over
    );
    assert_eq!(read(80, r#"{"call":2,"fetch":1}"#, b""), "fetch");
    assert_eq!(read(80, r#"{"call":2,"fetch":1}"#, b"x"), "body does not fit its head");
    assert_eq!(read(81, r#"{"fetch":1}"#, b""), "fetch");
    assert_eq!(read(81, r#"{"fetch":-1}"#, b""), "head does not decode");
}

#[test]
fn the_head_of_an_answer_ends_with_its_line() {
    let headers = vec![("a".to_owned(), "b\n\u{ff}".to_owned())];
    let head = FetchHead { status: 200, status_text: "OK".to_owned(), headers, is_whole: false };
    let reply = head.with_body(b"\n{}");
    let (read, at) = FetchHead::parse(&reply).expect("a head");
    assert_eq!((read, &reply[at..]), (head, &b"\n{}"[..]));
    assert_eq!(FetchHead::parse(b"{}"), None);
}

/// Journals have this text: a run that is replayed reads it again.
#[test]
fn the_text_of_an_answer_in_a_journal_stays_as_it_is() {
    let headers = vec![("a".to_owned(), "\u{ff}".to_owned())];
    let head = FetchHead { status: 404, status_text: "No".to_owned(), headers, is_whole: true };
    let reply = FetchReply { head: Some(head), bytes: b"{}".to_vec() };
    let text = "{\"status\":404,\"status_text\":\"No\",\"headers\":[[\"a\",\"\u{ff}\"]],\"is_whole\":true}\n{}";
    assert_eq!(reply.into_body(), text.as_bytes());
    let piece = FetchReply { head: None, bytes: b"piece".to_vec() };
    assert_eq!(piece.into_body(), b"piece");
}
