//! The guest library: JavaScript that is evaluated once, in the zygote.
//!
//! Each file is a function expression that takes the `native` object, the only way to what Rust
//! offers. Guest code never sees that object: it lives in the closures of the library alone. The
//! order matters: later files use functions that earlier ones put on `native`.
//!
//! Compiling all of it would cost more than the rest of a cold start, so only what nearly every
//! run touches is evaluated at once; on-demand.js asks for the others when they are touched.

use rquickjs::{
    Ctx, Exception, Function, Object, Result, Value,
    context::EvalOptions,
    function::{Func, This},
};

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
    "wording",
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
    "hashes",
    "node/invalid",
    "node/buffer",
    "node/buffer-numbers",
    "node/deep-equal",
    "node/line-diff",
    "node/assert",
    "node/console",
    "node/crypto",
    "node/events",
    "node/os",
    "node/path",
    "node/perf_hooks",
    "node/process",
    "node/querystring",
    "node/string_decoder",
    "node/timers",
    "node/url",
    "node/util-types",
    "node/util",
    "web/blob",
    "web/body",
    "web/fetch",
    "web/form-data",
    "web/headers",
    "web/streams-readable",
    "web/streams-writable",
    "web/url-pattern",
    "deno",
    "tools",
    "durable",
    "intl-locales",
    "intl-decimal",
    "intl-plural",
    "intl-units",
    "intl-number-options",
    "intl-number-pattern",
    "intl-number",
    "intl-number-range",
    "intl-skeleton",
    "intl-skeleton-search",
    "intl-zone",
    "intl-date-options",
    "intl-date",
    "intl-range",
    "intl-collate",
    "intl-alphabets",
    "intl-case",
    "intl-text",
    "intl-segments",
    "stdlib-items",
    "stdlib-tables",
    "stdlib-numbers",
    "stdlib-text",
    "stdlib-dates",
    "stdlib",
];

/// Names that files of the library call. They are bound to what the names mean before there is any
/// guest code: that of a session may declare each of them anew, for good.
const BUILTINS: &[&str] = &[
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "DOMException",
    "DataView",
    "Date",
    "Error",
    "EvalError",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Function",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "SharedArrayBuffer",
    "String",
    "Symbol",
    "SyntaxError",
    "TypeError",
    "URIError",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "decodeURIComponent",
    "encodeURIComponent",
    "globalThis",
    "parseFloat",
    "parseInt",
];

/// Evaluates the files that nearly every run needs, and makes the rest available.
pub(super) fn evaluate<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    // No prototype: a setter that guest code puts on `Object.prototype` must not be handed this.
    native.set_prototype(None)?;
    native.set("libraryFile", Func::from(on_demand))?;
    native.set("builtins", builtins(ctx)?)?;
    for (name, source) in FILES {
        compile(native, name, source)?.call::<_, ()>((native.clone(),))?;
    }
    Ok(())
}

fn builtins<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let (globals, builtins) = (ctx.globals(), Object::new(ctx.clone())?);
    builtins.set_prototype(None)?;
    for name in BUILTINS {
        builtins.set(*name, globals.get::<_, Value>(*name)?)?;
    }
    Ok(builtins)
}

/// A file that is not evaluated yet, as the function it is; a method of `native`.
fn on_demand<'js>(ctx: Ctx<'js>, native: This<Object<'js>>, name: String) -> Result<Function<'js>> {
    match ON_DEMAND.iter().find(|(known, _)| *known == name) {
        Some((known, source)) => compile(&native, known, source),
        None => Err(Exception::throw_message(&ctx, "the guest library has no such file")),
    }
}

fn compile<'js>(native: &Object<'js>, name: &str, source: &str) -> Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(format!("{FILE_PREFIX}{name}"));
    let names = BUILTINS.join(", ");
    // The text before the source is on its first line, so that line numbers stay right.
    let script = format!("(function ({{ {names} }}) {{ const file = {source}\nreturn file; }})");
    let bind: Function = native.ctx().eval_with_options(script, options)?;
    bind.call((native.get::<_, Object>("builtins")?,))
}
