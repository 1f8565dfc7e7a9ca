//! The network of a session's cell: one proxy for its whole life, which serves while a run is under way.
//!
//! Between runs, and while a guest is branched, every connection of the cell is reset: two guests never share
//! one. All guests of a cell share its listener, so the host cannot tell which of them connects. What is
//! decided and recorded names the oldest run under way, and says so if there are others.

use std::{
    collections::HashMap,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use belljar_contract::{Limits, RunError, RunId};
use belljar_net::{
    ConnectionAnswer, ConnectionApprover, ConnectionEvent, ConnectionLog, ConnectionOutcome,
    ConnectionQuestion, LogFailure, NetLimits, RunConnections, refuse_all,
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::{
    cell::CellSockets,
    network::{
        RunLog, RunReach, cell_listener, net_limits, not_started, proxy_context, queues_over,
    },
};

/// The network of one cell. Dropping it ends all connections and closes the listener.
#[derive(Debug)]
pub(crate) struct CellNetwork {
    gate: watch::Sender<GateState>,
    /// The state of the gate that is in force.
    in_force: watch::Receiver<GateState>,
    runs: Arc<CellRuns>,
    serving: JoinHandle<()>,
    /// Watches the memory of the connections.
    queues: JoinHandle<()>,
}

/// The counts that decide whether the proxy serves.
#[derive(Debug, Default, Clone, Copy)]
struct GateState {
    runs: usize,
    branchings: usize,
    /// Counts the moments at which all connections had to be reset.
    resets: u64,
    /// Counts all changes, so that a caller can wait until its own is in force.
    changes: u64,
}

/// A run that may use the network of its cell, until this is dropped.
#[derive(Debug)]
pub(crate) struct NetworkTurn {
    network: Arc<CellNetwork>,
    run: Arc<NetworkRun>,
    is_over: bool,
}

/// Keeps the network of a cell closed, until it is dropped.
#[derive(Debug)]
pub(crate) struct ClosedNetwork(Arc<CellNetwork>);

/// The runs of a cell that are under way.
#[derive(Debug, Default)]
struct CellRuns {
    /// Oldest first.
    under_way: Mutex<Vec<Arc<NetworkRun>>>,
    /// The runs whose records have open connections, by the number of the connection.
    opened: Mutex<HashMap<u64, Arc<NetworkRun>>>,
}

/// The parts of one run that the network needs.
#[derive(Debug)]
struct NetworkRun {
    id: RunId,
    limits: Limits,
    log: Arc<RunLog>,
    approver: Arc<dyn ConnectionApprover>,
}

impl GateState {
    fn is_open(self) -> bool {
        self.runs > 0 && self.branchings == 0
    }
}

impl CellNetwork {
    /// Starts the proxy of a cell. It serves nothing before the first run.
    pub(crate) fn start(
        CellSockets { listener, list }: CellSockets,
        reach: Arc<RunReach>,
    ) -> Result<Arc<Self>, RunError> {
        let listener = cell_listener(listener).map_err(|error| not_started(&error))?;
        let (gate, state) = watch::channel(GateState::default());
        let (done, in_force) = watch::channel(GateState::default());
        let runs = Arc::new(CellRuns::default());
        let serving = tokio::spawn({
            let runs = runs.clone();
            async move {
                if let Err(error) = serve_cell(&listener, &reach, &runs, state, done).await {
                    tracing::error!(%error, "the proxy of a session has ended");
                }
            }
        });
        let queues = tokio::spawn({
            let runs = runs.clone();
            async move {
                loop {
                    let error = queues_over(&list, || runs.memory()).await;
                    runs.under_way().iter().for_each(|run| run.log.exceed(error.clone()));
                }
            }
        });
        Ok(Arc::new(Self { gate, in_force, runs, serving, queues }))
    }

    /// Lets a run use the network, and waits until it can: no guest is branched then.
    pub(crate) async fn begin_run(
        self: &Arc<Self>,
        id: RunId,
        limits: Limits,
        log: Arc<RunLog>,
        approver: Arc<dyn ConnectionApprover>,
    ) -> NetworkTurn {
        let run = Arc::new(NetworkRun { id, limits, log, approver });
        self.runs.under_way().push(run.clone());
        let change = self.change(|gate| gate.runs += 1);
        let turn = NetworkTurn { network: self.clone(), run, is_over: false };
        self.wait_for(|state| state.changes >= change && state.is_open()).await;
        turn
    }

    /// Resets all connections of the cell, and keeps it without any.
    pub(crate) async fn close(self: &Arc<Self>) -> ClosedNetwork {
        let closed = ClosedNetwork(self.clone());
        let change = self.change(|gate| {
            gate.branchings += 1;
            gate.resets += 1;
        });
        self.wait_for(|state| state.changes >= change).await;
        closed
    }

    fn change(&self, how: impl FnOnce(&mut GateState)) -> u64 {
        let mut number = 0;
        self.gate.send_modify(|gate| {
            how(gate);
            gate.changes += 1;
            number = gate.changes;
        });
        number
    }

    /// Waits until such a state is in force, or the proxy has ended.
    async fn wait_for(&self, is_reached: impl FnMut(&GateState) -> bool) {
        let _ = self.in_force.clone().wait_for(is_reached).await;
    }

    fn end_run(&self, run: &Arc<NetworkRun>) -> u64 {
        self.runs.under_way().retain(|other| !Arc::ptr_eq(other, run));
        self.change(|gate| {
            gate.runs -= 1;
            gate.resets += u64::from(gate.runs == 0);
        })
    }
}

impl Drop for CellNetwork {
    fn drop(&mut self) {
        self.serving.abort();
        self.queues.abort();
    }
}

impl NetworkTurn {
    /// Ends the network of the run. If no other run of the cell is under way, all connections are reset, and
    /// recorded when this returns.
    pub(crate) async fn end(mut self) {
        self.is_over = true;
        let change = self.network.end_run(&self.run);
        self.network.wait_for(|state| state.changes >= change).await;
    }
}

impl Drop for NetworkTurn {
    fn drop(&mut self) {
        if !self.is_over {
            self.network.end_run(&self.run);
        }
    }
}

impl Drop for ClosedNetwork {
    fn drop(&mut self) {
        self.0.change(|gate| gate.branchings -= 1);
    }
}

/// Serves a cell while its gate is open, and resets its connections while it is not.
async fn serve_cell(
    listener: &TcpListener,
    reach: &RunReach,
    runs: &Arc<CellRuns>,
    mut gate: watch::Receiver<GateState>,
    in_force: watch::Sender<GateState>,
) -> io::Result<()> {
    // Kept while guests are branched: what runs may move counts for runs, not for what is between branches.
    let mut proxy: Option<RunConnections> = None;
    while gate.has_changed().is_ok() {
        let state = *gate.borrow_and_update();
        if state.runs == 0 {
            proxy = None;
            // All are closed; what could not be recorded in time is not waited for.
            runs.opened().clear();
        }
        in_force.send_replace(state);
        let changed = changed(&mut gate, &in_force, state);
        if state.is_open() {
            let new = || {
                RunConnections::new(proxy_context(reach, runs.limits(), runs.clone(), runs.clone()))
            };
            proxy.get_or_insert_with(new).serve(listener, changed).await?;
        } else {
            refuse_all(listener, changed).await?;
        }
    }
    Ok(())
}

/// Waits for a change that the proxy has to follow. Other changes are in force at once.
async fn changed(
    gate: &mut watch::Receiver<GateState>,
    in_force: &watch::Sender<GateState>,
    before: GateState,
) {
    let until = gate.wait_for(|gate| {
        let is_other = (gate.is_open(), gate.resets) != (before.is_open(), before.resets);
        if !is_other {
            in_force.send_replace(*gate);
        }
        is_other
    });
    // An error is the end of the cell.
    let _ = until.await;
}

impl CellRuns {
    fn under_way(&self) -> MutexGuard<'_, Vec<Arc<NetworkRun>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> MutexGuard<'_, HashMap<u64, Arc<NetworkRun>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bounds of the oldest run: runs that overlap share them.
    fn limits(&self) -> NetLimits {
        self.under_way().first().map_or_else(NetLimits::default, |run| net_limits(&run.limits))
    }

    /// How much memory connections may hold: that of the run with the lowest limit. `None` between runs,
    /// when there is no connection.
    fn memory(&self) -> Option<u64> {
        self.under_way().iter().map(|run| run.limits.memory).min()
    }

    /// Writes a report to the record of one run.
    async fn write(&self, event: &ConnectionEvent) -> Result<(), LogFailure> {
        let under_way = self.under_way().clone();
        let known = match event.outcome {
            ConnectionOutcome::Allowed => None,
            ConnectionOutcome::Refused(_)
            | ConnectionOutcome::Failed { .. }
            | ConnectionOutcome::Closed { .. } => self.opened().remove(&event.connection),
        };
        let Some(run) = known.or_else(|| under_way.first().cloned()) else {
            return Err(LogFailure("no run is under way".to_owned()));
        };
        // Any of them may have connected, so each is told.
        under_way.iter().for_each(|run| run.log.tell(event));
        let mut event = event.clone();
        event.note = shared_note(&run, &under_way);
        run.log.pass_on(&event).await?;
        if event.outcome == ConnectionOutcome::Allowed {
            self.opened().insert(event.connection, run);
        }
        Ok(())
    }
}

/// The note of a record if other runs may have made the connection.
fn shared_note(run: &NetworkRun, under_way: &[Arc<NetworkRun>]) -> Option<String> {
    let others: Vec<&str> = under_way
        .iter()
        .filter(|other| other.id != run.id)
        .map(|other| other.id.as_str())
        .collect();
    (!others.is_empty()).then(|| format!("or of {}, in the same cell", others.join(", ")))
}

impl ConnectionLog for CellRuns {
    fn record<'a>(
        &'a self,
        event: &'a ConnectionEvent,
    ) -> Pin<Box<dyn Future<Output = Result<(), LogFailure>> + Send + 'a>> {
        Box::pin(self.write(event))
    }
}

impl ConnectionApprover for CellRuns {
    fn ask<'a>(
        &'a self,
        question: &'a ConnectionQuestion,
    ) -> Pin<Box<dyn Future<Output = ConnectionAnswer> + Send + 'a>> {
        Box::pin(async move {
            let run = self.under_way().first().cloned();
            match run {
                Some(run) => run.approver.ask(question).await,
                None => ConnectionAnswer::Unanswered,
            }
        })
    }
}

#[cfg(test)]
mod tests;
