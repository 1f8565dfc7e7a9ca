//! One pool for each kind of zygote and network, made when it is first needed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use belljar_jail::{CellLimits, NetworkAccess, ZygotePlan};
use tokio::sync::OnceCell;

use crate::{EngineSource, LaunchError, ZygoteKind, pool::Pool};

/// A pool; empty until its zygote has started.
type Slot = Arc<OnceCell<Arc<Pool>>>;

/// The pools of all kinds of zygotes.
#[derive(Debug)]
pub(crate) struct Pools {
    /// The source that finds engines on this machine.
    pub(crate) engines: Arc<dyn EngineSource>,
    plan: ZygotePlan,
    size: usize,
    limits: CellLimits,
    slots: Mutex<HashMap<(ZygoteKind, NetworkAccess), Slot>>,
}

impl Pools {
    /// Starts no zygote yet; [`get`](Self::get) does.
    pub(crate) fn new(
        engines: Arc<dyn EngineSource>,
        plan: ZygotePlan,
        size: usize,
        limits: CellLimits,
    ) -> Self {
        Self { engines, plan, size, limits, slots: Mutex::default() }
    }

    /// The pool of a kind of zygote, which starts with the first call. It fills once one of its cells is used.
    /// Cells with a network have a zygote of their own, so that the others keep theirs (decision 24).
    pub(crate) async fn get(
        &self,
        kind: ZygoteKind,
        network: NetworkAccess,
    ) -> Result<Arc<Pool>, LaunchError> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry((kind, network)).or_default().clone()
        };
        slot.get_or_try_init(|| self.start(kind, network)).await.cloned()
    }

    async fn start(
        &self,
        kind: ZygoteKind,
        network: NetworkAccess,
    ) -> Result<Arc<Pool>, LaunchError> {
        let engines = self.engines.clone();
        let found = tokio::task::spawn_blocking(move || engines.find(kind)).await;
        let found = found.map_err(|error| LaunchError::NoEngine(error.to_string()))?;
        let launch = found.map_err(LaunchError::NoEngine)?;
        let plan = match launch.view {
            Some(view) => self.plan.clone().for_programs(view),
            None => self.plan.clone(),
        };
        let plan = match network {
            NetworkAccess::None => plan,
            NetworkAccess::Proxy => plan.with_network(network),
        };
        let pool = Pool::start(launch.program, plan, self.size, self.limits).await?;
        Ok(Arc::new(pool))
    }

    /// Ends all cells and zygotes, and waits until they are gone.
    pub(crate) async fn shutdown(&self) {
        let slots: Vec<Slot> = {
            let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.values().cloned().collect()
        };
        for pool in slots.iter().filter_map(|slot| slot.get()) {
            pool.shutdown().await;
        }
    }
}
