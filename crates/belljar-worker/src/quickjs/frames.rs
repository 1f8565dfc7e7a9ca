//! From QuickJS's stack text to frames of the code as the agent wrote it.

use std::{cell::OnceCell, fmt::Write as _, rc::Rc};

use super::transpile::{Mapping, SourceCode, SourceMap, SourceOutline, position};

/// One frame of the agent's own code.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// `None` at the top level and in functions without a name.
    pub(super) function: Option<String>,
    /// Byte offset in the source.
    pub(super) offset: usize,
    /// Whose source it is in.
    pub(super) locator: Rc<Locator>,
    pub(super) origin: Origin,
}

/// Which run's code a frame is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The code of this run.
    Current,
    /// The code of an earlier run of the session.
    Earlier,
}

impl Frame {
    /// Line and column, counted from one, the column in characters.
    pub(super) fn position(&self) -> (u32, u32) {
        position(&self.locator.source.text, self.offset)
    }

    /// The name of its source.
    pub(super) fn source_name(&self) -> String {
        match self.origin {
            Origin::Current => self.locator.source.file_name.clone(),
            Origin::Earlier => self.locator.source.script_name(),
        }
    }

    /// The callee and its place, if only one call can be meant. Methods of global objects are never
    /// the missing ones.
    pub(super) fn called(&self) -> Option<(String, usize)> {
        let Locator { source, .. } = &*self.locator;
        let calls = self.locator.outline().calls_after(self.offset);
        let mut called = calls
            .map(|call| (call.callee(source), call.place()))
            .filter(|(callee, _)| !is_well_known(callee));
        let (callee, place) = called.next().filter(|_| called.next().is_none())?;
        Some((callee.to_owned(), place))
    }

    /// Moves a frame to the call it stands for, if there is only one it can be.
    pub(super) fn place_at_call(&mut self, is_meant: impl Fn(&str) -> bool) {
        let calls = self.locator.outline().calls_after(self.offset);
        let mut meant = calls.filter(|call| is_meant(call.callee(&self.locator.source)));
        let call = meant.next().filter(|_| meant.next().is_none());
        if let Some(place) = call.map(|call| call.place()) {
            self.offset = place;
        }
    }

    /// Moves a frame that was interrupted to the loop it is in.
    pub(super) fn place_at_loop(&mut self) {
        if let Some(start) = self.locator.outline().loop_after(self.offset) {
            self.offset = start;
        }
    }
}

/// The frames of the agent's own code, innermost first.
#[derive(Debug, Default)]
pub(super) struct StackTrace {
    pub(super) frames: Vec<Frame>,
    /// No function of the engine's or the library's was on top of them.
    pub(super) is_direct: bool,
}

impl StackTrace {
    /// The innermost frame of the code of this run: reported lines are lines of that code.
    pub(super) fn current(&self) -> Option<&Frame> {
        current(&self.frames)
    }
}

/// The innermost frame of the code of this run.
pub(super) fn current(frames: &[Frame]) -> Option<&Frame> {
    frames.iter().find(|frame| frame.origin == Origin::Current)
}

/// Knows where generated code came from. Map and outline are drawn when they are first needed.
#[derive(Debug)]
pub(super) struct Locator {
    source: SourceCode,
    script_name: String,
    map: OnceCell<Option<SourceMap>>,
    outline: OnceCell<SourceOutline>,
}

impl Locator {
    pub(super) fn new(source: SourceCode) -> Self {
        let script_name = source.script_name();
        Self { source, script_name, map: OnceCell::new(), outline: OnceCell::new() }
    }

    pub(super) fn source(&self) -> &SourceCode {
        &self.source
    }

    fn outline(&self) -> &SourceOutline {
        self.outline.get_or_init(|| SourceOutline::draw(&self.source))
    }

    /// `    at name (file:line:column)`, or `    at file:line:column` for code that did not
    /// compile.
    pub(super) fn frame(self: &Rc<Self>, line: &str, origin: Origin) -> Option<Frame> {
        let text = line.trim_start().strip_prefix("at ")?;
        let file = &self.script_name;
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
        Some(Frame { function, offset, locator: self.clone(), origin })
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

/// The frames as text, one to a line.
pub(super) fn describe(frames: &[Frame]) -> String {
    let mut text = String::new();
    for frame in frames {
        let (line, column) = frame.position();
        let place = format!("{}:{line}:{column}", frame.source_name());
        let separator = if text.is_empty() { "" } else { "\n" };
        let _ = match &frame.function {
            Some(function) => write!(text, "{separator}    at {function} ({place})"),
            None => write!(text, "{separator}    at {place}"),
        };
    }
    text
}

fn is_well_known(callee: &str) -> bool {
    const GLOBALS: [&str; 7] = ["Array", "console", "JSON", "Math", "Number", "Object", "Promise"];
    callee.split_once('.').is_some_and(|(object, _)| GLOBALS.contains(&object))
}
