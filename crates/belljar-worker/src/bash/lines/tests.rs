//! Lines come out whole, long ones in pieces of whole characters.

use super::{LineBuffer, MAX_PRINT_BYTES, MAX_SINGLE_LINES};

fn prints(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut lines = LineBuffer::default();
    let mut prints = Vec::new();
    let mut print = |text: &[u8]| {
        prints.push(text.to_vec());
        Ok::<_, ()>(())
    };
    for chunk in chunks {
        lines.push(chunk, &mut print).unwrap();
    }
    lines.flush(&mut print).unwrap();
    assert!(!lines.is_pending());
    prints
}

#[test]
fn one_line_is_one_print() {
    let expected: [&[u8]; 4] = [b"one\n", b"\n", b"two\n", b"end"];
    assert_eq!(prints(&[b"o", b"ne\n\nt", b"wo\nen", b"d"]), expected);
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let line = "é".repeat(MAX_PRINT_BYTES) + "\n";
    for shift in 0..2 {
        let line = "x".repeat(shift) + &line;
        let prints = prints(&[line.as_bytes()]);
        assert!(prints.iter().all(|print| print.len() <= MAX_PRINT_BYTES));
        assert!(prints.iter().all(|print| std::str::from_utf8(print).is_ok()));
        assert_eq!(prints.concat(), line.as_bytes());
    }
    let binary = vec![0x80; MAX_PRINT_BYTES * 2 + 5];
    assert_eq!(prints(&[&binary]).concat(), binary);
}

#[test]
fn a_flood_shares_prints() {
    let flood = b"y\n".repeat(MAX_SINGLE_LINES);
    assert_eq!(prints(&[&flood]).len(), MAX_SINGLE_LINES);
    let chunk = b"y\n".repeat(100);
    assert_eq!(prints(&[&flood, &chunk, b"end"]).len(), MAX_SINGLE_LINES + 2);
    assert_eq!(prints(&[&[&*flood, &*chunk].concat()]).len(), MAX_SINGLE_LINES + 1);
}
