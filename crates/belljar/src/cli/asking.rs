//! Telling a person that a call waits: with a question where one can answer, else with the command
//! that decides.
//!
//! Only a person at a terminal is asked here. The answer is read from the terminal and never from
//! what the code or its input says, and it counts only for the question that was on the screen
//! when it was typed.

use std::{
    collections::VecDeque,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    sync::Arc,
};

use belljar::now_ms;
use belljar_store::{Store, Verdict};
use belljar_tools::{ApprovalNotice, NoObserver, Observer};
use tokio::sync::mpsc;

use super::{
    approval_text::{arguments, arguments_in_line, place},
    look::{Look, Role},
    visible::visible,
};

/// Who is asked: the person at this terminal, or whoever reads standard error. Needs a running
/// tokio runtime.
pub(crate) fn observer(store: Option<&Store>) -> Arc<dyn Observer> {
    let Some(store) = store else { return Arc::new(NoObserver) };
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Arc::new(Printing);
    }
    let (tell, heard) = mpsc::unbounded_channel();
    tokio::spawn(converse(store.clone(), heard));
    Arc::new(Asking { tell })
}

/// Prints what waits, and how it is decided.
#[derive(Debug)]
struct Printing;

impl Observer for Printing {
    fn approval_waits(&self, notice: &ApprovalNotice) {
        let ApprovalNotice { id, tool, arguments, .. } = notice;
        let (tool, arguments) = (visible(tool), arguments_in_line(arguments));
        let _ = write!(
            io::stderr(),
            "waiting for approval {id}: {tool} {arguments}\n\
             decide in another terminal: belljar approvals approve {id} (or deny)\n"
        );
    }
}

/// Passes on what is heard to who asks.
#[derive(Debug)]
struct Asking {
    tell: mpsc::UnboundedSender<Heard>,
}

#[derive(Debug)]
enum Heard {
    Waits(ApprovalNotice),
    Over(String),
}

impl Observer for Asking {
    fn approval_waits(&self, notice: &ApprovalNotice) {
        let _ = self.tell.send(Heard::Waits(notice.clone()));
    }

    fn approval_over(&self, id: &str) {
        let _ = self.tell.send(Heard::Over(id.to_owned()));
    }
}

/// One question after the other, until nobody is left to ask.
async fn converse(store: Store, mut heard: mpsc::UnboundedReceiver<Heard>) {
    let (typed, mut answers) = mpsc::unbounded_channel();
    let mut waiting: VecDeque<ApprovalNotice> = VecDeque::new();
    // The question somebody is reading an answer to; the reading cannot be called off.
    let mut open: Option<String> = None;
    loop {
        if let (None, Some(next)) = (&open, waiting.front()) {
            ask(next);
            read_answer(next.id.clone(), typed.clone());
            open = Some(next.id.clone());
        }
        tokio::select! {
            news = heard.recv() => match news {
                None => return,
                Some(Heard::Waits(notice)) => waiting.push_back(notice),
                Some(Heard::Over(id)) => {
                    let was_open = waiting.front().is_some_and(|front| front.id == id);
                    waiting.retain(|notice| notice.id != id);
                    if was_open && open.as_deref() == Some(&*id) {
                        say("it was decided elsewhere, or too late; press Enter to go on");
                    }
                }
            },
            Some(Answer { id, line }) = answers.recv() => {
                open = None;
                if waiting.front().is_some_and(|front| front.id == id)
                    && settle(&store, &id, line.as_deref()).await == Settled::Yes
                {
                    waiting.pop_front();
                }
            }
        }
    }
}

/// A line somebody typed, and the question it answers.
#[derive(Debug)]
struct Answer {
    id: String,
    /// Nothing if there is nobody any more.
    line: Option<String>,
}

/// Whether a question need not be asked again.
#[derive(Debug, PartialEq, Eq)]
enum Settled {
    Yes,
    No,
}

async fn settle(store: &Store, id: &str, line: Option<&str>) -> Settled {
    let verdict = match line.map(|line| line.trim().to_lowercase()).as_deref() {
        Some("y" | "yes") => Verdict::Approve,
        Some("" | "n" | "no") => Verdict::Deny,
        Some(_) => return Settled::No,
        None => {
            say(&format!("decide in another terminal: belljar approvals approve {id} (or deny)"));
            return Settled::Yes;
        }
    };
    match store.decide(id, verdict, "terminal", now_ms()).await {
        Ok(_) if verdict == Verdict::Approve => {}
        Ok(_) => say("refused"),
        Err(error) => say(&error.to_string()),
    }
    Settled::Yes
}

fn ask(notice: &ApprovalNotice) {
    let look = Look::of_stderr();
    // What was typed before the question could be read is no answer to it.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let _ = io::stderr().write_all(question(notice, look).as_bytes());
}

fn question(notice: &ApprovalNotice, look: Look) -> String {
    let ApprovalNotice { run_id, tool, line, code_line, reason, .. } = notice;
    format!(
        "{} {}\n  {}\n  {}\n{}{} [y/N] ",
        look.paint(Role::Caution, "approval needed:"),
        look.paint(Role::Strong, &visible(tool)),
        look.paint(Role::Dim, &place(run_id, *line, code_line.as_deref())),
        look.paint(Role::Dim, &visible(reason)),
        arguments(&notice.arguments, look),
        look.paint(Role::Strong, "make this call?"),
    )
}

/// Reads one line on a thread of its own, which ends with the process if nobody types any.
fn read_answer(id: String, typed: mpsc::UnboundedSender<Answer>) {
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let line = read.is_ok_and(|bytes| bytes > 0).then_some(line);
        let _ = typed.send(Answer { id, line });
    });
}

fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests;
