//! Code that is too deep is refused, code that people write is not (A7).

use belljar_contract::Language;

use super::{MAX_BRACKETS, MAX_OPEN_TOKENS, check};
use crate::quickjs::transpile::{NameScope, SourceCode};

fn is_refused(text: String) -> bool {
    let (language, file_name) = (Language::TypeScript, "main.ts".into());
    let source = SourceCode { language, file_name, text, scope: NameScope::Run };
    check(&source).is_err()
}

/// A7: every way to nest that costs the parser a stack frame is bounded.
#[test]
fn deep_nesting_is_refused() {
    let around = |open: &str, close: &str| open.repeat(25_000) + "a" + &close.repeat(25_000);
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("f(", ")"),
        ("`${", "}`"),
        ("!", ""),
        ("typeof ", ""),
        ("a => ", ""),
        ("(a) => ", ""),
        ("a ? b : ", ""),
        ("a ? ", " : b"),
        ("a = ", ""),
        ("if (1) ", ""),
        ("if (1)\n", ""),
        ("if (1) b; else ", ""),
        ("if (1) b, c; else ", ""),
        ("a:", ""),
        ("while (1)\n", ""),
        ("A<", ">"),
        ("A<b, ", ">"),
        ("new ", ""),
        ("new\n", ""),
        ("", " + a"),
        ("", ".a"),
        ("", "[0]"),
        ("", "()"),
        ("", "\n.a()"),
        ("function f() {", "}"),
        ("do\n", ""),
        ("await\n", ""),
        ("if (1) {} else ", ""),
    ] {
        assert!(is_refused(around(open, close)), "{open:?} … {close:?}");
    }
}

/// A7: long is not deep.
#[test]
fn long_flat_code_is_not_refused() {
    for line in [
        "f(a, b);\n",
        "f(a, b)\n",
        "const x = { a: 1, b: [2, 3] }\n",
        "x.y.z = `a${b}c`\n",
        "function f(a) { return a + 1 }\n",
        "if (a) { b() } else { c() }\n",
        "// it's { [ (\n",
        "const r = /[/{(\\/]/.exec(s)\n",
        "s = 'it\\'s {'\n",
        "type A = B<C, D>\n",
        "x / y / z\n",
        "class A { a = 1; b() {} }\n",
        "switch (a) { case 1: b(); break }\n",
        "a = a < b, c\n",
        "let x: { a: string, b: number }\n",
        "for (const a of b) c(a)\n",
        "i++\nj--\n",
    ] {
        assert!(!is_refused(line.repeat(20_000)), "{line:?}");
    }
    assert!(!is_refused(format!("[{}]", "{ a: 'x', b: [1, 2] },\n".repeat(50_000))));
    assert!(!is_refused(format!("`{}`", "{([".repeat(50_000))));
    assert!(!is_refused(format!("interface A {{\n{}}}", "a: string\n".repeat(50_000))));
}

/// A7: the limits are where they say.
#[test]
fn the_limits_are_exact() {
    let brackets = |count: usize| "[".repeat(count) + &"]".repeat(count);
    assert!(!is_refused(brackets(MAX_BRACKETS)));
    assert!(is_refused(brackets(MAX_BRACKETS + 1)));
    let sum = |terms: usize| "1".to_string() + &"+1".repeat(terms);
    assert!(!is_refused(sum(MAX_OPEN_TOKENS / 2 - 1)));
    assert!(is_refused(sum(MAX_OPEN_TOKENS / 2)));
}
