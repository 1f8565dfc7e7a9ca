//! The embedded engine keeps every promise of the port (F3), and the suite notices one that does
//! not.

use belljar_store::Store;
use belljar_workflow::{
    Embedded,
    conformance::{self, Engines},
};

use crate::tampered::{Flaw, Tampered};

/// A file; every handle has a writer and connections of its own, as in another process.
struct File(tempfile::TempDir);

impl File {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Engines for File {
    type Engine = Embedded;

    async fn open(&self) -> Embedded {
        Embedded::new(Store::open(self.0.path()).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f3_the_embedded_engine_keeps_every_promise() {
    let report = conformance::run(File::new).await;
    assert!(report.broken.is_empty(), "{:#?}", report.broken);
    assert!(report.held.len() >= 30, "{}", report.held.len());
}

struct FlawedFile(File, Flaw);

impl Engines for FlawedFile {
    type Engine = Tampered;

    async fn open(&self) -> Tampered {
        Tampered::flawed(self.0.open().await, self.1)
    }
}

/// A suite that lets a broken engine pass proves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn f3_the_suite_bites() {
    let bites = [
        (Flaw::IgnoresFences, "superseded_writes_are_refused"),
        (Flaw::LosesTheLastEvent, "events_are_replayed_without_gap"),
        (Flaw::QueuesRepeatedCommands, "a_command_twice_is_one"),
        (Flaw::ForgetsAnswers, "answers_are_durable"),
        (Flaw::ClaimsWhatIsHeld, "a_live_lease_is_respected"),
        (Flaw::LosesLargeValues, "values_come_back"),
    ];
    for (flaw, case) in bites {
        let report = conformance::run(|| FlawedFile(File::new(), flaw)).await;
        let broken: Vec<&str> = report.broken.iter().map(|broken| broken.case).collect();
        assert!(broken.contains(&case), "{flaw:?}: {broken:?}");
        // It says which promise, and does not merely fall over.
        assert!(report.held.len() > broken.len(), "{flaw:?}: {broken:?}");
    }
}
