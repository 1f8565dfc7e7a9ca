//! From QuickJS's stack text to frames of the code as the agent wrote it.

use std::{cell::OnceCell, fmt::Write as _};

use super::transpile::{Mapping, Outline, Source, SourceMap, position};

/// One frame of the agent's own code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// `None` at the top level and in functions without a name.
    pub(super) function: Option<String>,
    /// Byte offset in the source.
    pub(super) offset: usize,
}

/// The frames of the agent's own code, innermost first.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) frames: Vec<Frame>,
    /// No function of the engine's or the library's was on top of them.
    pub(super) is_direct: bool,
}

/// Knows where generated code came from. Map and outline are drawn when they are first needed.
#[derive(Debug)]
pub(super) struct Locator {
    source: Source,
    map: OnceCell<Option<SourceMap>>,
    outline: OnceCell<Outline>,
}

impl Locator {
    pub(super) fn new(source: Source) -> Self {
        Self { source, map: OnceCell::new(), outline: OnceCell::new() }
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Reads the stack of an error of this class. Frames of the class's own constructor are left
    /// out, as in Node: an error is made where its class is used.
    pub(super) fn trace(&self, stack: &str, error_class: &str) -> Trace {
        let mut lines = stack.lines().map(|line| self.frame(line)).peekable();
        let is_constructor = |frame: &Option<Frame>| {
            frame.as_ref().and_then(|frame| frame.function.as_deref()) == Some(error_class)
        };
        while lines.next_if(is_constructor).is_some() {}
        let is_direct = lines.peek().is_some_and(Option::is_some);
        let mut frames: Vec<_> = lines.flatten().collect();
        for (index, frame) in frames.iter_mut().enumerate() {
            // The innermost one made the error, all others called something.
            let is_making = index == 0 && is_direct;
            self.place_at_call(frame, |callee| !is_making || callee == error_class);
        }
        Trace { frames, is_direct }
    }

    /// Moves a frame to the call it stands for, if there is only one it can be.
    fn place_at_call(&self, frame: &mut Frame, is_meant: impl Fn(&str) -> bool) {
        let calls = self.outline().calls_after(frame.offset);
        let mut meant = calls.filter(|call| is_meant(call.callee(&self.source)));
        if let (Some(call), None) = (meant.next(), meant.next()) {
            frame.offset = call.place();
        }
    }

    /// What is called at a frame, and where, if there is only one call it can be. Methods of
    /// global objects are not what is missing.
    pub(super) fn called_at(&self, frame: &Frame) -> Option<(&str, usize)> {
        let calls = self.outline().calls_after(frame.offset);
        let mut called = calls
            .map(|call| (call.callee(&self.source), call.place()))
            .filter(|(callee, _)| !is_well_known(callee));
        called.next().filter(|_| called.next().is_none())
    }

    /// Moves a frame that was interrupted to the loop it is in.
    pub(super) fn place_at_loop(&self, frame: &mut Frame) {
        if let Some(start) = self.outline().loop_after(frame.offset) {
            frame.offset = start;
        }
    }

    fn outline(&self) -> &Outline {
        self.outline.get_or_init(|| Outline::draw(&self.source))
    }

    /// The frames as text, one to a line.
    pub(super) fn describe(&self, frames: &[Frame]) -> String {
        let mut text = String::new();
        for frame in frames {
            let (line, column) = self.position(frame);
            let place = format!("{}:{line}:{column}", self.source.file_name);
            let separator = if text.is_empty() { "" } else { "\n" };
            let _ = match &frame.function {
                Some(function) => write!(text, "{separator}    at {function} ({place})"),
                None => write!(text, "{separator}    at {place}"),
            };
        }
        text
    }

    /// Line and column of a frame, counted from one, the column in characters.
    pub(super) fn position(&self, frame: &Frame) -> (u32, u32) {
        position(&self.source.text, frame.offset)
    }

    /// `    at name (file:line:column)`, or `    at file:line:column` for code that did not
    /// compile.
    fn frame(&self, line: &str) -> Option<Frame> {
        let text = line.trim_start().strip_prefix("at ")?;
        let file = &self.source.file_name;
        // The name may hold anything, so it is looked for as a whole.
        let (function, place) = match text.rfind(&format!(" ({file}:")) {
            Some(at) => {
                let (function, place) = text.split_at(at);
                (Some(function), place.get(2..)?.strip_suffix(')')?)
            }
            None => (None, text),
        };
        let place = place.strip_prefix(file.as_str())?.strip_prefix(':')?;
        let (line, column) = place.split_once(':')?;
        let offset = self.locate(line.parse().ok()?, column.parse().ok()?)?;
        let function = function.filter(|name| *name != "<anonymous>").map(str::to_owned);
        Some(Frame { function, offset })
    }

    /// The place in the source a place in the script came from. QuickJS counts columns in bytes.
    fn locate(&self, line: usize, column: usize) -> Option<usize> {
        let map = self.map.get_or_init(|| SourceMap::draw(&self.source)).as_ref()?;
        let line = line.checked_sub(1)?;
        let text = map.script.split('\n').nth(line)?;
        let end = text.floor_char_boundary(column.saturating_sub(1));
        let column = text.get(..end)?.encode_utf16().count();
        let generated = (u32::try_from(line).ok()?, u32::try_from(column).ok()?);
        let after = map.mappings.partition_point(|mapping| mapping.generated <= generated);
        // A place before all others is the head of the function around the code.
        let Mapping { original, .. } = map.mappings.get(after.saturating_sub(1))?;
        Some(self.offset(*original))
    }

    /// The byte offset of a line and a column in UTF-16 units.
    fn offset(&self, (line, column): (u32, u32)) -> usize {
        let text = &self.source.text;
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        let start = starts.take(line as usize + 1).last().unwrap_or_default();
        let mut left = column as usize;
        let line = text.get(start..).unwrap_or_default();
        let before = line.chars().take_while(|c| {
            let is_before = left > 0;
            left = left.saturating_sub(c.len_utf16());
            is_before
        });
        start + before.map(char::len_utf8).sum::<usize>()
    }
}

fn is_well_known(callee: &str) -> bool {
    const GLOBALS: [&str; 7] = ["Array", "console", "JSON", "Math", "Number", "Object", "Promise"];
    callee.split_once('.').is_some_and(|(object, _)| GLOBALS.contains(&object))
}
