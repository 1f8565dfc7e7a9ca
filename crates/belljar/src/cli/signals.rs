//! Signals that stop this process, as futures.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Interrupt,
    Terminate,
    HangUp,
}

impl StopSignal {
    /// The exit status that a shell reports for this signal.
    pub(crate) const fn exit_status(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
            Self::HangUp => 129,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupted",
            Self::Terminate => "terminated",
            Self::HangUp => "the terminal was closed",
        }
    }
}

/// Listens from its creation on, so that no signal is lost between two waits.
#[derive(Debug)]
pub(crate) struct SignalListener {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl SignalListener {
    /// Starts listening. Needs a running tokio runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the first of the signals.
    pub(crate) async fn received(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.hang_up.recv() => StopSignal::HangUp,
        }
    }

    /// A signal that has arrived already, if any.
    pub(crate) async fn pending(&mut self) -> Option<StopSignal> {
        // Yielding lets the runtime process arrived signals.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            stop = self.received() => Some(stop),
            () = std::future::ready(()) => None,
        }
    }
}
