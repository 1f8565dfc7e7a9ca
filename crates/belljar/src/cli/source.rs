//! Reads the code and its context from a file, an argument or standard input.
//!
//! Every error here is a mistake in the arguments; faults in the code are reported by the run.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, IsTerminal as _, Read},
    path::Path,
};

use anyhow::{Context as _, bail};
use belljar_contract::{EngineName, Language};
use belljar_project::config::quantity::show_size;
use belljar_wire::json::check_keys;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::value::RawValue;

use super::arguments::RunArguments;

/// Larger than any valid code; the run's own limit is far below and gives a better message.
const MAX_CODE_BYTES: u64 = 64 << 20;

/// The code as the user gave it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CodeSource {
    pub(crate) code: String,
    pub(crate) language: Language,
    /// Neither a flag nor a file ending says what it is written in.
    pub(crate) is_language_left_out: bool,
    /// File name in stack traces: never a host path.
    pub(crate) file_name: String,
    /// File name as typed, for messages.
    pub(crate) shown_name: String,
}

impl CodeSource {
    /// Reads the code that the arguments name.
    pub(crate) fn load(arguments: &RunArguments) -> anyhow::Result<Self> {
        let default = Language::default_for(arguments.engine);
        let unnamed = |code| Ok(Self::unnamed(code, arguments.language, default));
        if let Some(code) = &arguments.code {
            return unnamed(code.clone());
        }
        match arguments.file.as_deref() {
            None if io::stdin().is_terminal() => bail!(
                "no code given: name a FILE, use -c CODE, or pipe the code in (see `belljar run \
                 --help`)"
            ),
            None => unnamed(code_from_stdin()?),
            Some(path) if is_stdin(path) => unnamed(code_from_stdin()?),
            Some(path) => {
                let default = (default, arguments.engine.is_some());
                Self::from_file(path, arguments.language, default)
            }
        }
    }

    fn unnamed(code: String, language: Option<Language>, default: Language) -> Self {
        let is_language_left_out = language.is_none();
        let language = language.unwrap_or(default);
        let file_name = language.file_name().to_owned();
        let shown_name = file_name.clone();
        Self { code, language, is_language_left_out, file_name, shown_name }
    }

    fn from_file(
        path: &Path,
        language: Option<Language>,
        (default, is_engine_given): (Language, bool),
    ) -> anyhow::Result<Self> {
        let by_name = match language {
            Some(language) => Some(language),
            None => language_of(path)?,
        };
        let is_language_left_out = by_name.is_none();
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let code = text(file, MAX_CODE_BYTES, &path.display().to_string())?;
        let by_shebang = || Language::of_shebang(&code).is_some();
        if let (None, Some(extension)) = (by_name, path.extension())
            && !is_engine_given
            && !by_shebang()
        {
            bail!(
                "{}: Belljar cannot tell the language of .{} files: it knows .ts .mts .cts .js \
                 .mjs .cjs .py .sh .bash; name the language with --language",
                path.display(),
                extension.display()
            );
        }
        let language = by_name.unwrap_or(default);
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let shown_name = path.display().to_string();
        Ok(Self { code, language, is_language_left_out, file_name, shown_name })
    }
}

/// Reads the context from the arguments; it must be JSON.
pub(crate) fn context(
    arguments: &RunArguments,
    max_bytes: u64,
) -> anyhow::Result<Option<Box<RawValue>>> {
    let Some(given) = &arguments.context else { return Ok(None) };
    let (json, name) = match given.strip_prefix('@') {
        None => (given.clone(), "--context".to_owned()),
        Some("-") => {
            let code_is_there =
                arguments.code.is_none() && arguments.file.as_deref().is_none_or(is_stdin);
            if code_is_there {
                bail!("standard input cannot be both the code and the context");
            }
            (text(io::stdin().lock(), max_bytes, "standard input")?, "standard input".to_owned())
        }
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot open {path}"))?;
            (text(file, max_bytes, path)?, path.to_owned())
        }
    };
    let raw = RawValue::from_string(json).map_err(|error| not_json(&name, &error))?;
    check_keys(raw.get().as_bytes()).with_context(|| format!("invalid context: {name}"))?;
    Ok(Some(raw))
}

fn not_json(name: &str, error: &serde_json::Error) -> anyhow::Error {
    let hint = if name == "--context" { " (write @FILE to read a file)" } else { "" };
    anyhow::anyhow!("the context is not valid JSON: {name}: {error}{hint}")
}

fn code_from_stdin() -> anyhow::Result<String> {
    text(io::stdin().lock(), MAX_CODE_BYTES, "standard input")
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads UTF-8 text up to a size, without a byte-order mark.
fn text(reader: impl Read, max_bytes: u64, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    reader
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > max_bytes {
        bail!("{name} is larger than {}", show_size(max_bytes));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow::anyhow!("{name} is not UTF-8 text (at byte {at})")
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

/// Parses the name of a language.
pub(crate) fn language(name: &str) -> Result<Language, String> {
    let named = |language: Language| format!("{language} ({})", language.extension());
    Language::from_name(name).ok_or_else(|| format!("use {}", Language::one_of(named)))
}

/// Parses the name of an engine; help and errors list the engines there are.
pub(crate) fn engine() -> impl TypedValueParser<Value = EngineName> {
    let names = EngineName::ALL.iter().map(|engine| engine.as_str());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<EngineName>())
}

/// The language of a file, if its extension says so.
fn language_of(path: &Path) -> anyhow::Result<Option<Language>> {
    Ok(match path.extension().and_then(OsStr::to_str) {
        Some("ts" | "mts" | "cts") => Some(Language::TypeScript),
        Some("js" | "mjs" | "cjs") => Some(Language::JavaScript),
        Some(extension @ ("tsx" | "jsx")) => {
            bail!("{}: cannot run .{extension} files: JSX is not supported", path.display())
        }
        Some("py") => Some(Language::Python),
        Some("sh" | "bash") => Some(Language::Bash),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
