//! The `belljar` program as a person or another program uses it: arguments in, streams and exit
//! status out. What a run does inside is tested where it is done; this shows that it arrives.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails this way"
)]

mod answer_tokens;
mod as_models_write;
mod chaos;
mod cli_approvals;
mod cli_durable;
mod cli_run;
mod cli_standing;
mod cli_tools;
mod client_grants;
mod client_reports;
mod clients;
mod command;
mod config;
mod conformance;
mod crash;
mod crash_points;
mod demo;
mod denials;
#[path = "../../../belljar-runtime/tests/it/descendants.rs"]
mod descendants;
mod doc_blocks;
mod doctor;
mod engines;
mod escape_bait;
mod escape_bash;
mod escape_python;
mod exact_values;
mod executed;
mod help;
mod hostile_servers;
mod http_api;
mod http_blobs;
mod http_docs;
mod http_sessions;
mod http_support;
mod intent;
mod internet;
mod languages;
mod ledger_support;
mod mcp_support;
mod measured;
mod network;
mod network_bounds;
mod network_branches;
mod network_clients;
mod network_credentials;
mod network_fetch;
mod network_fetch_journal;
mod network_questions;
mod network_refusals;
mod network_session_support;
mod network_sessions;
mod network_surfaces;
mod newcomer;
mod orphans;
mod other_projects;
mod owners;
#[path = "../../../belljar-testing/shared/place.rs"]
mod place;
mod programs;
mod project_support;
mod protected;
mod real_servers;
mod retention;
mod run;
mod serve_approvals;
mod serve_durable;
mod serve_http;
mod serve_queue;
mod serve_start;
mod serve_workflows;
mod session_host;
mod session_tools;
mod signals;
#[path = "../../../belljar-testing/shared/skip.rs"]
mod skip;
mod stdio_support;
mod storage;
mod workflow_agents;
mod workflow_ahead;
mod workflow_crashes;
mod workflow_examples;
mod workflow_forks;
mod workflow_sandboxes;
mod workflow_support;
mod workspace;

// Where the attributes of belljar-testing look for them.
use command::{left_to_child, left_to_parent, no_crash_points, no_sandbox, not_root};
