//! Turns the agent's source into the script that QuickJS runs.
//!
//! Parse, refuse unsupported syntax, strip the types, make the last expression the value, print.
//! All of it happens in the cell: the text is hostile. The result is one async function, so that
//! top-level `await` and `return` work, in sloppy mode, so that `x = 1` does. In a session its
//! top-level names are global: see [`session`].
//!
//! A source map is only drawn when an error needs one: see [`SourceMap::draw`].

mod common_js;
mod completion;
mod exports;
mod mentions;
mod modules;
mod nesting;
mod outline;
mod session;
mod survey;
mod syntax;

use std::path::{Path, PathBuf};

use belljar_contract::Language;
use belljar_wire::GuestError;
use oxc::{
    allocator::Allocator,
    ast::{ast::Program, builder::AstBuilder},
    codegen::{Codegen, CodegenOptions, CodegenReturn, CommentOptions},
    parser::{ParseOptions, Parser, ParserReturn},
    semantic::SemanticBuilder,
    span::SourceType,
    transformer::{TransformOptions, Transformer},
};

pub(super) use outline::SourceOutline;
pub(super) use session::PredeclaredNames;
pub(super) use syntax::position;

/// The parameter through which `import()` reaches the function that refuses it.
const IMPORT_PARAMETER: &str = "$belljarImport";

/// The agent's source.
#[derive(Debug, Clone)]
pub(super) struct SourceCode {
    pub(super) language: Language,
    pub(super) file_name: String,
    pub(super) text: String,
    pub(super) scope: NameScope,
}

/// Where the names live that the code declares at its top level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameScope {
    /// They end with the run.
    Run,
    /// They stay for later runs.
    Session {
        /// Which run of the session this is, counted from one.
        run: u32,
    },
}

impl SourceCode {
    /// The engine's name for the script; no other source has it.
    pub(super) fn script_name(&self) -> String {
        match self.scope {
            NameScope::Run => self.file_name.clone(),
            NameScope::Session { run } => format!("<run {run}>"),
        }
    }

    fn source_type(&self) -> SourceType {
        match self.language {
            Language::JavaScript => SourceType::mjs(),
            // The host sends no other language to this engine.
            Language::TypeScript | Language::Python | Language::Bash => {
                SourceType::ts().with_module(true)
            }
        }
    }
}

/// The error of code that cannot be transpiled.
#[derive(Debug)]
pub(super) struct TranspileError {
    pub(super) error: Box<GuestError>,
    /// The refused name or module, if the code was refused for one.
    pub(super) attempt: Option<String>,
}

impl From<GuestError> for TranspileError {
    fn from(error: GuestError) -> Self {
        Self { error: Box::new(error), attempt: None }
    }
}

/// The script QuickJS evaluates: an async function that takes the refusing `import`.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) ahead: PredeclaredNames,
}

/// Turns the agent's code into the script that QuickJS evaluates.
pub(super) fn transpile(source: &SourceCode) -> Result<Script, TranspileError> {
    nesting::check(source)?;
    let allocator = Allocator::default();
    let (program, ahead) = lower(&allocator, source)?;
    Ok(Script { text: wrap(&print(&program, None).code), ahead })
}

/// The generated script, and where each piece of it came from.
#[derive(Debug)]
pub(super) struct SourceMap {
    pub(super) script: String,
    /// Sorted by generated position.
    pub(super) mappings: Vec<Mapping>,
}

/// Lines and columns count from zero, columns in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) generated: (u32, u32),
    pub(super) original: (u32, u32),
}

impl SourceMap {
    /// Transpiles once more, this time taking notes; `None` for a source that does not transpile.
    pub(super) fn draw(source: &SourceCode) -> Option<Self> {
        let allocator = Allocator::default();
        let (program, _) = lower(&allocator, source).ok()?;
        let printed = print(&program, Some(PathBuf::from(&source.file_name)));
        let tokens = printed.map?;
        let mappings = tokens.get_tokens().map(|token| Mapping {
            // The function's head stands alone on the first line.
            generated: (token.get_dst_line() + 1, token.get_dst_col()),
            original: (token.get_src_line(), token.get_src_col()),
        });
        Some(Self { script: wrap(&printed.code), mappings: mappings.collect() })
    }
}

/// Everything up to printing.
fn lower<'a>(
    allocator: &'a Allocator,
    source: &'a SourceCode,
) -> Result<(Program<'a>, PredeclaredNames), TranspileError> {
    let parsed = parse(allocator, &source.text, source.source_type());
    if let Some(diagnostic) = parsed.diagnostics.errors().next() {
        return Err(syntax::explain_unparsed(source, diagnostic).into());
    }
    let mut program = parsed.program;
    let builder = AstBuilder::new(allocator);
    common_js::drop_exports(&mut program, &builder);
    let default = modules::settle(&mut program, source, allocator, &builder)?;
    let analysed = SemanticBuilder::new_compiler().with_enum_eval(true).build(&program);
    if let Some(diagnostic) = analysed.diagnostics.errors().next() {
        return Err(syntax::explain(source, diagnostic).into());
    }
    let scoping = analysed.semantic.into_scoping();
    let shared =
        (source.scope != NameScope::Run).then(|| session::TopLevelNames::find(&program, &scoping));
    if source.language == Language::TypeScript {
        let transformer =
            Transformer::new(allocator, Path::new("main.ts"), &TransformOptions::default());
        let transformed = transformer.build_with_scoping(scoping, &mut program);
        if let Some(diagnostic) = transformed.diagnostics.errors().next() {
            return Err(syntax::explain(source, diagnostic).into());
        }
    }
    let returns = survey::survey(&mut program, source, &builder)?;
    if returns == survey::Returns::None {
        match default.into_statement(program.span, allocator) {
            Some(value) => program.body.push(value),
            None => completion::return_last_expression(&mut program, &builder),
        }
    }
    let ahead = shared.map(|names| session::share(&mut program, names, allocator, &builder));
    Ok((program, ahead.unwrap_or_default()))
}

fn parse<'a>(allocator: &'a Allocator, text: &'a str, goal: SourceType) -> ParserReturn<'a> {
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    Parser::new(allocator, text, goal).with_options(options).parse()
}

fn print<'a>(program: &Program<'a>, source_map_path: Option<PathBuf>) -> CodegenReturn<'a> {
    let options = CodegenOptions {
        comments: CommentOptions::disabled(),
        source_map_path,
        ..CodegenOptions::default()
    };
    Codegen::new().with_options(options).build(program)
}

fn wrap(code: &str) -> String {
    // QuickJS takes C strings. A raw NUL can only stand in a template or a regular expression,
    // where the escape means the same.
    let code = code.replace('\0', "\\x00");
    format!("(async function ({IMPORT_PARAMETER}) {{\n{code}\n}})")
}
