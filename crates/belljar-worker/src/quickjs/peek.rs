//! Facts about values that JavaScript itself cannot read, for printing and cloning: the target of a
//! proxy, and the state of a promise. Runs no guest code.

use rquickjs::{Ctx, Function, Object, Promise, Value, function::Func, promise::PromiseState};

/// A proxy may wrap a proxy; a chain longer than this is made to annoy.
const MAX_PROXY_CHAIN: usize = 64;

/// Adds `unwrapProxy` and `promiseState` to `native`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> rquickjs::Result<()> {
    native.set("unwrapProxy", Func::from(unwrap_proxy))?;
    native.set("promiseState", Function::new(ctx.clone(), promise_state)?)
}

/// The first object behind the proxies, without asking their handlers; null when one is revoked.
fn unwrap_proxy<'js>(ctx: Ctx<'js>, mut value: Value<'js>) -> Value<'js> {
    for _ in 0..MAX_PROXY_CHAIN {
        let Some(proxy) = value.as_proxy() else { return value };
        value = match proxy.target() {
            Ok(target) => target.into_value(),
            Err(_) => {
                // The engine threw; printing ignores that.
                ctx.catch();
                return Value::new_null(ctx);
            }
        };
    }
    Value::new_null(ctx)
}

/// `[state, value]` of a promise, undefined for anything else.
fn promise_state<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Option<Vec<Value<'js>>> {
    let promise: &Promise = value.as_promise()?;
    let (name, settled) = match promise.state() {
        PromiseState::Pending => ("pending", Value::new_undefined(ctx.clone())),
        PromiseState::Resolved => {
            let value = promise.result().and_then(Result::ok);
            ("fulfilled", value.unwrap_or_else(|| Value::new_undefined(ctx.clone())))
        }
        PromiseState::Rejected => {
            // `result` throws the reason of the rejection; `catch` removes it again.
            let _: Option<rquickjs::Result<Value>> = promise.result();
            ("rejected", ctx.catch())
        }
    };
    let name = rquickjs::String::from_str(ctx, name).ok()?.into_value();
    Some(vec![name, settled])
}
