//! Signals that ask this process to stop, as something to wait for.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Interrupt,
    Terminate,
    HangUp,
}

impl StopSignal {
    /// What a shell reports for a process ended by this signal.
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
            Self::HangUp => "the terminal went away",
        }
    }
}

/// Listens from the moment it is made, so that no signal falls between two waits.
#[derive(Debug)]
pub(crate) struct SignalListener {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl SignalListener {
    /// Needs a running tokio runtime.
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

    /// A signal that is already here, if there is one.
    pub(crate) async fn pending(&mut self) -> Option<StopSignal> {
        // Yielding lets the runtime see what has arrived.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            stop = self.received() => Some(stop),
            () = std::future::ready(()) => None,
        }
    }
}
