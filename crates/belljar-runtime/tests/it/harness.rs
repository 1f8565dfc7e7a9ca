//! Turns async functions into tests, and starts hosts whose zygotes are this program.

use std::{env, future::Future, sync::Arc};

use belljar_contract::{EngineName, ErrorCode, Limits, RunRequest, RunResult};
use belljar_runtime::{EngineSource, Host, HostConfig, ZygotePlan, ZygoteProgram};
use libtest_mimic::Trial;
use tokio::runtime::{Builder, Runtime};

use crate::skip::without_sandbox;

/// The tests of a module, by the runtime they need: `current_thread` or `two_threads`.
macro_rules! trials {
    ($($runtime:ident: $($test:ident),+;)+) => {
        vec![$($(
            crate::harness::trial(
                module_path!(),
                stringify!($test),
                crate::harness::$runtime,
                $test,
            ),
        )+)+]
    };
}

/// A test that runs an async function to its end. It is skipped, loudly, on a machine that cannot sandbox.
pub(crate) fn trial<F: Future<Output = ()>>(
    module: &str,
    name: &str,
    runtime: fn() -> Runtime,
    test: impl FnOnce() -> F + Send + 'static,
) -> Trial {
    let module = module.rsplit("::").next().unwrap_or(module);
    Trial::test(format!("{module}::{name}"), move || {
        let runtime = runtime();
        if !without_sandbox(|| runtime.block_on(missing())) {
            runtime.block_on(test());
        }
        Ok(())
    })
}

/// A runtime like that of `#[tokio::test]`.
pub(crate) fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A runtime with two threads.
pub(crate) fn two_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// Why this machine cannot sandbox.
async fn missing() -> Option<String> {
    match Host::start(config(Arc::new(zygote()), 0)).await {
        Ok(host) => {
            host.shutdown().await;
            None
        }
        Err(error) if error.code() == ErrorCode::SandboxUnsupported => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// This program as a zygote of `quickjs`.
pub(crate) fn zygote() -> ZygoteProgram {
    let path = env::current_exe().expect("a test is a file");
    ZygoteProgram { path, arguments: vec![belljar_worker::ZYGOTE_ARGUMENT.to_owned()] }
}

/// A host with the default maxima that starts `quickjs` right away.
pub(crate) fn config(engines: Arc<dyn EngineSource>, pool_size: usize) -> HostConfig {
    HostConfig {
        engines,
        ready: vec![EngineName::QuickJs],
        plan: ZygotePlan::full(),
        pool_size,
        maximum: Limits::MAXIMUM,
        protected: Vec::new(),
        reserved_names: Vec::new(),
    }
}

/// Starts a host with this many parked cells.
pub(crate) async fn host(pool_size: usize) -> Host {
    let started = Host::start(config(Arc::new(zygote()), pool_size)).await;
    started.expect("this machine can confine a zygote")
}

/// Runs TypeScript with the default limits.
pub(crate) async fn run(host: &Host, code: &str) -> RunResult {
    host.run(RunRequest::typescript(code)).await
}
