//! Health checks: after a call that timed out, and periodically while the server is idle.

use std::{sync::Arc, time::Duration};

use rmcp::model::{ClientRequest, PingRequest};

use super::{
    super::{deadline::Deadline, error::UpstreamError, ticket::Ticket},
    ServerReply, UpstreamConnection, lock,
};

/// How long a server may take to answer a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

impl UpstreamConnection {
    async fn ping(&self, deadline: Deadline) -> Result<ServerReply, UpstreamError> {
        let ticket = Arc::new(Ticket::default());
        let mut request = PingRequest::default();
        request.extensions.insert(ticket.clone());
        self.ask(ClientRequest::PingRequest(request), ticket, deadline).await
    }

    /// Starts a health check, unless one is running. A server that does not answer is ended, unless an
    /// earlier call is still open: a server that does one thing at a time may be busy with it.
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
                tracing::warn!(server = %this.server, "it stopped answering and is ended");
                this.give_up("it stopped answering".to_owned());
                this.suspected.send_replace(false);
                return this.close().await;
            }
            this.suspected.send_replace(false);
        });
    }

    /// Whether a health check is running.
    pub(in super::super) fn is_suspected(&self) -> bool {
        *self.suspected.borrow()
    }

    /// Waits until no health check is running.
    pub(in super::super) async fn examined(&self) {
        let _ = self.suspected.subscribe().wait_for(|suspected| !suspected).await;
    }

    /// Whether it answers neither a ping nor a listing of its tools. Any answer counts.
    async fn is_silent(&self) -> bool {
        let deadline = Deadline::in_time(HEALTH_TIMEOUT);
        let has_ping =
            self.peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize());
        let is_late = |answer: Result<ServerReply, UpstreamError>| {
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
