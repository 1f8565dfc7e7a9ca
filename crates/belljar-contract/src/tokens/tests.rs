//! The estimate is cautious, and what is cut is counted.

use super::*;

/// The second number is what the tokenizer `o200k_base` counts.
#[test]
fn e5_the_estimate_is_not_below_a_tokenizer() {
    let numbers: String = (1..=2_000).map(|number| format!("{number}\n")).collect();
    let prose = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    let base64 = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA10dzkAAAAOXRFWHRTb2Z0d2FyZQ".repeat(4);
    for (text, counted) in [(numbers.as_str(), 5_001), (&prose, 201), (&base64, 141), ("", 0)] {
        let estimate = estimate(text, usize::MAX);
        assert!(estimate * 10 >= counted * 9 && estimate <= counted * 3, "{estimate} {counted}");
    }
}

#[test]
fn e5_a_text_is_cut_between_lines_and_the_rest_is_counted() {
    let text: String = (0..10_000).map(|number| format!("line {number}\n")).collect();
    let CutText { head, tail, lines, bytes } = cut(&text, 200).expect("it is cut");
    assert!(head.starts_with("line 0\n") && head.ends_with('\n'), "{head}");
    assert!(tail.starts_with("line ") && tail.ends_with("line 9999\n"), "{tail}");
    assert_eq!(head.len() + bytes + tail.len(), text.len());
    assert_eq!(head.lines().count() + lines + tail.lines().count(), 10_000);
    assert!(estimate(head, 999) + estimate(tail, 999) <= 200);
    assert_eq!(cut("a\nb\n", 200), None);
}

#[test]
fn e5_one_long_line_is_cut_in_the_middle() {
    let text = format!("begin {} end", "é7 ".repeat(40_000));
    let CutText { head, tail, lines, bytes } = cut(&text, 100).expect("it is cut");
    assert!(head.starts_with("begin é7") && tail.ends_with("é7  end"), "{head} {tail}");
    assert_eq!((lines, head.len() + bytes + tail.len()), (0, text.len()));
    // The lines around a long line are there, too.
    let text = format!("first\n{}\nlast\n", "x".repeat(100_000));
    let CutText { head, tail, .. } = cut(&text, 100).expect("it is cut");
    assert!(head.starts_with("first\nxxx") && tail.ends_with("xxx\nlast\n"), "{head} {tail}");
}
