//! The host runs code on the engine that a request names, in cells of the right zygote, or says why not.

use std::{
    path::PathBuf,
    process,
    sync::{Arc, Mutex},
};

use belljar_contract::{EngineName, ErrorCode, Language, RunRequest, Tier};
use belljar_runtime::{
    EngineLaunch, EngineSource, Host, HostConfig, LaunchError, Preload, ZygoteKind,
};
use libtest_mimic::Trial;

use crate::{
    descendants::descendants,
    harness::{config, host, run, zygote},
    processes::at_rest,
};

pub(crate) fn trials() -> Vec<Trial> {
    trials! {
        current_thread:
            an_engine_that_does_not_run_the_language_is_refused,
            an_engine_that_is_named_runs_its_languages,
            an_engine_that_a_source_does_not_have_is_refused_in_its_words;
        two_threads: pools_of_two_kinds_of_zygotes_do_not_mix;
    }
}

async fn an_engine_that_does_not_run_the_language_is_refused() {
    let host = host(0).await;
    let mut refused = 0;
    for (&engine, language) in EngineName::ALL.iter().flat_map(with_each_language) {
        if engine.runs(language) {
            continue;
        }
        refused += 1;
        let mut request = RunRequest::new(language, "1");
        request.engine = Some(engine);
        let result = host.run(request).await;
        let error = result.error.expect("an error");
        assert_eq!(error.code, ErrorCode::RequestInvalid, "{error:?}");
        assert_eq!(error.message, format!("the engine {engine} does not run {language}"));
        let hint = error.hint.unwrap_or_default();
        let default = EngineName::default_for(language);
        assert!(hint.starts_with(&format!("engines that run {language}: {default}")), "{hint}");
        assert_eq!(result.isolation.tier, Tier::Refused);
    }
    let pairs = EngineName::ALL.len() * Language::ALL.len();
    let run = EngineName::ALL.iter().map(|engine| engine.row().languages.len()).sum::<usize>();
    assert_eq!(refused, pairs - run);
    host.shutdown().await;
}

fn with_each_language(engine: &EngineName) -> impl Iterator<Item = (&EngineName, Language)> {
    Language::ALL.into_iter().map(move |language| (engine, language))
}

async fn an_engine_that_is_named_runs_its_languages() {
    let host = host(1).await;
    for &language in EngineName::QuickJs.row().languages {
        let mut request = RunRequest::new(language, "40 + 2");
        request.engine = Some(EngineName::QuickJs);
        let result = host.run(request).await;
        assert_eq!(result.result.get(), "42", "{language}: {:?}", result.error);
        assert_eq!(result.isolation.engine, EngineName::QuickJs);
    }
    host.shutdown().await;
}

/// The message of a source about an engine that it does not have.
const NOT_HERE: &str = "bash is not installed: install it, or set engines.bash";

/// Has `quickjs` only. Its zygotes are of two kinds, and it notes which ones it was asked for.
#[derive(Debug, Default)]
struct QuickJsSource {
    found: Mutex<Vec<ZygoteKind>>,
}

impl EngineSource for QuickJsSource {
    fn zygote_for(&self, engine: EngineName, code: &str) -> ZygoteKind {
        let is_data = code.contains("data");
        let preload = if is_data { Preload::DataLibraries } else { Preload::Standard };
        ZygoteKind { engine, preload }
    }

    fn find(&self, kind: ZygoteKind) -> Result<EngineLaunch, String> {
        if kind.engine != EngineName::QuickJs {
            return Err(NOT_HERE.to_owned());
        }
        self.found.lock().unwrap().push(kind);
        Ok(EngineLaunch { program: zygote(), view: None })
    }

    fn command(&self, _name: &str) -> Option<PathBuf> {
        None
    }
}

async fn an_engine_that_a_source_does_not_have_is_refused_in_its_words() {
    let ready = vec![EngineName::Bash];
    let config = config(Arc::new(QuickJsSource::default()), 0);
    let refused = Host::start(HostConfig { ready, ..config.clone() }).await;
    let error = refused.expect_err("it has no bash");
    assert!(matches!(&error, LaunchError::NoEngine(words) if words == NOT_HERE), "{error:?}");
    assert_eq!((error.to_string(), error.code()), (NOT_HERE.into(), ErrorCode::SandboxUnsupported));
    // Without `ready` it is the run that says so; other engines go on.
    let host = Host::start(config).await.expect("it has quickjs");
    let result = host.run(RunRequest::new(Language::Bash, "true")).await;
    let error = result.error.expect("an error");
    assert_eq!((error.code, &*error.message), (ErrorCode::SandboxUnsupported, NOT_HERE));
    assert_eq!((error.hint, result.isolation.tier), (None, Tier::Refused));
    assert_eq!(run(&host, "1 + 1").await.result.get(), "2");
    host.shutdown().await;
}

/// The direct children of this process, one for each zygote.
fn wardens() -> Vec<u32> {
    let all = descendants(process::id());
    let is_below = |pid: &u32| all.iter().any(|other| descendants(*other).contains(pid));
    all.iter().copied().filter(|pid| !is_below(pid)).collect()
}

/// The processes of a warden: its zygote and all cells of that zygote.
fn tree_of(warden: u32) -> Vec<u32> {
    let mut pids = descendants(warden);
    pids.sort_unstable();
    pids
}

/// A run takes no parked cell of another kind of zygote, and each zygote is started once.
async fn pools_of_two_kinds_of_zygotes_do_not_mix() {
    let source = Arc::new(QuickJsSource::default());
    let host = Host::start(config(source.clone(), 2)).await.expect("it has quickjs");
    at_rest().await;
    let standard = wardens()[0];
    let parked = tree_of(standard);
    assert_eq!(parked.len(), 1 + 2 * 2, "a zygote and two cells of two processes");
    assert_eq!(run(&host, "'data'").await.result.get(), r#""data""#);
    at_rest().await;
    assert_eq!(tree_of(standard), parked, "the run took a cell of the other kind");
    let data = wardens().into_iter().find(|warden| *warden != standard);
    let data = data.expect("a second warden");
    let data_parked = tree_of(data);
    assert_eq!(data_parked.len(), 1 + 2 * 2);
    for number in 0..4 {
        let result = run(&host, &format!("return {number}")).await;
        assert_eq!(result.result.get(), number.to_string(), "{:?}", result.error);
    }
    at_rest().await;
    assert_eq!(tree_of(data), data_parked, "a run took a cell of the other kind");
    // Control: these runs did take cells.
    assert_ne!(tree_of(standard), parked);
    let kinds = [Preload::Standard, Preload::DataLibraries];
    let kinds = kinds.map(|preload| ZygoteKind { engine: EngineName::QuickJs, preload });
    assert_eq!(*source.found.lock().unwrap(), kinds);
    host.shutdown().await;
}
