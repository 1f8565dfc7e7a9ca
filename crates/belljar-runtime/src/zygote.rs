//! The host's handle on a zygote: starting it, ordering cells, noticing its end.

use std::{
    collections::HashMap,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use belljar_jail::{
    CellGrants, CellKind, CellLimits, GrantedTree, Guests, NetworkAccess, ZygotePlan, control,
    control::{Ids, ZygoteOrder, ZygoteReply},
};
use thiserror::Error;
use tokio::{
    io::Interest,
    net::UnixDatagram,
    sync::{oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use crate::{LaunchError, cell::Cell, certificates};

/// How long a zygote may take to be confined and warm; far longer than a working machine needs.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// How long a cell may take to be ready; far longer than a working machine needs.
const CELL_MADE: Duration = Duration::from_secs(10);
/// A zygote that takes longer to answer an order is stuck.
const ANSWERED: Duration = Duration::from_secs(5);

/// The program that becomes a zygote.
#[derive(Debug, Clone)]
pub struct ZygoteProgram {
    /// The file to start; the host starts it without environment, in `/`.
    pub path: PathBuf,
    /// The arguments that make it a zygote.
    pub arguments: Vec<String>,
}

/// The grants of a cell, with its trees detached from the host's mounts.
#[derive(Debug, Default)]
pub(crate) struct DetachedGrants {
    pub(crate) grants: CellGrants,
    pub(crate) trees: Vec<OwnedFd>,
}

/// Detaches trees of the host for cells with these ids, in a process started for that alone.
pub(crate) async fn detach_trees(
    program: &ZygoteProgram,
    trees: Vec<GrantedTree>,
    cells: Ids,
) -> Result<Vec<OwnedFd>, DetachError> {
    let (ours, theirs) = control::pair()?;
    let control = packet_socket(ours)?;
    let reaper = tokio::spawn(reap(spawn(program, theirs)?));
    let exchange = async {
        send(&control, &ZygoteOrder::Detach { trees, cells }, &[]).await?;
        receive(&control).await
    };
    let answer = timeout(CELL_MADE, exchange).await;
    drop(control);
    let _ = reaper.await;
    match answer.map_err(io::Error::from)?? {
        Some((ZygoteReply::Trees, fds)) => Ok(fds),
        Some((ZygoteReply::NoTree { path, message }, _)) => {
            Err(DetachError::Tree { path, message })
        }
        _ => Err(DetachError::Io(io::ErrorKind::InvalidData.into())),
    }
}

/// Why trees could not be detached.
#[derive(Debug, Error)]
pub(crate) enum DetachError {
    #[error("{}: {message}", path.display())]
    Tree { path: PathBuf, message: String },
    #[error("could not reach the file system: {0}")]
    Io(#[from] io::Error),
}

/// A running zygote. Dropping it ends it and all its cells.
#[derive(Debug)]
pub(crate) struct Zygote {
    control: Arc<UnixDatagram>,
    orders: Arc<Mutex<PendingOrders>>,
    next_serial: AtomicU64,
    reader: Mutex<Option<JoinHandle<()>>>,
    gone: watch::Receiver<bool>,
    /// Set when it has left an order unanswered. It gets no more orders; its cells go on.
    is_stuck: AtomicBool,
    ids: Ids,
    guests: Guests,
    network: NetworkAccess,
}

/// Orders without an answer, by serial number; `None` once the zygote is gone.
type PendingOrders = Option<HashMap<u64, oneshot::Sender<Result<Vec<OwnedFd>, String>>>>;

impl Zygote {
    /// Starts a zygote and waits until it is confined and warm.
    pub(crate) async fn start(
        program: &ZygoteProgram,
        plan: &ZygotePlan,
    ) -> Result<Self, LaunchError> {
        let (ours, theirs) = control::pair().map_err(LaunchError::spawn)?;
        let control = Arc::new(packet_socket(ours).map_err(LaunchError::spawn)?);
        // A task of its own, so that the process is reaped even if this future is dropped.
        let reaper = tokio::spawn(reap(spawn(program, theirs).map_err(LaunchError::spawn)?));
        let ids = match handshake(&control, plan).await {
            Ok(ids) => ids,
            Err(error) => {
                // The end of the stream ends every process there; only the reaping is left.
                drop(control);
                let _ = reaper.await;
                return Err(error);
            }
        };
        let orders = Arc::new(Mutex::new(Some(HashMap::new())));
        let (set_gone, gone) = watch::channel(false);
        let reader = tokio::spawn({
            let (control, orders) = (control.clone(), orders.clone());
            async move {
                read_answers(&control, &orders).await;
                *lock(&orders) = None;
                let _ = reaper.await;
                tracing::debug!("a zygote is gone");
                set_gone.send_replace(true);
            }
        });
        let reader = Mutex::new(Some(reader));
        Ok(Self {
            control,
            orders,
            next_serial: AtomicU64::new(0),
            reader,
            gone,
            is_stuck: AtomicBool::new(false),
            ids,
            guests: plan.guests(),
            network: plan.network(),
        })
    }

    /// The user and group that its cells run as.
    pub(crate) fn ids(&self) -> Ids {
        self.ids
    }

    /// Whether the guests of its cells are script engines or programs of the host.
    pub(crate) fn guests(&self) -> Guests {
        self.guests
    }

    /// The network of its cells.
    pub(crate) fn network(&self) -> NetworkAccess {
        self.network
    }

    /// Whether it still takes orders.
    pub(crate) fn is_alive(&self) -> bool {
        lock(&self.orders).is_some() && !self.is_stuck.load(Ordering::Relaxed)
    }

    /// Waits until the process of the zygote is reaped.
    pub(crate) async fn gone(&self) {
        let _ = self.gone.clone().wait_for(|gone| *gone).await;
    }

    /// Makes a cell and waits until every layer of its plan is in force.
    pub(crate) async fn make_cell(
        self: &Arc<Self>,
        kind: CellKind,
        limits: CellLimits,
        granted: DetachedGrants,
    ) -> Result<Cell, LaunchError> {
        let made = async {
            let fds = self.order_cell(kind, limits, granted).await?;
            Cell::take_over(fds, limits, self.clone()).await
        };
        let too_slow = |_| LaunchError::TooSlow { seconds: CELL_MADE.as_secs() };
        timeout(CELL_MADE, made).await.map_err(too_slow)?
    }

    async fn order_cell(
        &self,
        kind: CellKind,
        limits: CellLimits,
        granted: DetachedGrants,
    ) -> Result<Vec<OwnedFd>, LaunchError> {
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let Some(()) = lock(&self.orders).as_mut().map(|orders| {
            orders.insert(serial, sender);
        }) else {
            return Err(LaunchError::NoHandshake);
        };
        let DetachedGrants { grants, trees } = granted;
        let order = ZygoteOrder::MakeCell { serial, limits, grants, kind };
        send(&self.control, &order, &trees).await.map_err(|_| LaunchError::NoHandshake)?;
        let Ok(answer) = timeout(ANSWERED, answer).await else {
            self.is_stuck.store(true, Ordering::Relaxed);
            return Err(LaunchError::TooSlow { seconds: ANSWERED.as_secs() });
        };
        let fds = answer.map_err(|_| LaunchError::NoHandshake)?;
        let fds = fds.map_err(|message| LaunchError::refused("cell".to_owned(), message))?;
        if fds.is_empty() {
            // The zygote sent descriptors, and this process has no room for them.
            return Err(LaunchError::spawn(rustix::io::Errno::MFILE.into()));
        }
        Ok(fds)
    }

    /// Ends the zygote and waits until it and all its cells are gone.
    pub(crate) async fn shutdown(&self) {
        self.hang_up();
        let reader = lock(&self.reader).take();
        if let Some(reader) = reader {
            let _ = reader.await;
        }
    }

    /// Ends the stream, which the warden takes as the end of the host.
    fn hang_up(&self) {
        let _ = rustix::net::shutdown(&*self.control, rustix::net::Shutdown::Both);
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // The reader task notices the end, and reaps.
        self.hang_up();
    }
}

/// Sends the zygote its plan and waits until it is confined and warm.
async fn handshake(control: &UnixDatagram, plan: &ZygotePlan) -> Result<Ids, LaunchError> {
    let order = ZygoteOrder::Confine(plan.clone());
    let roots = match (plan.guests(), plan.network()) {
        (Guests::Programs, NetworkAccess::Proxy) => {
            let read = tokio::task::spawn_blocking(certificates::machine_roots).await;
            let read = read.map_err(io::Error::other).and_then(|roots| roots);
            Some(read.map_err(LaunchError::spawn)?)
        }
        (Guests::Script, _) | (_, NetworkAccess::None) => None,
    };
    send(control, &order, roots.as_slice()).await.map_err(|_| LaunchError::NoHandshake)?;
    let answer = timeout(HANDSHAKE, receive(control)).await;
    let answer = answer.map_err(|_| LaunchError::TooSlow { seconds: HANDSHAKE.as_secs() })?;
    match answer.map_err(|_| LaunchError::Protocol)? {
        None => Err(LaunchError::NoHandshake),
        Some((ZygoteReply::Ready { ids }, _)) => Ok(ids),
        Some((ZygoteReply::Refused { mechanism, message }, _)) => {
            Err(LaunchError::refused(mechanism.to_string(), message))
        }
        Some((ZygoteReply::NotWarm { message }, _)) => Err(LaunchError::NotWarm { message }),
        Some((
            ZygoteReply::Cell { .. }
            | ZygoteReply::NoCell { .. }
            | ZygoteReply::Trees
            | ZygoteReply::NoTree { .. },
            _,
        )) => Err(LaunchError::Protocol),
    }
}

async fn reap(mut child: Child) {
    let _ = tokio::task::spawn_blocking(move || child.wait()).await;
}

#[expect(clippy::disallowed_methods, reason = "the one place that starts zygotes")]
fn spawn(program: &ZygoteProgram, control: OwnedFd) -> io::Result<Child> {
    std::process::Command::new(&program.path)
        // A cell must not find the program's real path in its memory.
        .arg0("belljar")
        .args(&program.arguments)
        // Ctrl-C in a terminal goes to the host's process group; the host decides what it means.
        .process_group(0)
        .env_clear()
        // Large heaps, as from parsing a big tool result, ask for huge pages. That saves page faults, which
        // were a quarter of the time of such a run. Other C libraries, and kernels without huge pages, ignore
        // this.
        .env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
        .current_dir(Path::new("/"))
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// A packet socket, registered with the async runtime.
pub(crate) fn packet_socket(socket: OwnedFd) -> io::Result<UnixDatagram> {
    let socket = std::os::unix::net::UnixDatagram::from(socket);
    socket.set_nonblocking(true)?;
    UnixDatagram::from_std(socket)
}

async fn receive(control: &UnixDatagram) -> io::Result<Option<(ZygoteReply, Vec<OwnedFd>)>> {
    control.async_io(Interest::READABLE, || control::receive(control)).await
}

async fn send(control: &UnixDatagram, order: &ZygoteOrder, fds: &[OwnedFd]) -> io::Result<()> {
    let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    control.async_io(Interest::WRITABLE, || control::send(control, order, &fds)).await
}

/// Passes answers to the callers that wait for them, until the zygote is gone.
async fn read_answers(control: &UnixDatagram, orders: &Mutex<PendingOrders>) {
    while let Ok(Some((answer, fds))) = receive(control).await {
        let (serial, result) = match answer {
            ZygoteReply::Cell { serial } => (serial, Ok(fds)),
            ZygoteReply::NoCell { serial, message } => (serial, Err(message)),
            ZygoteReply::Ready { .. }
            | ZygoteReply::Refused { .. }
            | ZygoteReply::NotWarm { .. }
            | ZygoteReply::Trees
            | ZygoteReply::NoTree { .. } => break,
        };
        let caller = lock(orders).as_mut().and_then(|orders| orders.remove(&serial));
        // If the caller is gone, the descriptors close and the cell ends.
        caller.map(|caller| caller.send(result));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
