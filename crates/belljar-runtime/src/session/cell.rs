//! The cell that a session lives in, with the sessions that were forked from it.
//!
//! It lives as long as any of them. One task listens to its keeper and one to each of its guests, so
//! that an end is known also when nobody waits for it, and files of dead guests are let go.

use std::{
    collections::BTreeSet,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use belljar_contract::RunError;
use belljar_jail::{
    Guests, KeeperReport, receive_answer, request_branch, request_branch_files, request_drop,
    request_first_guest,
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    net::UnixDatagram,
    sync::{mpsc, watch},
    time::timeout,
};

use super::{
    Inner,
    patrol::{end_strays, patrol},
};
use crate::{cell::Body, scan::Writing};

/// Longer than any keeper that still works takes to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// A cell with one guest or several.
#[derive(Debug)]
pub(crate) struct SessionCell {
    body: Body,
    keeper: Arc<UnixDatagram>,
    /// What the keeper answers; held by who asks, so that there is one question at a time.
    answers: tokio::sync::Mutex<Answers>,
    members: Mutex<Vec<Weak<Inner>>>,
    /// Guests that somebody has in hand, as the host numbers them.
    guests: Mutex<BTreeSet<u32>>,
    running: AtomicUsize,
    branching: AtomicUsize,
    runs_begun: AtomicUsize,
    /// Why this host has ended the whole cell, if it has.
    ended_for: OnceLock<RunError>,
    /// Takes back what its guests have made in granted trees, once it is dropped. After the body.
    writing: Option<Writing>,
}

/// What the keeper answers, one answer to a question.
#[derive(Debug)]
struct Answers {
    received: mpsc::UnboundedReceiver<Answer>,
    /// Who asked last went away before the answer came.
    is_owed: bool,
}

type Answer = (KeeperReport, Vec<OwnedFd>);

/// The keeper's ear, which nobody else has meanwhile.
#[derive(Debug)]
pub(crate) struct Keeper<'a> {
    cell: &'a SessionCell,
    answers: tokio::sync::MutexGuard<'a, Answers>,
}

/// A guest's file tree frozen, and one for each of the two that go on from there.
#[derive(Debug)]
pub(crate) struct Trees {
    /// What the keeper calls the new guest.
    pub(crate) number: u64,
    pub(crate) child: OwnedFd,
    pub(crate) parent: OwnedFd,
}

impl SessionCell {
    /// Starts to listen to the keeper of a new cell.
    pub(crate) fn new(body: Body, writing: Option<Writing>) -> Arc<Self> {
        let keeper = body.keeper_socket();
        let (answer, answers) = mpsc::unbounded_channel();
        let cell = Arc::new(Self {
            body,
            keeper: keeper.clone(),
            answers: tokio::sync::Mutex::new(Answers { received: answers, is_owed: false }),
            members: Mutex::default(),
            guests: Mutex::default(),
            running: AtomicUsize::new(0),
            branching: AtomicUsize::new(0),
            runs_begun: AtomicUsize::new(0),
            ended_for: OnceLock::new(),
            writing,
        });
        tokio::spawn(listen(keeper, Arc::downgrade(&cell), answer));
        tokio::spawn(patrol(Arc::downgrade(&cell)));
        cell
    }

    /// A session lives here.
    pub(crate) fn join(&self, member: &Arc<Inner>) {
        let mut members = lock(&self.members);
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(member));
    }

    /// Ends it if no session lives here any more. By what comes back one can wait until what was
    /// written is taken back.
    pub(crate) fn end_if_left(&self) -> Option<watch::Receiver<()>> {
        let members = lock(&self.members);
        let is_lived_in = |member: Arc<Inner>| member.ending.borrow().is_none();
        if members.iter().filter_map(Weak::upgrade).any(is_lived_in) {
            return None;
        }
        self.body.kill();
        self.writing.as_ref().map(Writing::over)
    }

    /// Its keeper, and what is known of it.
    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// Ends everything in it, for a reason that its sessions are told.
    pub(super) fn end(&self, why: &RunError) {
        tracing::warn!(why = why.message, "a session's cell was ended");
        // The first reason is the reason.
        let _ = self.ended_for.set(why.clone());
        self.body.kill();
    }

    /// Why this host has ended it, if it has.
    pub(super) fn ended_for(&self) -> Option<RunError> {
        self.ended_for.get().cloned()
    }

    /// What its guests are.
    pub(crate) fn guests(&self) -> Guests {
        self.body.processes().guests
    }

    /// The keeper, once nobody else talks to it.
    pub(crate) async fn keeper(&self) -> Keeper<'_> {
        Keeper { cell: self, answers: self.answers.lock().await }
    }

    /// A handle on what a guest sees at `/work`.
    pub(crate) async fn work(&self, of: u64) -> io::Result<OwnedFd> {
        let mut keeper = self.keeper().await;
        match keeper.ask(|keeper| request_branch_files(keeper, of)).await? {
            (KeeperReport::Work, fds) => one(fds),
            (KeeperReport::NoWork { message } | KeeperReport::NotBranched { message }, _) => {
                Err(io::Error::other(message))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// A run begins; it has ended when what this returns is dropped.
    pub(crate) fn begin_run(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.runs_begun.fetch_add(1, Ordering::SeqCst);
        Running(self.clone())
    }

    /// A guest is about to become two: until what this returns is dropped, there may be one in the cell
    /// that nobody has in hand yet.
    pub(super) fn begin_branching(self: &Arc<Self>) -> Branching {
        self.branching.fetch_add(1, Ordering::SeqCst);
        Branching(self.clone())
    }

    /// Runs that were begun in its life.
    pub(super) fn runs_begun(&self) -> usize {
        self.runs_begun.load(Ordering::SeqCst)
    }

    /// Whether something is asked of one of its guests.
    pub(super) fn is_busy(&self) -> bool {
        self.running.load(Ordering::SeqCst) > 0 || self.is_branching()
    }

    /// Whether a guest is about to become two.
    pub(super) fn is_branching(&self) -> bool {
        self.branching.load(Ordering::SeqCst) > 0
    }

    /// Somebody has this guest in hand.
    pub(super) fn adopt(&self, guest: u32) {
        lock(&self.guests).insert(guest);
    }

    /// Nobody has it any more.
    pub(super) fn disown(&self, guest: u32) {
        lock(&self.guests).remove(&guest);
    }

    /// Whether somebody has this guest in hand.
    pub(super) fn has_in_hand(&self, guest: u32) -> bool {
        lock(&self.guests).contains(&guest)
    }

    /// How many guests there may be: those somebody has in hand, and those that are just being made.
    pub(super) fn guests_at_most(&self) -> usize {
        // In this order: one that is no longer being made is in hand.
        let branching = self.branching.load(Ordering::SeqCst);
        lock(&self.guests).len() + branching
    }

    /// Has every session that lives here find out whether its guests are still there.
    fn look_after_members(&self) {
        for member in lock(&self.members).iter().filter_map(Weak::upgrade) {
            tokio::spawn(async move { member.find_dead().await });
        }
    }
}

impl Keeper<'_> {
    /// A handle on the guest the cell was made with.
    pub(crate) async fn first_guest(&mut self) -> io::Result<OwnedFd> {
        match self.ask(|keeper| request_first_guest(keeper)).await? {
            (KeeperReport::FirstGuest, fds) => one(fds),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Freezes a guest's files and makes a tree for it and one for a new guest. `Err` of the inner
    /// result says why it cannot be done as things are; nothing was changed then. Nothing else may be
    /// asked until the guest goes on in its new tree.
    pub(crate) async fn freeze(&mut self, of: u64) -> io::Result<Result<Trees, String>> {
        match self.ask(|keeper| request_branch(keeper, of)).await? {
            (KeeperReport::Branched { child: number }, fds) => {
                let [child, parent] =
                    <[OwnedFd; 2]>::try_from(fds).map_err(|_| io::ErrorKind::InvalidData)?;
                Ok(Ok(Trees { number, child, parent }))
            }
            (KeeperReport::NotBranched { message }, _) => Ok(Err(message)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Lets go of the files of a guest that is dead.
    pub(crate) async fn forget(&mut self, number: u64) {
        let forgotten = self.ask(|keeper| request_drop(keeper, number)).await;
        if let Err(error) = forgotten {
            tracing::debug!(%error, "the files of a branch are kept as long as its cell");
        }
    }

    async fn ask(
        &mut self,
        request: impl FnOnce(&UnixDatagram) -> io::Result<()>,
    ) -> io::Result<Answer> {
        if self.answers.is_owed {
            self.answer().await?;
        }
        request(&self.cell.keeper)?;
        self.answers.is_owed = true;
        self.answer().await
    }

    async fn answer(&mut self) -> io::Result<Answer> {
        match timeout(ANSWER, self.answers.received.recv()).await {
            Ok(answer) => {
                self.answers.is_owed = false;
                answer.ok_or(io::ErrorKind::UnexpectedEof.into())
            }
            Err(elapsed) => {
                // An answer that comes after all would be taken for that to the next question.
                self.cell.body.kill();
                Err(elapsed.into())
            }
        }
    }
}

/// A run that goes on.
#[derive(Debug)]
pub(crate) struct Running(Arc<SessionCell>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Running {
    /// The run has ended, and so does what it left behind: at once where that is usual, or wanted;
    /// when the cell is looked at next elsewhere, for looking takes longer than many a run.
    pub(crate) fn end(self, at_once: bool) {
        let cell = self.0.clone();
        drop(self);
        if at_once && let Err(why) = end_strays(&cell) {
            cell.end(&why);
        }
    }
}

/// A guest that becomes two.
#[derive(Debug)]
pub(super) struct Branching(Arc<SessionCell>);

impl Drop for Branching {
    fn drop(&mut self) {
        self.0.branching.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Takes what the keeper says until it or the cell is gone.
async fn listen(
    keeper: Arc<UnixDatagram>,
    cell: Weak<SessionCell>,
    answer: mpsc::UnboundedSender<Answer>,
) {
    loop {
        let report = keeper.async_io(Interest::READABLE, || receive_answer(&*keeper)).await;
        match report {
            // Whoever is at the guest hears of it from the guest itself.
            Ok(Some((KeeperReport::Ended { .. }, _))) => {}
            Ok(Some(report)) => drop(answer.send(report)),
            Ok(None) | Err(_) => {
                let Some(cell) = cell.upgrade() else { return };
                // With its keeper gone, everything in the cell is.
                cell.body.kill();
                cell.look_after_members();
                return;
            }
        }
    }
}

/// Waits for a guest's end, whoever brought it about, and puts its affairs in order. It is known by
/// what its keeper calls it, and by its number here. Until it has ended it is nobody's stray, and what
/// it still holds is not counted as another's.
pub(crate) async fn watch_over(
    guest: Arc<AsyncFd<OwnedFd>>,
    (name, number): (u64, u32),
    cell: Weak<SessionCell>,
) {
    if guest.readable().await.is_err() {
        return;
    }
    let Some(cell) = cell.upgrade() else { return };
    cell.disown(number);
    cell.look_after_members();
    cell.keeper().await.forget(name).await;
}

fn one(fds: Vec<OwnedFd>) -> io::Result<OwnedFd> {
    fds.into_iter().next().ok_or(io::ErrorKind::InvalidData.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
