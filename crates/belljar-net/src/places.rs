//! How many connections there are to each host.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::host::RemoteHost;

/// The places of each host that has connections.
#[derive(Debug)]
pub(crate) struct HostPlaces {
    each: usize,
    hosts: Mutex<HashMap<RemoteHost, Arc<Semaphore>>>,
}

impl HostPlaces {
    pub(crate) fn new(each: usize) -> Self {
        Self { each, hosts: Mutex::default() }
    }

    /// Waits for a place among a host's connections; `None` if there is none in time.
    pub(crate) async fn take(
        &self,
        host: &RemoteHost,
        limit: Duration,
    ) -> Option<OwnedSemaphorePermit> {
        timeout(limit, self.of(host).acquire_owned()).await.ok()?.ok()
    }

    fn of(&self, host: &RemoteHost) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        // Code can name any number of hosts below `*.example.org`, one after another.
        hosts.retain(|_, places| Arc::strong_count(places) > 1);
        let places = hosts.entry(host.clone());
        places.or_insert_with(|| Arc::new(Semaphore::new(self.each))).clone()
    }
}

#[cfg(test)]
mod tests;
