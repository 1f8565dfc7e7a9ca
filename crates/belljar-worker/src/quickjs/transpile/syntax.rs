//! Syntax errors an agent can act on: what, where, and the line in question.

use belljar_contract::{ErrorCode, Language};
use belljar_wire::GuestError;
use oxc::{allocator::Allocator, diagnostics::OxcDiagnostic, span::SourceType};

use super::{SourceCode, parse};

/// An excerpt line longer than this says nothing.
const MAX_EXCERPT_CHARS: usize = 160;

/// 1-based line and column of a byte offset, the column in characters.
pub(in crate::quickjs) fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..text.floor_char_boundary(offset)).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

/// An error at a byte offset of the source, with the line it stands on.
pub(super) fn error_at(
    source: &SourceCode,
    code: ErrorCode,
    message: impl Into<String>,
    offset: u32,
) -> GuestError {
    let (line, column) = position(&source.text, offset as usize);
    let mut stack = format!("    at {}:{line}:{column}", source.file_name);
    let excerpt = source.text.lines().nth(line as usize - 1).unwrap_or_default();
    if !excerpt.trim().is_empty() && excerpt.chars().count() <= MAX_EXCERPT_CHARS {
        let margin = line.to_string();
        let indent: String = excerpt
            .chars()
            .take(column as usize - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        stack.push_str(&format!("\n{margin} | {excerpt}\n"));
        stack.push_str(&format!("{} | {indent}^", " ".repeat(margin.len())));
    }
    GuestError::new(code, message).at(line, column).with_stack(stack)
}

/// Why the code does not parse. Two dialects are recognised by parsing as such.
pub(super) fn explain_unparsed(source: &SourceCode, diagnostic: &OxcDiagnostic) -> GuestError {
    let offset = offset_of(diagnostic);
    if source.text.contains('<') && parses_as(source, jsx_goal(source.language)) {
        let message = "SyntaxError: JSX is not supported";
        return error_at(source, ErrorCode::SyntaxUnsupported, message, offset)
            .with_hint("Build strings or plain objects instead of JSX elements.");
    }
    if source.language == Language::JavaScript && parses_as(source, SourceType::ts()) {
        let message = "SyntaxError: this is TypeScript syntax, and the code runs as JavaScript";
        return error_at(source, ErrorCode::SyntaxInvalid, message, offset)
            .with_hint("Run the code with language typescript, or remove the types.");
    }
    explain(source, diagnostic)
}

/// The compiler's error about code that parses.
pub(super) fn explain(source: &SourceCode, diagnostic: &OxcDiagnostic) -> GuestError {
    let message = format!("SyntaxError: {}", diagnostic.message);
    let error = error_at(source, ErrorCode::SyntaxInvalid, message, offset_of(diagnostic));
    match &diagnostic.help {
        Some(help) => error.with_hint(&**help),
        None => error,
    }
}

fn offset_of(diagnostic: &OxcDiagnostic) -> u32 {
    let labels = &diagnostic.labels;
    // Of two declarations, the second one is the mistake.
    let label = match diagnostic.message.contains("already been declared") {
        true => labels.last(),
        false => labels.first(),
    };
    label.map_or(0, |label| label.offset())
}

fn jsx_goal(language: Language) -> SourceType {
    if language == Language::JavaScript { SourceType::jsx() } else { SourceType::tsx() }
}

fn parses_as(source: &SourceCode, goal: SourceType) -> bool {
    let allocator = Allocator::default();
    !parse(&allocator, &source.text, goal).diagnostics.has_errors()
}
