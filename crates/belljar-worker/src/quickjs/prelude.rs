//! The guest library: JavaScript that is evaluated once, in the zygote.
//!
//! Each file is a function expression that takes the `native` object, the only way to what Rust
//! offers. Guest code never sees that object: it lives in the closures of the library alone.
//! The order matters, later files use what earlier ones put on `native`.
//!
//! Compiling all of it would cost more than the rest of a cold start, so only what nearly every
//! run touches is evaluated at once; on-demand.js asks for the others when they are touched.

use rquickjs::{Ctx, Exception, Function, Object, Result, context::EvalOptions, function::Func};

/// Frames of these files are no business of the agent's.
pub(super) const FILE_PREFIX: &str = "belljar:";

macro_rules! guest_files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("guest/", $name, ".js")))),*]
    };
}

const FILES: &[(&str, &str)] = guest_files![
    "errors",
    "timers",
    "values",
    "inspect-text",
    "inspect-kinds",
    "inspect-forms",
    "inspect",
    "format",
    "console",
    "output",
    "on-demand",
    "intl",
    "denied",
];

const ON_DEMAND: &[(&str, &str)] = guest_files![
    "console-table",
    "encoding",
    "url",
    "clone",
    "events",
    "crypto",
    "fs-bytes",
    "fs-errors",
    "fs-sync",
    "fs",
    "path",
    "tools",
    "durable",
    "intl-locales",
    "intl-decimal",
    "intl-plural",
    "intl-units",
    "intl-number-options",
    "intl-number",
    "intl-dates",
    "intl-zone",
    "intl-date-options",
    "intl-date",
    "intl-range",
    "intl-collate",
    "intl-text",
    "stdlib-items",
    "stdlib-tables",
    "stdlib-numbers",
    "stdlib-text",
    "stdlib-dates",
    "stdlib",
];

/// Runs what nearly every run needs, and makes the rest available.
pub(super) fn evaluate<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    // No prototype: a setter that guest code puts on `Object.prototype` must not be handed this.
    native.set_prototype(None)?;
    native.set("libraryFile", Func::from(on_demand))?;
    for (name, source) in FILES {
        compile(ctx, name, source)?.call::<_, ()>((native.clone(),))?;
    }
    Ok(())
}

/// A file that is not evaluated yet, as the function it is.
fn on_demand<'js>(ctx: Ctx<'js>, name: String) -> Result<Function<'js>> {
    match ON_DEMAND.iter().find(|(known, _)| *known == name) {
        Some((known, source)) => compile(&ctx, known, source),
        None => Err(Exception::throw_message(&ctx, "the guest library has no such file")),
    }
}

fn compile<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(format!("{FILE_PREFIX}{name}"));
    ctx.eval_with_options(source, options)
}
