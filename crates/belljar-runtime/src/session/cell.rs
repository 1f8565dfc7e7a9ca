//! The cell of a session and of the sessions forked from it.
//!
//! It lives as long as any of them. One task listens to its keeper and one to each guest, so that an end is
//! noticed between calls too, and the files of dead guests are dropped.

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
    SessionState,
    idle_watch::{end_strays, watch_cell},
    network::{CellNetwork, ClosedNetwork},
};
use crate::{cell::CellBody, network::RunReach, scan::WithholdGuard};

/// How long a keeper may take to answer; far longer than a working keeper needs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A cell with one or more guests.
#[derive(Debug)]
pub(crate) struct SessionCell {
    body: CellBody,
    keeper: Arc<UnixDatagram>,
    /// The hosts that its sessions may reach.
    reach: Arc<RunReach>,
    /// The proxy, if their programs have sockets.
    network: Option<Arc<CellNetwork>>,
    /// Locked by the caller that asks the keeper, so that there is one request at a time.
    answers: tokio::sync::Mutex<KeeperAnswers>,
    members: Mutex<Vec<Weak<SessionState>>>,
    /// Pids, in the host's pid namespace, of guests that sessions own.
    guests: Mutex<BTreeSet<u32>>,
    running: AtomicUsize,
    branching: AtomicUsize,
    runs_begun: AtomicUsize,
    /// Why this host has ended the whole cell, if it has.
    end_reason: OnceLock<RunError>,
    /// Withholds what its guests have made in granted trees, once it is dropped; after the body.
    withhold: Option<WithholdGuard>,
}

/// The answers of the keeper, one for each request.
#[derive(Debug)]
struct KeeperAnswers {
    received: mpsc::UnboundedReceiver<KeeperAnswer>,
    /// Whether the answer to the last request is still to come, because its caller went away.
    is_answer_due: bool,
}

type KeeperAnswer = (KeeperReport, Vec<OwnedFd>);

/// The exclusive right to send requests to the keeper.
#[derive(Debug)]
pub(crate) struct KeeperChannel<'a> {
    cell: &'a SessionCell,
    answers: tokio::sync::MutexGuard<'a, KeeperAnswers>,
}

/// New trees over the frozen files of a guest, for that guest and its clone.
#[derive(Debug)]
pub(crate) struct BranchTrees {
    /// The keeper's number for the clone.
    pub(crate) number: u64,
    pub(crate) child: OwnedFd,
    pub(crate) parent: OwnedFd,
}

impl SessionCell {
    /// Starts to listen to the keeper of a new cell.
    pub(crate) fn new(
        body: CellBody,
        (reach, network): (Arc<RunReach>, Option<Arc<CellNetwork>>),
        withhold: Option<WithholdGuard>,
    ) -> Arc<Self> {
        let keeper = body.keeper_socket();
        let (answer, answers) = mpsc::unbounded_channel();
        let cell = Arc::new(Self {
            body,
            keeper: keeper.clone(),
            reach,
            network,
            answers: tokio::sync::Mutex::new(KeeperAnswers {
                received: answers,
                is_answer_due: false,
            }),
            members: Mutex::default(),
            guests: Mutex::default(),
            running: AtomicUsize::new(0),
            branching: AtomicUsize::new(0),
            runs_begun: AtomicUsize::new(0),
            end_reason: OnceLock::new(),
            withhold,
        });
        tokio::spawn(listen(keeper, Arc::downgrade(&cell), answer));
        tokio::spawn(watch_cell(Arc::downgrade(&cell)));
        cell
    }

    /// Adds a session that lives in this cell.
    pub(crate) fn join(&self, member: &Arc<SessionState>) {
        let mut members = lock(&self.members);
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(member));
    }

    /// Ends the cell if no session lives in it any more. The channel closes when the trees it wrote to are
    /// checked.
    pub(crate) fn end_if_unused(&self) -> Option<watch::Receiver<()>> {
        let members = lock(&self.members);
        let is_live = |member: Arc<SessionState>| member.ending.borrow().is_none();
        if members.iter().filter_map(Weak::upgrade).any(is_live) {
            return None;
        }
        self.body.kill();
        self.withhold.as_ref().map(WithholdGuard::done)
    }

    /// Its keeper and its processes.
    pub(crate) fn body(&self) -> &CellBody {
        &self.body
    }

    /// The hosts that its sessions may reach.
    pub(super) fn reach(&self) -> &RunReach {
        &self.reach
    }

    /// Its network, if it has one.
    pub(super) fn network(&self) -> Option<&Arc<CellNetwork>> {
        self.network.as_ref()
    }

    /// Resets all connections of its network, and keeps it without any until this is dropped.
    pub(super) async fn close_network(&self) -> Option<ClosedNetwork> {
        match &self.network {
            Some(network) => Some(network.close().await),
            None => None,
        }
    }

    /// Ends all processes of the cell, for a reason that its sessions report.
    pub(super) fn end(&self, why: &RunError) {
        tracing::warn!(why = why.message, "the cell of a session was ended");
        // The first reason counts.
        let _ = self.end_reason.set(why.clone());
        self.body.kill();
    }

    /// Why this host has ended the cell, if it has.
    pub(super) fn end_reason(&self) -> Option<RunError> {
        self.end_reason.get().cloned()
    }

    /// Whether its guests are script engines or programs of the host.
    pub(crate) fn guests(&self) -> Guests {
        self.body.processes().guests
    }

    /// Waits for the right to send requests to the keeper.
    pub(crate) async fn keeper(&self) -> KeeperChannel<'_> {
        KeeperChannel { cell: self, answers: self.answers.lock().await }
    }

    /// A handle on the `/work` of a guest.
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

    /// Counts a run as going on, until the guard is dropped.
    pub(crate) fn begin_run(self: &Arc<Self>) -> RunGuard {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.runs_begun.fetch_add(1, Ordering::SeqCst);
        RunGuard(self.clone())
    }

    /// Notes that a guest is being branched: until the guard is dropped, the cell may have a guest that no
    /// session owns yet.
    pub(super) fn begin_branching(self: &Arc<Self>) -> BranchingGuard {
        self.branching.fetch_add(1, Ordering::SeqCst);
        BranchingGuard(self.clone())
    }

    /// How many runs the cell has had.
    pub(super) fn runs_begun(&self) -> usize {
        self.runs_begun.load(Ordering::SeqCst)
    }

    /// Whether a run or a branch is going on.
    pub(super) fn is_busy(&self) -> bool {
        self.running.load(Ordering::SeqCst) > 0 || self.is_branching()
    }

    /// Whether a guest is being branched.
    pub(super) fn is_branching(&self) -> bool {
        self.branching.load(Ordering::SeqCst) > 0
    }

    /// Notes that a session owns this guest.
    pub(super) fn adopt(&self, guest: u32) {
        lock(&self.guests).insert(guest);
    }

    /// Notes that no session owns this guest any more.
    pub(super) fn disown(&self, guest: u32) {
        lock(&self.guests).remove(&guest);
    }

    /// Whether a session owns this guest.
    pub(super) fn owns(&self, guest: u32) -> bool {
        lock(&self.guests).contains(&guest)
    }

    /// The most guests there can be: those that sessions own, and those that are being made.
    pub(super) fn guests_at_most(&self) -> usize {
        // In this order: a guest that is no longer being made is owned.
        let branching = self.branching.load(Ordering::SeqCst);
        lock(&self.guests).len() + branching
    }

    /// Makes every session of this cell check its guests.
    fn check_members(&self) {
        for member in lock(&self.members).iter().filter_map(Weak::upgrade) {
            tokio::spawn(async move { member.check_guests().await });
        }
    }
}

impl KeeperChannel<'_> {
    /// A pidfd of the guest that the cell was made with.
    pub(crate) async fn first_guest(&mut self) -> io::Result<OwnedFd> {
        match self.ask(|keeper| request_first_guest(keeper)).await? {
            (KeeperReport::FirstGuest, fds) => one(fds),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Freezes the files of a guest, and makes a tree for it and one for its clone. The inner error says why
    /// this is not possible now; then nothing has changed. Send no other request until the guest continues in
    /// its new tree.
    pub(crate) async fn freeze(&mut self, of: u64) -> io::Result<Result<BranchTrees, String>> {
        match self.ask(|keeper| request_branch(keeper, of)).await? {
            (KeeperReport::Branched { child: number }, fds) => {
                let [child, parent] =
                    <[OwnedFd; 2]>::try_from(fds).map_err(|_| io::ErrorKind::InvalidData)?;
                Ok(Ok(BranchTrees { number, child, parent }))
            }
            (KeeperReport::NotBranched { message }, _) => Ok(Err(message)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Drops the files of a dead guest.
    pub(crate) async fn drop_files(&mut self, number: u64) {
        let dropped = self.ask(|keeper| request_drop(keeper, number)).await;
        if let Err(error) = dropped {
            tracing::debug!(%error, "could not drop the files of a branch; they stay until its cell ends");
        }
    }

    async fn ask(
        &mut self,
        request: impl FnOnce(&UnixDatagram) -> io::Result<()>,
    ) -> io::Result<KeeperAnswer> {
        if self.answers.is_answer_due {
            self.answer().await?;
        }
        request(&self.cell.keeper)?;
        self.answers.is_answer_due = true;
        self.answer().await
    }

    async fn answer(&mut self) -> io::Result<KeeperAnswer> {
        match timeout(ANSWER_TIMEOUT, self.answers.received.recv()).await {
            Ok(answer) => {
                self.answers.is_answer_due = false;
                answer.ok_or(io::ErrorKind::UnexpectedEof.into())
            }
            Err(elapsed) => {
                // A late answer would be taken for the answer to the next request.
                self.cell.body.kill();
                Err(elapsed.into())
            }
        }
    }
}

/// Counts a run as going on, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunGuard(Arc<SessionCell>);

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl RunGuard {
    /// Ends the run and the processes that it left behind. Without this they end at the next check of the
    /// cell.
    pub(crate) fn end_with_strays(self) {
        let cell = self.0.clone();
        drop(self);
        if let Err(why) = end_strays(&cell) {
            cell.end(&why);
        }
    }
}

/// Notes that a guest is being branched, until it is dropped.
#[derive(Debug)]
pub(super) struct BranchingGuard(Arc<SessionCell>);

impl Drop for BranchingGuard {
    fn drop(&mut self) {
        self.0.branching.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Receives what the keeper sends until the keeper or the cell is gone.
async fn listen(
    keeper: Arc<UnixDatagram>,
    cell: Weak<SessionCell>,
    answer: mpsc::UnboundedSender<KeeperAnswer>,
) {
    loop {
        let report = keeper.async_io(Interest::READABLE, || receive_answer(&*keeper)).await;
        match report {
            // The call that uses the guest notices from the guest's stream.
            Ok(Some((KeeperReport::Ended { .. }, _))) => {}
            Ok(Some(report)) => drop(answer.send(report)),
            Ok(None) | Err(_) => {
                let Some(cell) = cell.upgrade() else { return };
                // Without its keeper, no process of the cell is left.
                cell.body.kill();
                cell.check_members();
                return;
            }
        }
    }
}

/// Waits for the end of a guest, whatever its cause, and cleans up. `number` is the keeper's number for it,
/// `pid` its pid. Until then the guest counts as owned: it is not a stray, and its memory counts for no other
/// guest.
pub(crate) async fn watch_guest(
    guest: Arc<AsyncFd<OwnedFd>>,
    (number, pid): (u64, u32),
    cell: Weak<SessionCell>,
) {
    if guest.readable().await.is_err() {
        return;
    }
    let Some(cell) = cell.upgrade() else { return };
    cell.disown(pid);
    cell.check_members();
    cell.keeper().await.drop_files(number).await;
}

fn one(fds: Vec<OwnedFd>) -> io::Result<OwnedFd> {
    fds.into_iter().next().ok_or(io::ErrorKind::InvalidData.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
