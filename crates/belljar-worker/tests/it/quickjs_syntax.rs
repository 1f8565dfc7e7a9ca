//! Code that cannot run says why, and where (A7).

use belljar_contract::{ErrorCode, Language};
use belljar_wire::{GuestError, RunCommand};

use crate::harness::{command, run, run_command};

/// A7: the parser's message, at the place in the source as written.
#[test]
fn syntax_errors_have_places() {
    for (code, message, line, column) in [
        ("let x = ;", "SyntaxError: Unexpected token", 1, 9),
        (
            "const a = 1;\nconst é = '😀'; é é",
            "SyntaxError: Expected a semicolon or an implicit semicolon after a statement, but \
                found none",
            2,
            17,
        ),
        ("let a = 1;\nlet a = 2", "SyntaxError: Identifier `a` has already been declared", 2, 5),
        ("f(1, 2", "SyntaxError: Expected `)` but found `EOF`", 1, 7),
        ("let s = 'abc", "SyntaxError: Unterminated string", 1, 9),
        ("break", "SyntaxError: Illegal break statement", 1, 1),
        ("const x", "SyntaxError: Missing initializer in const declaration", 1, 7),
    ] {
        let outcome = run(code);
        let place = (ErrorCode::SyntaxInvalid, message, Some(line), Some(column));
        assert_eq!(outcome.place(), place, "{code}");
    }
}

/// A7: the whole error, with the line in question.
#[test]
fn syntax_errors_show_the_line() {
    let expected = GuestError::new(ErrorCode::SyntaxInvalid, "SyntaxError: Unexpected token")
        .at(2, 10)
        .with_stack("    at main.ts:2:10\n2 | \tlet x = ;\n  | \t        ^");
    assert_eq!(run("// first\n\tlet x = ;\n").error, Some(expected));
}

/// A7: syntax that is not supported is named, with what to write instead.
#[test]
fn unsupported_syntax_is_named() {
    for (code, message, hint) in [
        (
            "const a = <div>hi</div>;",
            "SyntaxError: JSX is not supported",
            "Build strings or plain objects instead of JSX elements.",
        ),
        (
            "@dec class A {}",
            "SyntaxError: decorators are not supported",
            "Write the same thing with plain functions or methods.",
        ),
        (
            "class A { @dec() m() {} }",
            "SyntaxError: decorators are not supported",
            "Write the same thing with plain functions or methods.",
        ),
        (
            "class A { accessor x = 1 }",
            "SyntaxError: `accessor` fields are not supported",
            "Write the same thing with plain functions or methods.",
        ),
    ] {
        let outcome = run(code);
        let error = outcome.failure();
        let seen = (error.code, error.message.as_str(), error.hint.as_deref());
        assert_eq!(seen, (ErrorCode::SyntaxUnsupported, message, Some(hint)), "{code}");
    }
}

/// A7: types in JavaScript are recognised as such.
#[test]
fn types_in_javascript_are_recognised() {
    let run = |code: &str| {
        let file_name = "main.js".into();
        run_command(RunCommand { language: Language::JavaScript, file_name, ..command(code) })
    };
    let outcome = run("const x: number = 1; x");
    let message = "SyntaxError: this is TypeScript syntax, and the code runs as JavaScript";
    assert_eq!(outcome.place(), (ErrorCode::SyntaxInvalid, message, Some(1), Some(7)));
    assert_eq!(
        outcome.failure().hint.as_deref(),
        Some("Run the code with language typescript, or remove the types.")
    );
    assert_eq!(run("const x = ;").place().1, "SyntaxError: Unexpected token");
}

/// A7: code nested too deeply is refused, not crashed on, whatever nests.
#[test]
fn deep_nesting_is_a_syntax_error() {
    let nest = |open: &str, close: &str| open.repeat(25_000) + "1" + &close.repeat(25_000);
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("!", ""),
        ("f(", ")"),
        ("a => ", ""),
        ("`${", "}`"),
        ("a ? b : ", ""),
        ("if (a) ", ""),
        ("", " + 1"),
        ("", ".a"),
        ("function f() {", "}"),
    ] {
        let outcome = run(&nest(open, close));
        let error = outcome.failure();
        let seen = (error.code, error.message.as_str());
        let message = "SyntaxError: the code is nested too deeply";
        assert_eq!(seen, (ErrorCode::SyntaxInvalid, message), "{open} {close}");
    }
}

/// A7: what is as deep as the limit allows ends well, or in an error of the engine's.
#[test]
fn nesting_up_to_the_limit_does_not_crash() {
    for (open, close, times) in [
        ("(", ")", 1990),
        ("[", "]", 1990),
        ("{", "}", 1990),
        ("f(", ")", 1990),
        ("!", "", 19_000),
        ("a => ", "", 6_000),
        ("`${", "}`", 1990),
        ("a ? b : ", "", 4_900),
        ("", " + 1", 9_900),
        ("", ".a", 9_900),
        ("function f() {", "}", 1900),
        ("() => {", "}", 1900),
        ("class A { m() {", "}}", 900),
        ("(() => {", "})()", 900),
        ("if (a) ", "", 6_000),
        ("typeof ", "", 19_000),
        ("a = ", "", 9_900),
        ("new ", "", 19_000),
        ("{ a: ", "}", 1900),
    ] {
        let code = format!("x = {}1{}", open.repeat(times), close.repeat(times));
        let _ = run(&code);
        let _ = run(&code[4..]);
    }
}
