//! The only network a cell can have: rules that name hosts, and a proxy that enforces them.
//!
//! [`NetPolicy`] decides about names and ports, purely. [`RunConnections::serve`] accepts the connections of
//! one cell on a listener inside that cell's network namespace, and speaks HTTP proxy and SOCKS5 on it. A name
//! is resolved only after a rule has allowed it; every address is checked; and the connection goes to exactly
//! the address that was checked. [`FetchClient`] makes requests for code that has no socket, with the same
//! decisions.
//!
//! This crate knows neither cells nor the audit log: it gets a listener, and reports to a
//! [`ConnectionLog`].

mod address;
mod approval;
mod authority;
mod body;
mod client_hello;
mod connect;
mod connection;
mod fetch;
mod forbidden_ports;
mod forward;
mod headers;
mod host;
mod http;
mod http_head;
mod log;
mod meter;
mod narrow;
mod path;
mod pattern;
mod places;
mod policy;
mod proxy;
mod redact;
mod request;
mod resolver;
mod rules;
mod server;
mod socks;
mod state;
mod terminate;
mod tls_client;
mod tunnel;

pub use address::AddressClass;
pub use approval::{
    ConnectionAnswer, ConnectionApprover, ConnectionQuestion, NoApprover, RequestSummary,
};
pub use authority::{AuthorityError, RunAuthority};
pub use fetch::{
    FetchAnswer, FetchClient, FetchFailure, MalformedFetch, OutgoingRequest, RequestContent,
};
pub use forbidden_ports::{BelljarPorts, ForbiddenPorts, NoForbiddenPorts};
pub use host::{DomainName, RemoteHost, RemoteHostError};
pub use log::{ConnectionEvent, ConnectionLog, ConnectionOutcome, Destination, LogFailure};
pub use narrow::ProjectNetRules;
pub use path::{PathPattern, PathPatternError};
pub use pattern::{HostPattern, PatternError, PatternHost};
pub use policy::{NetPolicy, NetRefusal};
pub use proxy::{NetLimits, ProxyContext, refuse_all};
pub use request::RequestFault;
pub use resolver::{Resolver, SystemResolver};
pub use rules::{HeaderRule, NetRule, NetRuleError, NetRules, Secret};
pub use state::RunConnections;
pub use tls_client::TlsClient;
