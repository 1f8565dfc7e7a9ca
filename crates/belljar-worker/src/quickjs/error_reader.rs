//! Reading a thrown error: its name, message, frames, cause and code.
//!
//! Reading may run guest code (a getter, a proxy); what that throws is ignored, and the error is
//! reported without the part.

use belljar_contract::{ErrorCode, ErrorKind, Grant};
use rquickjs::{Ctx, IntoAtom, Object, Value, atom::PredefinedAtom};

use super::{
    frames::{StackTrace, describe},
    hints::Advice,
    library::GuestLibrary,
    sources::Sources,
    text::text_of,
};

/// The most causes, and the most parts of an `AggregateError`, that are reported.
const MAX_RELATED: u32 = 8;

/// Reads errors of one run.
#[derive(Clone, Copy)]
pub(super) struct ErrorReader<'a, 'js> {
    pub(super) ctx: &'a Ctx<'js>,
    pub(super) library: &'a GuestLibrary,
    pub(super) sources: &'a Sources,
}

/// The fields of an error of the guest library.
#[derive(Debug)]
pub(super) struct LibraryErrorInfo {
    pub(super) code: ErrorCode,
    pub(super) advice: Advice,
    pub(super) tool_name: Option<String>,
}

impl<'js> ErrorReader<'_, 'js> {
    /// The value as an error: one of the engine's, or an object that looks like one, such as a
    /// `DOMException`.
    pub(super) fn as_error<'v>(&self, value: &'v Value<'js>) -> Option<&'v Object<'js>> {
        let object = value.as_object()?;
        let has = |key| self.text(object, key).is_some();
        let looks_so = || {
            [PredefinedAtom::Name, PredefinedAtom::Message, PredefinedAtom::Stack]
                .into_iter()
                .all(has)
        };
        (object.is_error() || looks_so()).then_some(object)
    }

    /// Name and message, as the console shows them.
    pub(super) fn headline(&self, error: &Object<'js>) -> String {
        let name = self.text(error, PredefinedAtom::Name).unwrap_or_default();
        let message = self.text(error, PredefinedAtom::Message).unwrap_or_default();
        let name = match name.as_str() {
            // A subclass that does not set its name has one all the same.
            "Error" => self.class_name(error).unwrap_or(name),
            _ => name,
        };
        match (name.is_empty(), message.is_empty()) {
            (true, _) => message,
            (false, true) => name,
            (false, false) => format!("{name}: {message}"),
        }
    }

    /// The frames of the agent's own code.
    pub(super) fn trace(&self, error: &Object<'js>) -> StackTrace {
        let stack = self.library.raw_stack(self.ctx, error).unwrap_or_else(|_| {
            self.ctx.catch();
            String::new()
        });
        self.sources.trace(&stack, &self.class_name(error).unwrap_or_default())
    }

    /// The fields of an error of the guest library: a `PermissionError` or a `ToolError`.
    pub(super) fn library_error(&self, error: &Object<'js>) -> Option<LibraryErrorInfo> {
        let library = self.library.values(self.ctx).ok()?;
        let permission: Value = library.get("permissionPrototype").ok()?;
        let tool = self.library.tool_prototype(self.ctx).ok()?;
        let mut own = error.get_prototype()?;
        while *own.as_value() != permission && tool.as_ref() != Some(own.as_value()) {
            if own.is_proxy() {
                return None;
            }
            own = own.get_prototype()?;
        }
        let code = self.text(error, "code")?;
        let code = *ErrorCode::ALL.iter().find(|known| known.as_str() == code)?;
        let kinds =
            [ErrorKind::PermissionError, ErrorKind::ToolError, ErrorKind::SerializationError];
        let is_own = kinds.contains(&code.kind()) && code.is_a_cells_own();
        let (advice, tool_name) = (self.advice(error), self.text(error, "toolName"));
        is_own.then_some(LibraryErrorInfo { code, advice, tool_name })
    }

    /// Name and advice of an error of `fs`.
    pub(super) fn file_error(&self, error: &Object<'js>) -> Option<(String, Advice)> {
        self.text(error, "syscall")?;
        let advice = self.advice(error);
        advice.hint.is_some().then_some((self.text(error, "code")?, advice))
    }

    /// The hint of an error of the guest library, and the grant that it misses.
    fn advice(&self, error: &Object<'js>) -> Advice {
        Advice { hint: self.text(error, "hint"), missing: self.missing(error) }
    }

    fn missing(&self, error: &Object<'js>) -> Option<(Grant, String)> {
        let missing = self.get(error, "missing")?.into_object()?;
        let kind = self.text(&missing, "kind")?;
        Some((Grant::of_missing(&kind)?, self.text(&missing, "name")?))
    }

    /// The hint of any other error that has one.
    pub(super) fn hint(&self, error: &Object<'js>) -> Option<String> {
        self.text(error, "hint")
    }

    /// The errors behind this one, each with its own frames, as lines of text.
    pub(super) fn related(&self, error: &Object<'js>) -> String {
        let mut text = String::new();
        if let Some(parts) = self.get(error, "errors").and_then(Value::into_array) {
            for index in 0..MAX_RELATED {
                let part = self.get(&parts, index).filter(|part| !part.is_undefined());
                let Some(part) = part else { break };
                self.describe_into(&mut text, &format!("[errors {index}]: "), &part);
            }
        }
        let mut cause = self.get(error, "cause");
        for _ in 0..MAX_RELATED {
            let Some(value) = cause.filter(|cause| !cause.is_undefined()) else { break };
            self.describe_into(&mut text, "Caused by: ", &value);
            cause = value.as_object().and_then(|cause| self.get(cause, "cause"));
        }
        text
    }

    /// The value as the console would print it.
    pub(super) fn inspect(&self, value: &Value<'js>) -> String {
        self.library.inspect(self.ctx, value).unwrap_or_else(|_| {
            self.ctx.catch();
            value.type_name().to_owned()
        })
    }

    fn describe_into(&self, text: &mut String, label: &str, value: &Value<'js>) {
        let (headline, frames) = match self.as_error(value) {
            Some(error) => (self.headline(error), self.trace(error).frames),
            None => (self.inspect(value), Vec::new()),
        };
        for part in ["\n", label, &headline] {
            text.push_str(part);
        }
        if !frames.is_empty() {
            text.push('\n');
            text.push_str(&describe(&frames));
        }
    }

    fn class_name(&self, error: &Object<'js>) -> Option<String> {
        let class = self.get(error, PredefinedAtom::Constructor)?;
        self.text(class.as_object()?, PredefinedAtom::Name).filter(|name| !name.is_empty())
    }

    fn text<K: IntoAtom<'js>>(&self, object: &Object<'js>, key: K) -> Option<String> {
        text_of(self.get(object, key)?.as_string()?).ok()
    }

    fn get<K: IntoAtom<'js>>(&self, object: &Object<'js>, key: K) -> Option<Value<'js>> {
        let value = object.get(key);
        if value.is_err() {
            self.ctx.catch();
        }
        value.ok()
    }
}
