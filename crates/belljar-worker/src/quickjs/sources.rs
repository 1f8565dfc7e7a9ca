//! The code of a run, and that of earlier runs of its session, whose functions are still there.

use std::{collections::VecDeque, rc::Rc};

use super::{
    frames::{Frame, Locator, Origin, StackTrace},
    transpile::SourceCode,
};

/// Errors in functions of runs that are longer ago have no frames of theirs.
const MAX_EARLIER: usize = 200;
/// The text of earlier runs, all together.
const MAX_EARLIER_BYTES: usize = 4 << 20;

/// Where a run's errors can come from.
#[derive(Debug)]
pub(super) struct Sources {
    current: Rc<Locator>,
    /// The sources of earlier runs, the latest first.
    earlier: Vec<Rc<Locator>>,
}

impl Sources {
    /// The code of this run.
    pub(super) fn current(&self) -> &SourceCode {
        self.current.source()
    }

    /// Reads the stack of an error of this class. Frames of the class's own constructor are left
    /// out, as in Node: an error is made where its class is used.
    pub(super) fn trace(&self, stack: &str, error_class: &str) -> StackTrace {
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
            frame.place_at_call(|callee| !is_making || callee == error_class);
        }
        StackTrace { frames, is_direct }
    }

    fn frame(&self, line: &str) -> Option<Frame> {
        let earlier = || self.earlier.iter().find_map(|one| one.frame(line, Origin::Earlier));
        self.current.frame(line, Origin::Current).or_else(earlier)
    }
}

/// The sources of earlier runs that a session keeps.
#[derive(Debug, Default)]
pub(super) struct History {
    runs: u32,
    bytes: usize,
    earlier: VecDeque<Rc<Locator>>,
}

impl History {
    /// The number of the run that is to come.
    pub(super) fn next_run(&mut self) -> u32 {
        self.runs = self.runs.saturating_add(1);
        self.runs
    }

    /// The sources of a run.
    pub(super) fn with(&self, current: SourceCode) -> Rc<Sources> {
        let earlier = self.earlier.iter().rev().cloned().collect();
        Rc::new(Sources { current: Rc::new(Locator::new(current)), earlier })
    }

    /// Keeps the code of a run that is over, and drops the oldest code.
    pub(super) fn remember(&mut self, sources: &Sources) {
        // Without the maps that may have been drawn: they are larger, and seldom wanted again.
        let source = sources.current().clone();
        self.bytes += source.text.len();
        self.earlier.push_back(Rc::new(Locator::new(source)));
        while self.bytes > MAX_EARLIER_BYTES || self.earlier.len() > MAX_EARLIER {
            let Some(forgotten) = self.earlier.pop_front() else { break };
            self.bytes -= forgotten.source().text.len();
        }
    }
}
