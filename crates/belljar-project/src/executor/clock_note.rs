//! The note about the clock of a durable run.
//!
//! That clock moves only with tool replies and timers, so a loop that waits for a time never ends. Code
//! that reads the clock is recognised by its text. The note only explains; nothing depends on it.

use belljar_contract::{ErrorCode, Language, RunResult};

use super::{Execution, RunDurability};

/// The note about the clock of a durable run, for the reader of its result. Ordinary runs have the default.
#[derive(Debug, Default)]
pub(super) struct ClockNote {
    reads_clock: bool,
    /// Whether the run is durable only because it may have to wait for a person.
    is_because_of_tools: bool,
}

impl ClockNote {
    /// The note for a durable run.
    pub(super) fn of(execution: &Execution) -> Self {
        Self {
            reads_clock: reads_clock(execution.request.language, &execution.request.code),
            is_because_of_tools: execution.durability == RunDurability::IfAsked,
        }
    }

    /// Adds the note to a result whose code reads the clock.
    pub(super) fn tell(&self, result: &mut RunResult) {
        if !self.reads_clock {
            return;
        }
        let ordinary = if self.is_because_of_tools {
            "for an ordinary run, use --no-durable, or \"durable\": false in a request"
        } else {
            "for an ordinary run, do not ask for a durable one"
        };
        if self.is_because_of_tools {
            let note = format!(
                "[durable] the run is durable because it may call a tool that asks a person: its \
                 clock stands still between tool replies and timers; {ordinary}"
            );
            result.logs.insert(0, note);
        }
        let Some(error) = &mut result.error else { return };
        if matches!(error.code, ErrorCode::LimitTimeout | ErrorCode::LimitCpu) {
            error.hint = Some(format!(
                "the run is durable, so its clock stands still between tool replies and timers: a \
                 loop that waits for a time never ends; wait with a timer such as setTimeout or \
                 sleep; {ordinary}"
            ));
        }
    }
}

/// Whether the code seems to read the clock.
fn reads_clock(language: Language, code: &str) -> bool {
    const JAVASCRIPT: [&str; 5] =
        ["Date.now", "new Date", "performance.now", "process.hrtime", "process.uptime"];
    const PYTHON: [&str; 9] = [
        "time.time",
        "time()",
        "time_ns(",
        "perf_counter",
        "monotonic",
        ".now(",
        "utcnow(",
        ".today(",
        "localtime(",
    ];
    let signs: &[&str] = match language {
        Language::TypeScript | Language::JavaScript => &JAVASCRIPT,
        Language::Python => &PYTHON,
        // Its programs read the clock of the machine.
        Language::Bash => &[],
    };
    signs.iter().any(|sign| code.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_reads_the_clock_is_recognised() {
        for (language, code) in [
            (Language::TypeScript, "while (Date.now() - t < 100) {}"),
            (Language::JavaScript, "const t = performance.now()"),
            (Language::Python, "import time\nwhile time.time() < end: pass"),
            (Language::Python, "from datetime import datetime\ndatetime.now()"),
        ] {
            assert!(reads_clock(language, code), "{code}");
        }
        for (language, code) in [
            (Language::TypeScript, "return context.date"),
            (Language::Python, "runtime = 3"),
            (Language::Bash, "date; time.time"),
        ] {
            assert!(!reads_clock(language, code), "{code}");
        }
    }
}
