//! Parked cells: confined, single-use, waiting for code.
//!
//! A request takes a parked cell, and the pool refills itself later, off the request path. If no cell is
//! parked, the request orders one and takes the first that is ready. A zygote that is dead or stuck is
//! replaced, and its parked cells with it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use belljar_contract::{ErrorCode, MemoryBound, RunError};
use belljar_jail::{CellGrants, CellKind, CellLimits, ZygotePlan, cgroup::Delegation};
use tokio::sync::Notify;

use crate::{
    LaunchError,
    cell::Cell,
    host::launch_failure,
    zygote::{DetachError, DetachedGrants, Zygote, ZygoteProgram, detach_trees},
};

/// The parked cells of one kind of zygote, and that zygote.
#[derive(Debug)]
pub(crate) struct Pool {
    program: ZygoteProgram,
    plan: ZygotePlan,
    size: usize,
    limits: CellLimits,
    cgroups: Option<Delegation>,
    next_cell: AtomicU64,
    /// Locked while a zygote is being replaced, so that only one request replaces it.
    zygote: tokio::sync::Mutex<Arc<Zygote>>,
    parked: Mutex<ParkedCells>,
    /// Notified of each cell that is parked.
    is_parked: Notify,
    /// Set by [`shutdown`](Self::shutdown), so that a refill under way starts no other zygote.
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct ParkedCells {
    cells: VecDeque<Cell>,
    /// Cells that are being made, to be parked.
    under_way: usize,
}

impl Pool {
    /// Starts a zygote. The pool is empty until [`refill`](Self::refill).
    pub(crate) async fn start(
        program: ZygoteProgram,
        plan: ZygotePlan,
        size: usize,
        limits: CellLimits,
    ) -> Result<Self, LaunchError> {
        let cgroups = Delegation::of_this_process()
            .inspect_err(|reason| tracing::debug!(reason, "cells get no control group"))
            .ok();
        let zygote = Arc::new(Zygote::start(&program, &plan).await?);
        let (zygote, parked) = (tokio::sync::Mutex::new(zygote), Mutex::default());
        let (next_cell, is_parked) = (AtomicU64::new(0), Notify::new());
        let is_closed = AtomicBool::new(false);
        Ok(Self {
            program,
            plan,
            size,
            limits,
            cgroups,
            next_cell,
            zygote,
            parked,
            is_parked,
            is_closed,
        })
    }

    /// A confined cell: a parked one if there is one, otherwise the first to be ready of the one ordered here
    /// and those about to be parked.
    pub(crate) async fn take(self: &Arc<Self>) -> Result<Cell, LaunchError> {
        if let Some(cell) = self.pop_alive() {
            return Ok(cell);
        }
        let pool = self.clone();
        let mut own = Box::pin(async move {
            let made = pool.make().await;
            (made, pool)
        });
        let parked = async {
            loop {
                self.is_parked.notified().await;
                if let Some(cell) = self.pop_alive() {
                    return cell;
                }
            }
        };
        tokio::select! {
            (made, _) = &mut own => made,
            cell = parked => {
                self.parked().under_way += 1;
                tokio::spawn(async move {
                    let (made, pool) = own.await;
                    pool.park(made);
                });
                Ok(cell)
            }
        }
    }

    /// Makes and parks cells until the pool is full.
    pub(crate) async fn refill(&self) {
        while self.begin_parking() {
            if !self.park(self.make().await) {
                return;
            }
        }
    }

    /// Parks a cell that was under way; returns whether it was made.
    fn park(&self, made: Result<Cell, LaunchError>) -> bool {
        let mut parked = self.parked();
        parked.under_way -= 1;
        match made {
            Ok(cell) => {
                // More cells may have been under way than the pool holds.
                if parked.cells.len() < self.size {
                    parked.cells.push_back(cell);
                    self.is_parked.notify_one();
                }
                true
            }
            Err(error) => {
                tracing::warn!(%error, "could not park a cell");
                false
            }
        }
    }

    /// Ends every parked cell and the zygote, and waits until they are gone.
    pub(crate) async fn shutdown(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.parked().cells.clear();
        self.zygote.lock().await.shutdown().await;
        if let Some(cgroups) = &self.cgroups {
            cgroups.remove_emptied();
        }
    }

    /// The confinement that every cell of this pool gets.
    pub(crate) fn plan(&self) -> &ZygotePlan {
        &self.plan
    }

    /// The mechanism that bounds a cell's memory.
    pub(crate) fn memory_bound(&self) -> MemoryBound {
        if self.cgroups.is_some() { MemoryBound::Cgroup } else { MemoryBound::Rlimit }
    }

    /// A fresh cell with grants, or for a session.
    pub(crate) async fn make_granted(
        &self,
        kind: CellKind,
        grants: CellGrants,
        limits: CellLimits,
    ) -> Result<Cell, RunError> {
        let zygote = self.live_zygote().await.map_err(|error| launch_failure(&error))?;
        let made = self.make_granted_in(&zygote, kind, grants.clone(), limits).await;
        match made {
            // No code has run yet, so another zygote may try.
            Err(_) if !zygote.is_alive() => {
                let zygote = self.live_zygote().await.map_err(|error| launch_failure(&error))?;
                self.make_granted_in(&zygote, kind, grants, limits).await
            }
            made => made,
        }
    }

    async fn make_granted_in(
        &self,
        zygote: &Arc<Zygote>,
        kind: CellKind,
        grants: CellGrants,
        limits: CellLimits,
    ) -> Result<Cell, RunError> {
        let trees = if grants.trees.is_empty() {
            Vec::new()
        } else {
            let detached = detach_trees(&self.program, grants.trees.clone(), zygote.ids()).await;
            detached.map_err(|error| not_granted(&error))?
        };
        let granted = DetachedGrants { grants, trees };
        let limits = match kind {
            CellKind::Single => CellLimits { memory_bytes: self.limits.memory_bytes, ..limits },
            // No run of a session lowers them.
            CellKind::Session => limits,
        };
        let cell = self.make_in(zygote, kind, limits, granted).await;
        cell.map_err(|error| launch_failure(&error))
    }

    async fn make(&self) -> Result<Cell, LaunchError> {
        let zygote = self.live_zygote().await?;
        let make =
            |zygote| self.make_in(zygote, CellKind::Single, self.limits, DetachedGrants::default());
        match make(&zygote).await {
            // No code has run yet, so another zygote may try.
            Err(_) if !zygote.is_alive() => make(&self.live_zygote().await?).await,
            made => made,
        }
    }

    async fn make_in(
        &self,
        zygote: &Arc<Zygote>,
        kind: CellKind,
        limits: CellLimits,
        granted: DetachedGrants,
    ) -> Result<Cell, LaunchError> {
        let mut cell = zygote.make_cell(kind, limits, granted).await?;
        if let Some(cgroups) = &self.cgroups {
            let number = self.next_cell.fetch_add(1, Ordering::Relaxed);
            cell.body.join_cgroup(cgroups, number)?;
        }
        Ok(cell)
    }

    async fn live_zygote(&self) -> Result<Arc<Zygote>, LaunchError> {
        let mut zygote = self.zygote.lock().await;
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(LaunchError::NoHandshake);
        }
        if !zygote.is_alive() {
            tracing::warn!("the zygote died or does not answer; starting another");
            *zygote = Arc::new(Zygote::start(&self.program, &self.plan).await?);
        }
        Ok(zygote.clone())
    }

    fn pop_alive(&self) -> Option<Cell> {
        std::iter::from_fn(|| self.pop()).find(Cell::is_usable)
    }

    fn begin_parking(&self) -> bool {
        let mut parked = self.parked();
        let wanted = parked.cells.len() + parked.under_way < self.size;
        parked.under_way += usize::from(wanted);
        wanted
    }

    /// Takes the oldest cell, which has had time to rehearse. When most cells are taken, it takes the newest:
    /// under such load a cell that is used at once skips its rehearsal, and the older ones stay ready.
    fn pop(&self) -> Option<Cell> {
        let cells = &mut self.parked().cells;
        if cells.len() * 2 > self.size { cells.pop_front() } else { cells.pop_back() }
    }

    fn parked(&self) -> MutexGuard<'_, ParkedCells> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error for a grant that this host cannot give.
fn not_granted(error: &DetachError) -> RunError {
    let hint = "Belljar can only grant what its own user may reach";
    match error {
        DetachError::Tree { .. } => {
            RunError::new(ErrorCode::PermissionFile, error.to_string()).with_hint(hint)
        }
        DetachError::Io(_) => RunError::new(ErrorCode::SandboxFailed, error.to_string()),
    }
}
