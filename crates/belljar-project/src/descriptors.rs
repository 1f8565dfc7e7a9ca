//! Descriptors: each session has several, and what a shell allows by default is soon used up.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Allows this process as many as it may have. What it starts sets limits of its own.
pub fn allow_many() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "no more descriptors than before");
    }
}
