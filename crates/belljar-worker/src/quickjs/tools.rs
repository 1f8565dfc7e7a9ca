//! Tool calls: what Rust offers to tools.js, and how an outcome gets back to it.

use std::rc::Rc;

use belljar_wire::ToolReply;
use rquickjs::{
    Ctx, Error, Exception, Function, IntoJs, Object, Result, String as JsString, Value,
};

use super::{
    current_run::CurrentRun,
    text::text_of,
    value::{self, EncodeError},
};

/// Arguments larger than this do not fit a frame of the host's.
const MAX_ARGUMENT_BYTES: usize = 16 << 20;

/// Adds `callTool(server, tool, arguments, values, stack)`, which gives the number of the call, or
/// a text that says what in the arguments is not JSON.
pub(super) fn install<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    current: &Rc<CurrentRun>,
) -> Result<()> {
    let current = current.clone();
    let call = move |ctx: Ctx<'js>,
                     server: Option<JsString<'js>>,
                     tool: JsString<'js>,
                     arguments: Value<'js>,
                     values: Object<'js>,
                     stack: JsString<'js>|
          -> Result<Value<'js>> {
        let json = match value::encode(&arguments, &values, MAX_ARGUMENT_BYTES) {
            Ok(encoded) => encoded.value,
            Err(EncodeError::Engine(error)) => return Err(error),
            Err(EncodeError::Misfit { what, path }) => {
                return value::describe(what, "result", &path).message.into_js(&ctx);
            }
            Err(EncodeError::TooLarge) => {
                let message = "the arguments are larger than 16 MiB of JSON";
                return Err(Exception::throw_message(&ctx, message));
            }
        };
        let server = server.map(|server| text_of(&server)).transpose()?;
        let line = line_of(&current, &text_of(&stack)?);
        current.call(server, text_of(&tool)?, json, line).into_js(&ctx)
    };
    native.set("callTool", Function::new(ctx.clone(), call)?)
}

/// The agent's line of a call.
pub(super) fn line_of(current: &CurrentRun, stack: &str) -> Option<u32> {
    let trace = current.sources()?.trace(stack, "");
    Some(trace.current()?.position().0)
}

/// Hands an outcome to the code that waits for it.
pub(super) fn settle<'js>(ctx: &Ctx<'js>, native: &Object<'js>, reply: ToolReply) -> Result<()> {
    let ToolReply { call, outcome, .. } = reply;
    let (is_ok, json) = match outcome {
        Ok(json) => (true, json),
        Err(json) => (false, json),
    };
    let settle: Function = native.get("settle")?;
    if json.contains(&0) {
        // The parser ends at a NUL byte, which JSON cannot represent.
        return Err(Error::Unknown);
    }
    let value: Value = ctx.json_parse(json)?;
    settle.call((call, is_ok, value))
}
