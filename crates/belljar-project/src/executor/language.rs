//! The language of code whose request names none.
//!
//! A first line with `#!` decides. Otherwise the code is TypeScript, unless it does not parse as that and
//! does as Python. Each is tried in a cell of its own, on code that returns before its first statement:
//! nothing of it runs there, and it has no tools and no grants. The run itself begins afterwards, once, in
//! the language that was found, so that a journal, a cache entry and a record have it too.

use belljar_contract::{ErrorCode, Language, RunRequest, RunResult};

use super::{Execution, Executor};

/// The note about the language of a run: it was not stated, or the code is a block of Markdown.
#[derive(Debug, Default)]
pub(super) struct LanguageNote {
    is_left_out: bool,
    is_fenced: bool,
    /// The language that was found in place of the default.
    found: Option<Language>,
}

impl Executor {
    /// Decides the language of code whose request names none, and looks for Markdown around the code.
    pub(super) async fn settle_language(&self, execution: &mut Execution) -> LanguageNote {
        let request = &mut execution.request;
        let is_fenced = is_fenced(&request.code);
        if !execution.language_left_out || request.engine.is_some() {
            return LanguageNote { is_fenced, ..LanguageNote::default() };
        }
        let found = match Language::of_shebang(&request.code) {
            Some(language) => Some(language),
            None if may_be_python(&request.code) => self.python_if_it_is(request).await,
            None => None,
        };
        let found = found.filter(|language| *language != request.language);
        if let Some(language) = found {
            if request.file_name == request.language.file_name() {
                language.file_name().clone_into(&mut request.file_name);
            }
            request.language = language;
        }
        LanguageNote { is_left_out: true, is_fenced, found }
    }

    async fn python_if_it_is(&self, request: &RunRequest) -> Option<Language> {
        let default = self.parse(request, request.language, "return;\n").await;
        if !is_syntax_error(&default) {
            return None;
        }
        let python = self.parse(request, Language::Python, "return\n").await;
        python.success.then_some(Language::Python)
    }

    /// Runs the code up to `first`, its new first line, which ends it.
    async fn parse(&self, request: &RunRequest, language: Language, first: &str) -> RunResult {
        let mut probe = RunRequest::new(language, format!("{first}{}", request.code));
        probe.limits = request.limits;
        probe.limits.code_bytes = probe.limits.code_bytes.saturating_add(first.len() as u64);
        self.sandbox.run_request(probe).await
    }
}

impl LanguageNote {
    /// Adds to a result what its reader has to know of the language.
    pub(super) fn tell(&self, result: &mut RunResult) {
        if self.is_fenced
            && let Some(error) = &mut result.error
        {
            // Any other hint is about the fence, too.
            let hint = "The code is in a Markdown fence: send it without the lines that begin with ```, and \
                        state `language`.";
            error.hint = Some(hint.to_owned());
        } else if let Some(language) = self.found {
            let note = format!("[language] no language was stated; the code ran as {language}");
            result.logs.insert(0, note);
        } else if self.is_left_out
            && (is_syntax_error(result) || is_unknown_name(result))
            && let Some(error) = &mut result.error
        {
            let hint = "No language was stated, so this was read as TypeScript: if it is not, state \
                        `language` (python, bash).";
            error.hint = Some(match error.hint.take() {
                Some(before) if before.ends_with('.') => format!("{before} {hint}"),
                Some(before) => format!("{before}. {hint}"),
                None => hint.to_owned(),
            });
        }
    }
}

/// Whether the code is a block of Markdown, as models write it in an answer. In TypeScript that is a chain of
/// tagged templates, which may even parse.
fn is_fenced(code: &str) -> bool {
    code.trim_start().starts_with("```")
}

fn is_syntax_error(result: &RunResult) -> bool {
    let codes = [ErrorCode::SyntaxInvalid, ErrorCode::SyntaxUnsupported];
    result.error.as_ref().is_some_and(|error| codes.contains(&error.code))
}

/// `ls -la` and `print("x")` are TypeScript too, with names that nothing defines.
fn is_unknown_name(result: &RunResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.message.starts_with("ReferenceError: "))
}

/// Whether there is any sign of Python, so that it is worth a try. Code without one is not looked at
/// further.
fn may_be_python(code: &str) -> bool {
    const BLOCKS: [&str; 11] = [
        "def ", "class ", "if ", "elif ", "else", "for ", "while ", "with ", "try", "except",
        "async ",
    ];
    const SIGNS: [&str; 14] = [
        " for ", " and ", " or ", " not ", " in ", " is ", "None", "True", "False", "lambda ",
        "\"\"\"", "print(", "f\"", "f'",
    ];
    code.lines().map(str::trim).any(|line| {
        let is_block = line.ends_with(':') && BLOCKS.iter().any(|word| line.starts_with(word));
        let has_no_quotes = !line.contains(['"', '\'', '`']);
        let is_import = line.starts_with("import ") && has_no_quotes
            || line.starts_with("from ") && line.contains(" import ");
        let is_comment = line.starts_with("# ") || line.starts_with(['%', '!', '@']);
        is_block || is_import || is_comment || SIGNS.iter().any(|sign| line.contains(sign))
    })
}

#[cfg(test)]
mod tests {
    use super::{is_fenced, may_be_python};

    #[test]
    fn a_fence_is_found_at_the_beginning_only() {
        assert!(is_fenced("\n```python\nprint(1)\n```"));
        assert!(!is_fenced("return `a ``` b`"));
    }

    #[test]
    fn python_shows_and_most_typescript_does_not() {
        for code in [
            "import pandas as pd",
            "from math import pi\npi",
            "def f(x):\n    return x",
            "[x * 2 for x in range(3)]",
            "x = 1 if y else None",
            "# a comment\nx = 1",
            "%matplotlib inline",
        ] {
            assert!(may_be_python(code), "{code}");
        }
        for code in [
            "return 1 + 1",
            "const x: number = 1;\nreturn x",
            "import fs from 'fs'",
            "for (const x of [1]) { console.log(x) }",
            "",
        ] {
            assert!(!may_be_python(code), "{code}");
        }
    }
}
