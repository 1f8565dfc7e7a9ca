//! One pool for each engine, made when the engine is first needed.

use std::sync::Arc;

use belljar_jail::{CellLimits, ZygotePlan};
use tokio::sync::OnceCell;

use crate::{EngineKind, EngineSource, LaunchError, pool::Pool};

/// Where the cells of every engine come from.
#[derive(Debug)]
pub(crate) struct Pools {
    engines: Arc<dyn EngineSource>,
    plan: ZygotePlan,
    size: usize,
    limits: CellLimits,
    pools: [(EngineKind, OnceCell<Arc<Pool>>); EngineKind::ALL.len()],
}

impl Pools {
    /// No pool yet.
    pub(crate) fn new(
        engines: Arc<dyn EngineSource>,
        plan: ZygotePlan,
        size: usize,
        limits: CellLimits,
    ) -> Self {
        let pools = EngineKind::ALL.map(|engine| (engine, OnceCell::new()));
        Self { engines, plan, size, limits, pools }
    }

    /// Where engines come from.
    pub(crate) fn engines(&self) -> &dyn EngineSource {
        &*self.engines
    }

    /// The pool of an engine. It may be empty, and starts to fill when a cell of it is used.
    pub(crate) async fn of(&self, engine: EngineKind) -> Result<Arc<Pool>, LaunchError> {
        let (_, pool) = self
            .pools
            .iter()
            .find(|(kind, _)| *kind == engine)
            .ok_or_else(|| LaunchError::NoEngine(format!("no engine {}", engine.as_str())))?;
        pool.get_or_try_init(|| self.start(engine)).await.cloned()
    }

    async fn start(&self, engine: EngineKind) -> Result<Arc<Pool>, LaunchError> {
        let engines = self.engines.clone();
        let found = tokio::task::spawn_blocking(move || engines.find(engine)).await;
        let found = found.map_err(|error| LaunchError::NoEngine(error.to_string()))?;
        let launch = found.map_err(LaunchError::NoEngine)?;
        let plan = match launch.view {
            Some(view) => self.plan.clone().for_programs(view),
            None => self.plan.clone(),
        };
        let pool = Pool::start(launch.program, plan, self.size, self.limits).await?;
        Ok(Arc::new(pool))
    }

    /// Ends every cell and every zygote, and waits until they are gone.
    pub(crate) async fn shutdown(&self) {
        for pool in self.pools.iter().filter_map(|(_, pool)| pool.get()) {
            pool.shutdown().await;
        }
    }
}
