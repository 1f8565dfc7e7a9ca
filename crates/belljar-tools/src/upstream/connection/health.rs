//! Whether a server still answers: asked after a call it did not answer in time, and now and then.

use std::{sync::Arc, time::Duration};

use rmcp::model::{ClientRequest, PingRequest};

use super::{
    super::{error::UpstreamError, patience::Deadline, ticket::Ticket},
    Answer, Connection, lock,
};

/// How long a server that let a call time out may take to answer anything at all.
const ANSWERED: Duration = Duration::from_secs(3);

impl Connection {
    async fn ping(&self, deadline: Deadline) -> Result<Answer, UpstreamError> {
        let ticket = Arc::new(Ticket::default());
        let mut request = PingRequest::default();
        request.extensions.insert(ticket.clone());
        self.ask(ClientRequest::PingRequest(request), ticket, deadline).await
    }

    /// Begins to find out whether the server answers at all, unless that is going on already. One
    /// that does not is ended, unless it still has a call to answer that it had before: a server that
    /// does one thing at a time may be busy with that.
    pub(in super::super) fn examine(self: &Arc<Self>) {
        let begins = |suspected: &mut bool| !std::mem::replace(suspected, true);
        if !self.suspected.send_if_modified(begins) {
            return;
        }
        let this = self.clone();
        tokio::spawn(async move {
            let last = lock(&this.users).next;
            let is_silent = this.is_silent().await;
            let active = lock(&this.users).active.first().copied();
            let has_older_call = active.is_some_and(|first| first <= last);
            if is_silent && !has_older_call {
                tracing::warn!(server = %this.server, "it does not answer any more; it is ended");
                this.give_up("it did not answer any more".to_owned());
                this.suspected.send_replace(false);
                return this.close().await;
            }
            this.suspected.send_replace(false);
        });
    }

    /// Whether it is being found out whether the server answers at all.
    pub(in super::super) fn is_suspected(&self) -> bool {
        *self.suspected.borrow()
    }

    /// Waits until that is found out.
    pub(in super::super) async fn examined(&self) {
        let _ = self.suspected.subscribe().wait_for(|suspected| !suspected).await;
    }

    /// Whether it answers neither a ping nor a request that no server can do without. What it answers
    /// does not matter.
    async fn is_silent(&self) -> bool {
        let deadline = Deadline::in_time(ANSWERED);
        let has_ping =
            self.peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize());
        let is_late = |answer: Result<Answer, UpstreamError>| {
            matches!(answer, Err(UpstreamError::TimedOut { .. }))
        };
        let listed = async { is_late(self.page(None, deadline).await) };
        if !has_ping {
            return listed.await;
        }
        let pinged = async { is_late(self.ping(deadline).await) };
        let (mut listed, mut pinged) = (std::pin::pin!(listed), std::pin::pin!(pinged));
        tokio::select! {
            is_late = &mut pinged => is_late && listed.await,
            is_late = &mut listed => is_late && pinged.await,
        }
    }
}
