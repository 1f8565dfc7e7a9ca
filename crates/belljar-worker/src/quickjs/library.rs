//! Handles to those parts of the guest library that Rust calls back.

use belljar_wire::{FetchStepKind, ToolReply};
use rquickjs::{Ctx, Function, Object, Persistent, Result, Value};

use super::{fetch, text::text_of, tools};

/// Saved once the library is evaluated; must be dropped before the runtime is.
#[derive(Debug)]
pub(super) struct GuestLibrary {
    run_one: Persistent<Function<'static>>,
    delay: Persistent<Function<'static>>,
    forget: Persistent<Function<'static>>,
    timer_prototypes: [Persistent<Value<'static>>; 2],
    import_module: Persistent<Function<'static>>,
    inspect: Persistent<Function<'static>>,
    raw_stack: Persistent<Function<'static>>,
    values: Persistent<Object<'static>>,
    load_all: Persistent<Function<'static>>,
    native: Persistent<Object<'static>>,
}

impl GuestLibrary {
    /// Takes the needed functions from `native`.
    pub(super) fn save(native: &Object<'_>) -> Result<Self> {
        let timers: Object = native.get("loop")?;
        let prototype = |class| timers.get::<_, Object>(class)?.get("prototype");
        Ok(Self {
            run_one: timers.get("runOne")?,
            delay: timers.get("delay")?,
            forget: timers.get("forget")?,
            timer_prototypes: [prototype("Timeout")?, prototype("Immediate")?],
            import_module: native.get("importModule")?,
            inspect: native.get("inspect")?,
            raw_stack: native.get("rawStack")?,
            values: native.get("values")?,
            load_all: native.get("loadAll")?,
            native: Persistent::save(native.ctx(), native.clone()),
        })
    }

    /// Evaluates those parts of the library that are otherwise evaluated when they are touched.
    pub(super) fn load_all(&self, ctx: &Ctx<'_>) -> Result<()> {
        self.load_all.clone().restore(ctx)?.call(())
    }

    /// Stops the clock, for a run that must do the same when it is replayed.
    pub(super) fn make_durable(&self, ctx: &Ctx<'_>) -> Result<()> {
        let need: Function = self.native.clone().restore(ctx)?.get("need")?;
        need.call(("durable",))
    }

    /// Drops the timers and the waiting calls an earlier run has left.
    pub(super) fn forget(&self, ctx: &Ctx<'_>) -> Result<()> {
        self.forget.clone().restore(ctx)?.call::<_, ()>(())?;
        let native = self.native.clone().restore(ctx)?;
        for part in ["forgetCalls", "forgetFetches", "forgetGroups", "forgetProcess"] {
            // A part of the library that was never loaded has nothing to forget.
            if let Some(forget) = native.get::<_, Option<Function>>(part)? {
                forget.call::<_, ()>(())?;
            }
        }
        Ok(())
    }

    /// Tells code that listens for the end of its process; gives the status it ends with.
    pub(super) fn end_process(&self, ctx: &Ctx<'_>) -> Result<i32> {
        let end: Option<Function> = self.native.clone().restore(ctx)?.get("endProcess")?;
        end.map_or(Ok(0), |end| end.call(()))
    }

    /// Hands the outcome of a tool call to the code that waits for it.
    pub(super) fn settle(&self, ctx: &Ctx<'_>, reply: ToolReply) -> Result<()> {
        tools::settle(ctx, &self.native.clone().restore(ctx)?, reply)
    }

    /// Hands the reply to a step of a fetch to the code that waits for it.
    pub(super) fn settle_fetch(
        &self,
        ctx: &Ctx<'_>,
        reply: ToolReply,
        kind: FetchStepKind,
    ) -> Result<()> {
        fetch::settle(ctx, &self.native.clone().restore(ctx)?, reply, kind)
    }

    /// The prototype of `ToolError`, if any code has used it.
    pub(super) fn tool_prototype<'js>(&self, ctx: &Ctx<'js>) -> Result<Option<Value<'js>>> {
        self.native.clone().restore(ctx)?.get("toolPrototype")
    }

    /// Runs one timer or immediate that is due; false when none is.
    pub(super) fn run_one(&self, ctx: &Ctx<'_>) -> Result<bool> {
        self.run_one.clone().restore(ctx)?.call(())
    }

    /// Milliseconds until a timer is due; negative when none ever will be.
    pub(super) fn delay(&self, ctx: &Ctx<'_>, is_body_done: bool) -> Result<f64> {
        self.delay.clone().restore(ctx)?.call((is_body_done,))
    }

    /// Whether the value is what `setTimeout` and its kin return.
    pub(super) fn is_timer<'js>(&self, ctx: &Ctx<'js>, value: &Value<'js>) -> Result<bool> {
        let object = value.as_object().filter(|object| !object.is_proxy());
        let Some(own) = object.and_then(|object| object.get_prototype()) else { return Ok(false) };
        for prototype in &self.timer_prototypes {
            if prototype.clone().restore(ctx)? == *own.as_value() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The function that stands in for `import()`.
    pub(super) fn import_module<'js>(&self, ctx: &Ctx<'js>) -> Result<Function<'js>> {
        self.import_module.clone().restore(ctx)
    }

    /// The value as the console would print it.
    pub(super) fn inspect<'js>(&self, ctx: &Ctx<'js>, value: &Value<'js>) -> Result<String> {
        text_of(&self.inspect.clone().restore(ctx)?.call((value.clone(),))?)
    }

    /// The engine's own frames of an error.
    pub(super) fn raw_stack<'js>(&self, ctx: &Ctx<'js>, error: &Object<'js>) -> Result<String> {
        text_of(&self.raw_stack.clone().restore(ctx)?.call((error.clone(),))?)
    }

    /// The facts about built-in objects that the encoder needs.
    pub(super) fn values<'js>(&self, ctx: &Ctx<'js>) -> Result<Object<'js>> {
        self.values.clone().restore(ctx)
    }
}
