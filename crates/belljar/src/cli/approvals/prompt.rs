//! Informs a person about a waiting call: with a question at a terminal, else with the command that
//! decides.
//!
//! Only a person at a terminal is asked. The answer is read from the terminal, never from the code
//! or its input, and counts only for the question that was on the screen when it was typed. A yes
//! counts only if all arguments were on the screen. Calls that wait at once are one question, so that a loop
//! does not ask once per round.

mod question_group;

use std::{
    collections::VecDeque,
    io,
    io::{BufRead as _, IsTerminal as _, Write as _},
    sync::Arc,
    time::Duration,
};

use belljar_contract::{ApprovalId, ConsentRule, ConsentScope, Verdict, decision_command};
use belljar_project::{Project, now_ms};
use belljar_store::NewApproval;
use belljar_tools::{ApprovalNotice, CallObserver, Decisions, NoObserver};
use serde_json::Map;
use tokio::sync::mpsc;

use super::text::{
    Extent, all_arguments, arguments, arguments_in_line, cut_note, name_in_line, place,
};
use crate::cli::{
    project::command_in,
    terminal::{
        elapsed::span,
        progress,
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// Whether a call that needs approval waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalWait {
    Wait,
    /// The call fails at once.
    Fail,
}

impl ApprovalWait {
    /// The meaning of `--no-wait`.
    pub(crate) fn of(no_wait: bool) -> Self {
        if no_wait { Self::Fail } else { Self::Wait }
    }
}

/// The observer for approvals: asks at a terminal, otherwise prints to standard error. Needs a
/// running tokio runtime.
pub(crate) fn observer(
    decisions: Option<Decisions>,
    project: &Project,
    wait: ApprovalWait,
) -> Arc<dyn CallObserver> {
    if wait == ApprovalWait::Fail {
        return Arc::new(FailingObserver);
    }
    let Some(decisions) = decisions else { return Arc::new(NoObserver) };
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Arc::new(PrintingObserver { belljar: command_in(project) });
    }
    let (tell, heard) = mpsc::unbounded_channel();
    tokio::spawn(run_prompts(decisions, heard));
    Arc::new(PromptingObserver { tell })
}

/// Lets no call wait.
#[derive(Debug)]
struct FailingObserver;

impl CallObserver for FailingObserver {
    fn may_wait(&self) -> bool {
        false
    }
}

/// Prints each waiting call and the command that decides it.
#[derive(Debug)]
struct PrintingObserver {
    /// The command line up to the command, for another terminal.
    belljar: String,
}

impl CallObserver for PrintingObserver {
    fn approval_waits(&self, notice: &ApprovalNotice) {
        let NewApproval { id, tool, arguments, expires_ms, .. } = &notice.asked;
        let (tool, arguments) = (name_in_line(tool), arguments_in_line(arguments));
        let (left, belljar) = (span(expires_ms - now_ms()), &self.belljar);
        let text = format!(
            "waiting for approval {id}: {tool} {arguments}\n\
             decide within {left}, in another terminal: {belljar} approvals approve {id}\n\
             (`deny` instead of `approve` refuses it, `show` prints all of it; --no-wait fails \
             instead of waiting)\n"
        );
        progress::above(false, || {
            let _ = io::stderr().write_all(text.as_bytes());
        });
    }
}

/// Forwards approvals to the task that asks.
#[derive(Debug)]
struct PromptingObserver {
    tell: mpsc::UnboundedSender<ApprovalNews>,
}

#[derive(Debug)]
enum ApprovalNews {
    Waits(Box<ApprovalNotice>),
    Over(ApprovalId),
}

impl CallObserver for PromptingObserver {
    fn approval_waits(&self, notice: &ApprovalNotice) {
        progress::open_question();
        let _ = self.tell.send(ApprovalNews::Waits(Box::new(notice.clone())));
    }

    fn approval_over(&self, id: &ApprovalId) {
        let _ = self.tell.send(ApprovalNews::Over(id.clone()));
        progress::close_question();
    }
}

/// How long calls are gathered into one question after the last of them.
const GATHERING: Duration = Duration::from_millis(100);

/// Asks about the calls that wait, until the sender is gone.
async fn run_prompts(decisions: Decisions, mut heard: mpsc::UnboundedReceiver<ApprovalNews>) {
    let (typed, mut answers) = mpsc::unbounded_channel();
    let mut queue = PromptQueue::new(decisions, typed);
    loop {
        let is_next = queue.open.is_none() && !queue.waiting.is_empty();
        tokio::select! {
            news = heard.recv() => match news {
                None => return,
                Some(ApprovalNews::Waits(notice)) => queue.waiting.push_back(*notice),
                Some(ApprovalNews::Over(id)) => queue.forget(&id),
            },
            Some(TypedLine { ids, line }) = answers.recv() => queue.take(&ids, line.as_deref()).await,
            () = tokio::time::sleep(GATHERING), if is_next => queue.ask(),
        }
    }
}

/// The calls that wait for this person, and the question on the screen.
struct PromptQueue {
    decisions: Decisions,
    waiting: VecDeque<ApprovalNotice>,
    /// The calls of the question that is being answered; reading a line cannot be cancelled.
    open: Option<Vec<ApprovalId>>,
    /// How much of the current question was on the screen.
    seen: Extent,
    /// The person wants to answer for each of the calls that wait.
    is_each: bool,
    typed: mpsc::UnboundedSender<TypedLine>,
}

impl PromptQueue {
    fn new(decisions: Decisions, typed: mpsc::UnboundedSender<TypedLine>) -> Self {
        let (waiting, open, seen) = (VecDeque::new(), None, Extent::InPart);
        Self { decisions, waiting, open, seen, is_each: false, typed }
    }

    /// Shows the next question: about all calls that wait, or about the first.
    fn ask(&mut self) {
        let style = TextStyle::of_stderr();
        let all = if self.is_each { None } else { question_group::question(&self.waiting, style) };
        let Some(next) = self.waiting.front() else { return };
        let asked = match all {
            Some(text) => {
                print_question(&text);
                self.waiting.iter().map(|notice| notice.asked.id.clone()).collect()
            }
            None => {
                self.seen = show_question(next, self.seen);
                vec![next.asked.id.clone()]
            }
        };
        read_answer(asked.clone(), self.typed.clone());
        self.open = Some(asked);
    }

    /// A call was decided elsewhere, or expired, or was answered here.
    fn forget(&mut self, id: &ApprovalId) {
        let before = self.waiting.len();
        self.waiting.retain(|notice| notice.asked.id != *id);
        let is_shown = self.open.as_ref().is_some_and(|open| open.contains(id));
        if !is_shown || self.waiting.len() == before {
            return;
        }
        let open = self.open.iter().flatten();
        let left = open.filter(|id| self.is_waiting(id)).count();
        match left {
            0 => print_line("decided elsewhere, or expired; press Enter to continue"),
            _ => print_line(&format!("{id} was decided elsewhere, or expired; {left} are left")),
        }
    }

    fn is_waiting(&self, id: &ApprovalId) -> bool {
        self.waiting.iter().any(|notice| notice.asked.id == *id)
    }

    /// Takes a line that was typed while these calls were on the screen.
    async fn take(&mut self, ids: &[ApprovalId], line: Option<&str>) {
        self.open = None;
        if let [id] = ids {
            self.take_one(id, line).await;
        } else {
            self.take_all(ids, line).await;
        }
        self.is_each &= !self.waiting.is_empty();
    }

    async fn take_one(&mut self, id: &ApprovalId, line: Option<&str>) {
        let Some(front) = self.waiting.front().filter(|front| front.asked.id == *id) else {
            self.seen = Extent::InPart;
            return;
        };
        match Reply::read(line, self.seen, &front.scopes) {
            Reply::Unclear => {}
            Reply::ShowAll => self.seen = Extent::Whole,
            reply @ (Reply::Decided(_) | Reply::Gone) => {
                if let Some(notice) = self.waiting.pop_front() {
                    apply_reply(&self.decisions, &notice, reply).await;
                }
                self.seen = Extent::InPart;
            }
        }
    }

    /// Answers for all calls that were shown and still wait. Calls that came later are not among them.
    async fn take_all(&mut self, ids: &[ApprovalId], line: Option<&str>) {
        let verdict = match question_group::GroupReply::read(line) {
            question_group::GroupReply::Unclear => return,
            question_group::GroupReply::Each => {
                self.is_each = true;
                return;
            }
            question_group::GroupReply::Gone => None,
            question_group::GroupReply::All(verdict) => Some(verdict),
        };
        let (shown, later): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|notice| ids.contains(&notice.asked.id));
        self.waiting = later;
        for notice in shown {
            let reply = verdict.clone().map_or(Reply::Gone, Reply::Decided);
            apply_reply(&self.decisions, &notice, reply).await;
        }
    }
}

/// A typed line, and the calls that were on the screen.
#[derive(Debug)]
struct TypedLine {
    ids: Vec<ApprovalId>,
    /// `None` at the end of input.
    line: Option<String>,
}

/// The meaning of a typed line.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Decided(Verdict),
    /// Show all arguments first.
    ShowAll,
    /// The line is no answer: ask again.
    Unclear,
    /// The input has ended.
    Gone,
}

impl Reply {
    /// Interprets a line, given how much of the call was on the screen.
    fn read(line: Option<&str>, seen: Extent, scopes: &[ConsentScope]) -> Self {
        let Some(line) = line else { return Self::Gone };
        let letter = line.trim().to_lowercase();
        let wider = scopes.iter().find(|scope| key(**scope) == Some(&*letter));
        if let (Some(scope), Extent::Whole) = (wider, seen) {
            let rule = ConsentRule { scope: *scope, when: Map::new() };
            return Self::Decided(Verdict::ApproveRule(rule));
        }
        match (line.trim().to_lowercase().as_str(), seen) {
            ("y" | "yes", Extent::Whole) => Self::Decided(Verdict::Approve),
            ("" | "n" | "no", _) => Self::Decided(Verdict::Deny),
            ("s" | "show", Extent::InPart) => Self::ShowAll,
            _ => Self::Unclear,
        }
    }
}

/// The key for a yes that lasts longer than the call.
const fn key(scope: ConsentScope) -> Option<&'static str> {
    match scope {
        ConsentScope::Once => None,
        ConsentScope::Run => Some("r"),
        ConsentScope::Session => Some("e"),
        ConsentScope::Always => Some("a"),
    }
}

async fn apply_reply(decisions: &Decisions, notice: &ApprovalNotice, reply: Reply) {
    let Reply::Decided(verdict) = reply else {
        let (project, state) = (notice.project.as_deref(), notice.state_dir.as_deref());
        let command = decision_command("approve", &notice.asked.id, project, state);
        let text = format!("decide in another terminal: {} (or deny)", visible(&command));
        return print_line(&text);
    };
    match decisions.decide(&notice.asked.id, verdict.clone(), "terminal", now_ms()).await {
        Ok(recorded) if recorded.rule.is_some() => {
            print_line(&visible(&recorded.to_string()));
        }
        Ok(_) if verdict == Verdict::Approve => {}
        Ok(_) => print_line("refused"),
        Err(error) => print_line(&visible(&error.to_string())),
    }
}

/// Prints the question, with all arguments if requested; returns how much was shown.
fn show_question(notice: &ApprovalNotice, wanted: Extent) -> Extent {
    let style = TextStyle::of_stderr();
    let (question, shown) = question(notice, wanted, style);
    print_question(&question);
    shown
}

fn print_question(text: &str) {
    // Lines typed before the question was visible are not answers to it.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let _ = io::stderr().write_all(text.as_bytes());
}

fn question(notice: &ApprovalNotice, wanted: Extent, style: TextStyle) -> (String, Extent) {
    let ApprovalNotice { asked, reason, .. } = notice;
    let NewApproval { id, run_id, tool, line, code_line, arguments: json, .. } = asked;
    let (arguments, shown) = match wanted {
        Extent::Whole => (all_arguments(json, style), Extent::Whole),
        Extent::InPart => arguments(json, style),
    };
    let (note, prompt, choices) = match shown {
        Extent::Whole => {
            let (rules, keys) = wider_choices(notice);
            (rules, "make this call?", format!("[y/N{keys}]"))
        }
        Extent::InPart => (
            cut_note(id, json, style),
            "make this call? show all of it first",
            "[show/N]".to_owned(),
        ),
    };
    let text = format!(
        "{} {}\n  {}\n  {}\n{arguments}{note}{} {choices} ",
        style.paint(TextRole::Caution, "approval needed:"),
        style.paint(TextRole::Strong, &name_in_line(tool)),
        style.paint(TextRole::Dim, &place(run_id, *line, code_line.as_deref())),
        style.paint(TextRole::Dim, &visible(reason)),
        style.paint(TextRole::Strong, prompt),
    );
    (text, shown)
}

/// The rules that the keys for a wider yes allow, and the keys.
fn wider_choices(notice: &ApprovalNotice) -> (String, String) {
    let (mut rules, mut keys) = (String::new(), String::new());
    for scope in &notice.scopes {
        if let Some(key) = key(*scope) {
            let (tool, when) = (name_in_line(&notice.asked.tool), scope.phrase());
            rules.push_str(&format!("  {key}: yes, and {tool} with any arguments {when}\n"));
            keys.push_str(&format!("/{key}"));
        }
    }
    (rules, keys)
}

/// Reads one line on a separate thread, which ends with the process if nothing is typed.
fn read_answer(ids: Vec<ApprovalId>, typed: mpsc::UnboundedSender<TypedLine>) {
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let line = read.is_ok_and(|bytes| bytes > 0).then_some(line);
        let _ = typed.send(TypedLine { ids, line });
    });
}

fn print_line(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests;
