//! Requests to hosts: what Rust offers to web/fetch.js, and how a reply gets back to it.

use std::rc::Rc;

use belljar_wire::{FetchBody, FetchHead, FetchRequest, FetchStep, FetchStepKind, ToolReply};
use rquickjs::{
    Array, Ctx, Exception, Function, Object, Result, String as JsString, TypedArray, Value,
};

use super::{current_run::CurrentRun, encoding, text::text_of, tools::line_of};

/// More does not fit the head of a frame.
const MAX_HEADER_BYTES: usize = 24 << 10;
const MAX_HEADERS: usize = 100;
const MAX_URL_BYTES: usize = 8 << 10;
const MAX_METHOD_BYTES: usize = 64;

/// Adds `mayFetch()`, `fetchBegin(method, url, headers, stack, body, length)`, `fetchSend(fetch, bytes,
/// isLast)` and `fetchRead(fetch)`, which give the number of the step, and `fetchCancel(fetch)`.
pub(super) fn install<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    current: &Rc<CurrentRun>,
) -> Result<()> {
    let run = current.clone();
    native.set("mayFetch", Function::new(ctx.clone(), move || run.may_fetch())?)?;
    let run = current.clone();
    let begin = move |ctx: Ctx<'js>,
                      method: JsString<'js>,
                      url: JsString<'js>,
                      headers: Array<'js>,
                      stack: JsString<'js>,
                      body: Value<'js>,
                      length: f64|
          -> Result<u32> {
        let line = line_of(&run, &text_of(&stack)?);
        let (method, url) = (text_of(&method)?, text_of(&url)?);
        let headers = headers_of(&headers)?;
        let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let is_too_large = method.len() > MAX_METHOD_BYTES
            || url.len() > MAX_URL_BYTES
            || headers.len() > MAX_HEADERS
            || bytes > MAX_HEADER_BYTES;
        if is_too_large {
            let message = "fetch: the URL or the headers are too long";
            return Err(Exception::throw_type(&ctx, message));
        }
        let body = body_of(&ctx, &body, length)?;
        if let FetchBody::Whole(bytes) = &body
            && bytes.len() > run.whole_body_bytes()
        {
            let most = run.whole_body_bytes();
            let message = format!("fetch: a body of a durable run has at most {most} bytes");
            return Err(Exception::throw_type(&ctx, &message));
        }
        let request = FetchRequest { method, url, headers, body, timeout_ms: None, line };
        Ok(run.fetch(FetchStep::Begin(request)))
    };
    native.set("fetchBegin", Function::new(ctx.clone(), begin)?)?;
    let run = current.clone();
    let send = move |ctx: Ctx<'js>, fetch: u32, piece: JsString<'js>, is_last: bool| {
        let piece = bytes_of(&ctx, &piece)?;
        Ok::<_, rquickjs::Error>(run.fetch(FetchStep::Send { fetch, is_last, piece }))
    };
    native.set("fetchSend", Function::new(ctx.clone(), send)?)?;
    let run = current.clone();
    let read = move |fetch: u32| run.fetch(FetchStep::Read { fetch });
    native.set("fetchRead", Function::new(ctx.clone(), read)?)?;
    let run = current.clone();
    native
        .set("fetchCancel", Function::new(ctx.clone(), move |fetch: u32| run.cancel_fetch(fetch))?)
}

fn headers_of(pairs: &Array<'_>) -> Result<Vec<(String, String)>> {
    let pairs = pairs.iter::<Array>().map(|pair| {
        let pair = pair?;
        Ok((text_of(&pair.get::<JsString>(0)?)?, text_of(&pair.get::<JsString>(1)?)?))
    });
    pairs.collect()
}

/// A text is the whole body, `true` says that it comes in pieces.
fn body_of<'js>(ctx: &Ctx<'js>, body: &Value<'js>, length: f64) -> Result<FetchBody> {
    if let Some(text) = body.as_string() {
        return Ok(FetchBody::Whole(bytes_of(ctx, text)?));
    }
    if body.as_bool() != Some(true) {
        return Ok(FetchBody::None);
    }
    let length = if length >= 0.0 { Some(length as u64) } else { None };
    Ok(FetchBody::Pieces { length })
}

/// Bytes come from the library as hexadecimal digits: to look at a buffer of the engine is unsafe.
fn bytes_of<'js>(ctx: &Ctx<'js>, digits: &JsString<'js>) -> Result<Vec<u8>> {
    let bytes = encoding::bytes_of(&text_of(digits)?);
    bytes.ok_or_else(|| Exception::throw_message(ctx, "out of memory"))
}

/// Hands the reply to a step to the code that waits for it.
pub(super) fn settle<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    reply: ToolReply,
    kind: FetchStepKind,
) -> Result<()> {
    let ToolReply { call, outcome, .. } = reply;
    let settle: Function = native.get("settleFetch")?;
    match outcome {
        Err(fault) => settle.call((call, false, ctx.json_parse(fault)?)),
        Ok(bytes) if kind == FetchStepKind::Begin => {
            let head = FetchHead::parse(&bytes);
            let (head, at) = head.ok_or(rquickjs::Error::Unknown)?;
            settle.call((call, true, head_of(ctx, head, bytes.get(at..).unwrap_or_default())?))
        }
        Ok(bytes) => settle.call((call, true, TypedArray::<u8>::new(ctx.clone(), bytes)?)),
    }
}

fn head_of<'js>(ctx: &Ctx<'js>, head: FetchHead, body: &[u8]) -> Result<Object<'js>> {
    let FetchHead { status, status_text, headers, is_whole } = head;
    let object = Object::new(ctx.clone())?;
    // Guest code may have put a setter on the prototype of all objects.
    object.set_prototype(None)?;
    object.set("status", status)?;
    object.set("statusText", status_text)?;
    object.set("isWhole", is_whole)?;
    object.set("body", TypedArray::<u8>::new_copy(ctx.clone(), body)?)?;
    let pairs: Vec<Vec<String>> =
        headers.into_iter().map(|(name, value)| vec![name, value]).collect();
    object.set("headers", pairs)?;
    Ok(object)
}
