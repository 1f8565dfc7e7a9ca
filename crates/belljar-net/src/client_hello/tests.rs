//! Messages of TLS clients: whole, cut, ambiguous, hostile.

use proptest::prelude::*;

use super::*;

fn with_length(bytes: &[u8], length_bytes: usize) -> Vec<u8> {
    let length = (bytes.len() as u32).to_be_bytes();
    [&length[4 - length_bytes..], bytes].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [kind.to_be_bytes().to_vec(), with_length(content, 2)].concat()
}

fn server_name(names: &[&[u8]]) -> Vec<u8> {
    let names: Vec<u8> =
        names.iter().flat_map(|name| [vec![0], with_length(name, 2)].concat()).collect();
    extension(SERVER_NAME, &with_length(&names, 2))
}

fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
    let body = [
        vec![3, 3],
        vec![7; 32],
        with_length(&[9; 32], 1),
        with_length(&[0x13, 1], 2),
        with_length(&[0], 1),
        with_length(&extensions.concat(), 2),
    ];
    [vec![CLIENT_HELLO], with_length(&body.concat(), 3)].concat()
}

/// The message in records of so many bytes.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|part| [vec![22, 3, 1], with_length(part, 2)].concat()).collect()
}

fn named(name: &str) -> HelloProgress {
    let server_name = Some(name.as_bytes().to_vec());
    HelloProgress::Complete(ClientHello { server_name, is_encrypted: false })
}

#[test]
fn the_name_is_found_however_the_message_is_cut() {
    let message =
        message(&[extension(10, &[1, 2]), server_name(&[b"example.org"]), extension(43, &[])]);
    for size in [1, 2, 5, 50, 5000] {
        assert_eq!(read(&records(&message, size)), named("example.org"), "{size}");
    }
}

#[test]
fn the_beginning_of_a_message_is_incomplete() {
    let whole = records(&message(&[server_name(&[b"example.org"])]), 40);
    for end in 0..whole.len() {
        assert_eq!(read(&whole[..end]), HelloProgress::Incomplete, "{end}");
    }
}

#[test]
fn ambiguous_messages_are_refused() {
    let one = server_name(&[b"example.org"]);
    assert_eq!(read(&records(&message(std::slice::from_ref(&one)), 5000)), named("example.org"));
    let mut trailing = message(std::slice::from_ref(&one));
    trailing.push(0);
    let mut too_short = message(std::slice::from_ref(&one));
    too_short[3] -= 1;
    for (what, message) in [
        ("two extensions", message(&[one.clone(), server_name(&[b"evil.net"])])),
        ("two names", message(&[server_name(&[b"example.org", b"evil.net"])])),
        ("no name in the list", message(&[server_name(&[])])),
        ("something after the message", trailing),
        ("a length that is too short", too_short),
        ("not a client hello", vec![2, 0, 0, 1, 0]),
    ] {
        assert_eq!(read(&records(&message, 5000)), HelloProgress::NotTls, "{what}");
    }
}

#[test]
fn other_protocols_are_not_tls() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-x\r\n",
        &[0x80, 0x2e, 1, 3, 1],
        &[23, 3, 3, 0, 1, 0],
        &[22, 9],
    ] {
        assert_eq!(read(bytes), HelloProgress::NotTls, "{bytes:?}");
    }
}

#[test]
fn no_name_and_an_encrypted_message_are_reported() {
    let hello = |extensions: &[Vec<u8>]| read(&records(&message(extensions), 5000));
    let none = ClientHello { server_name: None, is_encrypted: false };
    assert_eq!(hello(&[extension(10, &[])]), HelloProgress::Complete(none));
    let encrypted = ClientHello { server_name: Some(b"example.org".to_vec()), is_encrypted: true };
    let extensions = [server_name(&[b"example.org"]), extension(ENCRYPTED_CLIENT_HELLO, &[0])];
    assert_eq!(hello(&extensions), HelloProgress::Complete(encrypted));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = read(&bytes);
        let _ = read(&[vec![22, 3, 1, 1, 0, 1, 0, 0, 200], bytes].concat());
    }
}
