//! The port to a person: connections and requests under an `ask` rule wait for an answer.

use std::{fmt::Debug, future::Future, pin::Pin};

use crate::{log::Destination, rules::NetRule};

/// A question about a connection or a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionQuestion {
    /// Where it goes.
    pub destination: Destination,
    /// The rule that asks.
    pub rule: NetRule,
    /// The request, if the proxy can see it; a tunnel shows none.
    pub request: Option<RequestSummary>,
}

/// A request as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSummary {
    /// The method.
    pub method: String,
    /// The path, without its query.
    pub path: String,
    /// The size of the body, if the request states it.
    pub body_bytes: Option<u64>,
}

/// The answer of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionAnswer {
    /// It may be made.
    Approved,
    /// It may not be made.
    Denied,
    /// Nobody can answer, or nobody did in time.
    Unanswered,
}

/// Asks a person. The code itself has no way to answer.
pub trait ConnectionApprover: Debug + Send + Sync {
    /// Waits for the answer. Whether an earlier answer covers the question is decided here, from the
    /// rule's `each`.
    fn ask<'a>(
        &'a self,
        question: &'a ConnectionQuestion,
    ) -> Pin<Box<dyn Future<Output = ConnectionAnswer> + Send + 'a>>;
}

/// Nobody can be asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoApprover;

impl ConnectionApprover for NoApprover {
    fn ask<'a>(
        &'a self,
        _question: &'a ConnectionQuestion,
    ) -> Pin<Box<dyn Future<Output = ConnectionAnswer> + Send + 'a>> {
        Box::pin(std::future::ready(ConnectionAnswer::Unanswered))
    }
}
