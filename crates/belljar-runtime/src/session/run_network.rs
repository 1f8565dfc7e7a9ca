//! The network of one run in a session: the requests that the host makes for its code, and its turn at the
//! proxy of the cell.

use std::sync::Arc;

use belljar_contract::Limits;
use belljar_net::{FetchClient, NoApprover, RunConnections};
use belljar_wire::GuestNetwork;

use super::{cell::SessionCell, network::NetworkTurn};
use crate::{
    network::{NetworkExcess, NetworkOptions, RunLog, net_limits, proxy_context},
    result_builder::ResultBuilder,
};

/// The network of a run in a session.
#[derive(Debug)]
pub(super) struct SessionRunNetwork {
    log: Arc<RunLog>,
    fetches: Arc<FetchClient>,
    turn: Option<NetworkTurn>,
}

impl SessionRunNetwork {
    /// Lets a run reach the hosts of its session; `None` if there are none. Fetches are counted by the run,
    /// and the connections of programs by the cell.
    pub(super) async fn begin(
        cell: &SessionCell,
        (limits, options): (Limits, NetworkOptions),
        result: &mut ResultBuilder,
    ) -> Option<Self> {
        if cell.reach().network == GuestNetwork::None {
            return None;
        }
        let (log, lines) = RunLog::new(options.log, options.audience);
        let log = Arc::new(log);
        let approver = options.approver.unwrap_or_else(|| Arc::new(NoApprover));
        result.transcript.take_lines_of(lines);
        let bounds = net_limits(&limits);
        let context = proxy_context(cell.reach(), bounds, log.clone(), approver.clone());
        let fetches = Arc::new(FetchClient::new(&RunConnections::new(context)));
        let turn = match cell.network() {
            Some(own) => {
                Some(own.begin_run(result.id().clone(), limits, log.clone(), approver).await)
            }
            None => None,
        };
        Some(Self { log, fetches, turn })
    }

    /// Says when the run has to end because of its network.
    pub(super) fn excess(&self) -> NetworkExcess {
        self.log.excess()
    }

    /// Makes the requests of the code.
    pub(super) fn fetches(&self) -> Arc<FetchClient> {
        self.fetches.clone()
    }

    /// Ends all fetches and the turn of the run, and waits until both are recorded.
    pub(super) async fn end(self) {
        self.fetches.close().await;
        if let Some(turn) = self.turn {
            turn.end().await;
        }
    }
}
