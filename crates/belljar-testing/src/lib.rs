//! Attributes for Belljar's own tests. Nothing that is shipped depends on this crate.
//!
//! Each attribute skips a test, loudly, where this machine or this build cannot run it. Put them above
//! `#[test]` or `#[tokio::test]`; several may stand above one test. An attribute calls a function at the
//! root of the test's crate. That function panics where `BELLJAR_REQUIRE_SANDBOX` is `1`, so that CI never
//! skips a test in silence: see `shared/skip.rs`, which suites include as a module.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Skips a test on a machine that cannot sandbox; calls `crate::no_sandbox`.
#[proc_macro_attribute]
pub fn sandboxed(_arguments: TokenStream, test: TokenStream) -> TokenStream {
    guarded("if crate::no_sandbox() { return; }", test)
}

/// Skips a test unless root runs it; calls `crate::not_root`.
#[proc_macro_attribute]
pub fn as_root(_arguments: TokenStream, test: TokenStream) -> TokenStream {
    guarded("if crate::not_root() { return; }", test)
}

/// Skips a test in a build without crash points, which only debug builds have; calls
/// `crate::no_crash_points`.
#[proc_macro_attribute]
pub fn crash_points(_arguments: TokenStream, test: TokenStream) -> TokenStream {
    guarded("if crate::no_crash_points() { return; }", test)
}

/// Leaves a test to the child that a test of root starts as an ordinary user; calls
/// `crate::left_to_child`.
#[proc_macro_attribute]
pub fn in_child(_arguments: TokenStream, test: TokenStream) -> TokenStream {
    guarded("if crate::left_to_child() { return; }", test)
}

/// Leaves a test out of such a child, because its parent runs it; calls `crate::left_to_parent`.
#[proc_macro_attribute]
pub fn in_parent(_arguments: TokenStream, test: TokenStream) -> TokenStream {
    guarded("if crate::left_to_parent() { return; }", test)
}

fn guarded(guard: &str, test: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = test.into_iter().collect();
    let body = match tokens.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
        _ => return error("this attribute belongs above a test function"),
    };
    let Ok(mut statements) = guard.parse::<TokenStream>() else {
        return error("the guard does not parse");
    };
    statements.extend(body.stream());
    let mut block = Group::new(Delimiter::Brace, statements);
    block.set_span(body.span());
    tokens.push(TokenTree::Group(block));
    tokens.into_iter().collect()
}

fn error(message: &str) -> TokenStream {
    format!("compile_error!({message:?});").parse().unwrap_or_default()
}
