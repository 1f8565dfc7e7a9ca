//! Asks a person at a terminal about the decisions of a workflow.
//!
//! The answer is read from the terminal and counts only for the question that was on the screen
//! when it was typed. Nothing in the workflow can answer it.

use belljar_contract::json_value;
use std::{
    collections::VecDeque,
    io,
    io::{BufRead as _, IsTerminal as _, Write as _},
};

use belljar_project::ProjectWorkflows;
use belljar_workflow::{
    Decider, DecisionKind, DoubtResolution, WorkflowCommand, WorkflowDecision, WorkflowEvent,
    WorkflowEventKind,
};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

use super::event_line::failure_text;
use crate::cli::terminal::{
    style::{TextRole, TextStyle},
    visible::visible,
};

/// Asks one question after the other.
#[derive(Debug)]
pub(super) struct DecisionPrompt {
    waiting: VecDeque<WorkflowDecision>,
    /// The question that is being answered; reading a line cannot be cancelled.
    open: Option<String>,
    typed: mpsc::UnboundedSender<(String, Option<String>)>,
    answers: mpsc::UnboundedReceiver<(String, Option<String>)>,
}

impl DecisionPrompt {
    /// A prompt, if a person is at a terminal.
    pub(super) fn at_terminal() -> Option<Self> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let (typed, answers) = mpsc::unbounded_channel();
        Some(Self { waiting: VecDeque::new(), open: None, typed, answers })
    }

    /// Whether a question is on the screen.
    pub(super) fn is_asking(&self) -> bool {
        self.open.is_some()
    }

    /// Adds decisions that were open from the start.
    pub(super) fn add_open(&mut self, decisions: Vec<WorkflowDecision>) {
        self.waiting.extend(decisions);
    }

    /// Notes decisions that open and close.
    pub(super) fn observe(&mut self, event: &WorkflowEvent) {
        if let WorkflowEventKind::DecisionRequired { decision } = &event.happened
            && self.waiting.iter().all(|known| known.id != decision.id)
        {
            self.waiting.push_back(decision.clone());
        }
        if let WorkflowEventKind::DecisionMade { decision, .. } = &event.happened {
            self.waiting.retain(|known| known.id != *decision);
            if self.open.as_ref() == Some(decision) {
                let _ = writeln!(io::stderr(), "it was decided elsewhere; press Enter to continue");
            }
        }
    }

    /// Sends the given answers and prints the next question.
    pub(super) async fn poll(&mut self, workflows: &ProjectWorkflows, flow: &str) {
        while let Ok((id, line)) = self.answers.try_recv() {
            self.open = None;
            let Some(at) = self.waiting.iter().position(|decision| decision.id == id) else {
                continue;
            };
            let Some(command) = self.waiting.get(at).and_then(|asked| read(asked, line.as_deref()))
            else {
                continue;
            };
            self.waiting.remove(at);
            if let Err(error) = workflows.send(flow, None, "terminal", &command).await {
                let _ = writeln!(io::stderr(), "{error}");
            }
        }
        if let (None, Some(next)) = (&self.open, self.waiting.front()) {
            print_question(next);
            self.open = Some(next.id.clone());
            let (id, typed) = (next.id.clone(), self.typed.clone());
            // Reads one line on a separate thread, which ends with the process if nothing is typed.
            std::thread::spawn(move || {
                let mut line = String::new();
                let read = io::stdin().lock().read_line(&mut line);
                let line = read.is_ok_and(|bytes| bytes > 0).then_some(line);
                let _ = typed.send((id, line));
            });
        }
    }
}

fn print_question(decision: &WorkflowDecision) {
    let style = TextStyle::of_stderr();
    // Lines typed before the question was visible are not answers to it.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    let whom = match decision.by {
        Decider::Human => "a person must decide",
        Decider::Agent => "a decision is needed",
    };
    let choices = match decision.kind {
        DecisionKind::InDoubt => "did it happen? [retry / fail / the result as JSON] ",
        DecisionKind::Approval
        | DecisionKind::Before
        | DecisionKind::After
        | DecisionKind::OnError => "continue? [y/N] ",
    };
    let why = decision.failure.as_ref().map(|why| format!("  {}\n", failure_text(why)));
    let _ = write!(
        io::stderr(),
        "{} {}\n  {}\n{}{}",
        style.paint(TextRole::Caution, &format!("{whom}:")),
        style.paint(TextRole::Strong, &visible(&decision.instance)),
        visible(&decision.message),
        why.unwrap_or_default(),
        style.paint(TextRole::Strong, choices),
    );
}

/// The command that a line means; `None` if it is unclear.
fn read(decision: &WorkflowDecision, line: Option<&str>) -> Option<WorkflowCommand> {
    // The end of input decides nothing.
    let line = line?.trim();
    let id = decision.id.clone();
    if decision.kind == DecisionKind::InDoubt {
        let task = decision.instance.clone();
        let how = match line {
            "retry" => DoubtResolution::Retry,
            "fail" => DoubtResolution::Fail { reason: None },
            json => DoubtResolution::Use { value: json_value::parse(json).ok()? },
        };
        return Some(WorkflowCommand::Resolve { task, how });
    }
    match line.to_lowercase().as_str() {
        "y" | "yes" => Some(WorkflowCommand::Approve { decision: id, value: None }),
        "" | "n" | "no" => Some(WorkflowCommand::Reject { decision: id, reason: None }),
        _ => None,
    }
}
