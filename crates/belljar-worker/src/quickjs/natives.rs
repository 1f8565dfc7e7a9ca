//! Functions in Rust for the guest library that belong to no single part of it.

use std::rc::Rc;

use belljar_contract::Stream;
use belljar_wire::Event;
use rquickjs::{Ctx, Error, Exception, Function, Object, Result, String as JsString, TypedArray};
use rustix::{
    param::page_size,
    process::{getgid, getuid},
};

use super::{
    current_run::CurrentRun, frames::describe, hints, node_modules, random, text::text_of,
};

/// A frame's head is bounded; an attempt is cut long before.
const MAX_ATTEMPT_BYTES: usize = 1024;
/// Longer texts are sent in pieces.
const MAX_PRINT_BYTES: usize = 256 << 10;

/// Adds the functions to `native`, and puts this cell's randomness behind `Math.random`.
pub(super) fn install<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    current: &Rc<CurrentRun>,
) -> Result<()> {
    install_output(ctx, native, current)?;
    install_random(ctx, native, current)?;
    install_stacks(ctx, native, current)?;
    let granted = current.clone();
    let variable = move |name: JsString<'js>| Ok::<_, Error>(granted.variable(&text_of(&name)?));
    native.set("variable", Function::new(ctx.clone(), variable)?)?;
    let granted = current.clone();
    native.set("variables", Function::new(ctx.clone(), move || granted.variables())?)?;
    let given = current.clone();
    native.set("arguments", Function::new(ctx.clone(), move || given.arguments())?)?;
    let granted = current.clone();
    native.set("grantedPaths", Function::new(ctx.clone(), move || granted.paths())?)?;
    let clock = current.clone();
    native.set("now", Function::new(ctx.clone(), move || clock.elapsed_ms())?)?;
    let clock = current.clone();
    native.set("clock", Function::new(ctx.clone(), move || clock.durable_now_ms())?)?;
    let clock = current.clone();
    native.set("isDurable", Function::new(ctx.clone(), move || clock.is_durable())?)?;
    install_process(ctx, native, current)?;
    let file = |module: JsString<'js>| Ok::<_, Error>(node_modules::file_of(&text_of(&module)?));
    native.set("moduleFile", Function::new(ctx.clone(), file)?)?;
    let hint = |module: JsString<'js>| Ok::<_, Error>(node_modules::hint_for(&text_of(&module)?));
    native.set("moduleHint", Function::new(ctx.clone(), hint)?)?;
    let refused = |module: JsString<'js>| Ok::<_, Error>(hints::module_refused(&text_of(&module)?));
    native.set("moduleRefused", Function::new(ctx.clone(), refused)?)
}

/// The facts about the cell for `process` and `os`.
fn install_process<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    current: &Rc<CurrentRun>,
) -> Result<()> {
    let run = current.clone();
    native.set("exit", Function::new(ctx.clone(), move |status: i32| run.exit(status))?)?;
    let run = current.clone();
    let missed = move |name: JsString<'js>| {
        run.note_missed_variable(&text_of(&name)?);
        Ok::<_, Error>(())
    };
    native.set("missedVariable", Function::new(ctx.clone(), missed)?)?;
    let run = current.clone();
    let limit = move || run.memory_bytes() as f64;
    native.set("memoryLimit", Function::new(ctx.clone(), limit)?)?;
    native.set("residentBytes", Function::new(ctx.clone(), resident_bytes)?)?;
    let identity = || vec![getuid().as_raw(), getgid().as_raw()];
    native.set("identity", Function::new(ctx.clone(), identity)?)?;
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    native.set("architecture", architecture)
}

/// Memory that the cell has, its part of the zygote's included; zero where the system does not say.
fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = status.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0.0);
    pages * page_size() as f64
}

fn install_output<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    current: &Rc<CurrentRun>,
) -> Result<()> {
    let host = current.clone();
    let print = move |stream: JsString<'js>, text: JsString<'js>| {
        let stream = match stream.to_string()?.as_str() {
            "stderr" => Stream::Stderr,
            "log" => Stream::Log,
            _ => Stream::Stdout,
        };
        send_text(&host, stream, &text_of(&text)?);
        Ok::<_, Error>(())
    };
    native.set("print", Function::new(ctx.clone(), print)?)?;
    let host = current.clone();
    let denied = move |attempt: JsString<'js>| {
        let mut attempt = text_of(&attempt)?;
        attempt.truncate(attempt.floor_char_boundary(MAX_ATTEMPT_BYTES));
        host.send(&Event::Denied { attempt });
        Ok::<_, Error>(())
    };
    native.set("denied", Function::new(ctx.clone(), denied)?)
}

/// Sends a text in frames the host is sure to take. A log line is one frame, so it is cut.
fn send_text(host: &CurrentRun, stream: Stream, text: &str) {
    let mut rest = text;
    loop {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(MAX_PRINT_BYTES));
        host.send(&Event::Print { stream, text: piece.into() });
        if after.is_empty() || stream == Stream::Log {
            return;
        }
        rest = after;
    }
}

fn install_random<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    current: &Rc<CurrentRun>,
) -> Result<()> {
    let generator = current.clone();
    let next = Function::new(ctx.clone(), move || generator.random.next())?.with_name("random")?;
    native.set("random", next.clone())?;
    ctx.globals().get::<_, Object>("Math")?.set("random", next)?;
    let generator = current.clone();
    let fill = move |ctx: Ctx<'js>, array: TypedArray<'js, u8>| {
        let mut bytes = vec![0; array.as_object().get::<_, u32>("length")? as usize];
        if generator.is_durable() {
            generator.random.fill(&mut bytes);
        } else {
            random::fill(&mut bytes).map_err(|_| {
                Exception::throw_message(&ctx, "cannot get random bytes from the system")
            })?;
        }
        let fresh = TypedArray::<u8>::new_copy(ctx, bytes)?;
        let set: Function = array.as_object().get("set")?;
        set.call::<_, ()>((rquickjs::function::This(array), fresh))
    };
    native.set("fillRandom", Function::new(ctx.clone(), fill)?)
}

/// `mapFrames(stack, className)`: the agent's lines of an error's stack, at the places the agent
/// wrote.
fn install_stacks<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    current: &Rc<CurrentRun>,
) -> Result<()> {
    let current = current.clone();
    let map = move |stack: JsString<'js>, class: JsString<'js>| {
        let stack = text_of(&stack)?;
        // Outside a run the library is at fault, and its frames are wanted.
        let Some(sources) = current.sources() else { return Ok(stack) };
        let trace = sources.trace(&stack, &text_of(&class)?);
        Ok::<_, Error>(describe(&trace.frames))
    };
    native.set("mapFrames", Function::new(ctx.clone(), map)?)
}
