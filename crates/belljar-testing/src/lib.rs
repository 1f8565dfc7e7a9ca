//! Attributes for Belljar's own tests. Nothing that is shipped depends on this crate.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Skips a test, loudly, on a machine that cannot sandbox.
///
/// Put it above `#[test]` or `#[tokio::test]`. The test's crate has a function `no_sandbox` at its root
/// that says whether to skip; where `BELLJAR_REQUIRE_SANDBOX` is `1` it panics instead, so that CI never
/// skips in silence.
#[proc_macro_attribute]
pub fn sandboxed(_arguments: TokenStream, test: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = test.into_iter().collect();
    let body = match tokens.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
        _ => return error("`#[sandboxed]` belongs above a test function"),
    };
    let Ok(mut guarded) = "if crate::no_sandbox() { return; }".parse::<TokenStream>() else {
        return error("the guard does not parse");
    };
    guarded.extend(body.stream());
    let mut block = Group::new(Delimiter::Brace, guarded);
    block.set_span(body.span());
    tokens.push(TokenTree::Group(block));
    tokens.into_iter().collect()
}

fn error(message: &str) -> TokenStream {
    format!("compile_error!({message:?});").parse().unwrap_or_default()
}
