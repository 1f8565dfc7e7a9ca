//! A thousand made-up commits, the same on every machine.

use serde::Serialize;

use super::random::SeededRandom;

/// The number of commits that the demo makes up.
pub(super) const COMMITS: usize = 1_000;

#[derive(Debug, Serialize)]
pub(super) struct Repository {
    commits: Vec<DemoCommit>,
}

#[derive(Debug, Serialize)]
pub(super) struct DemoCommit {
    sha: String,
    parents: [String; 1],
    author: Author,
    date: String,
    message: String,
    files: Vec<ChangedFile>,
}

#[derive(Debug, Clone, Serialize)]
struct Author {
    name: &'static str,
    email: String,
}

#[derive(Debug, Serialize)]
struct ChangedFile {
    path: String,
    status: &'static str,
    additions: u64,
    deletions: u64,
    blob: String,
}

impl Repository {
    /// The number of commits, after those before a date were dropped.
    pub(super) fn len(&self) -> usize {
        self.commits.len()
    }

    /// Drops commits before a date, in the format of their own dates.
    pub(super) fn keep_since(&mut self, date: &str) {
        self.commits.retain(|commit| *commit.date >= *date);
    }

    /// Finds a commit by its id.
    pub(super) fn find(&self, sha: &str) -> Option<&DemoCommit> {
        self.commits.iter().find(|commit| commit.sha == sha)
    }
}

/// Creates the commits, oldest first.
pub(super) fn repository() -> Repository {
    let mut random = SeededRandom::new(0x0bad_5eed_cafe_f00d);
    let mut parent = random.sha();
    let commits = (0..COMMITS)
        .map(|index| {
            let commit = commit(&mut random, index, parent.clone());
            parent.clone_from(&commit.sha);
            commit
        })
        .collect();
    Repository { commits }
}

fn commit(random: &mut SeededRandom, index: usize, parent: String) -> DemoCommit {
    // The lower of two numbers: some people commit much more than others.
    let name = random.low_of(&AUTHORS);
    let email = format!("{}@example.org", name.to_lowercase().replace(' ', "."));
    let area = random.low_of(&AREAS);
    let files = (0..2 + random.below(8)).map(|_| changed_file(random, area)).collect();
    DemoCommit {
        sha: random.sha(),
        parents: [parent],
        author: Author { name, email },
        date: date(index),
        message: message(random, area),
        files,
    }
}

fn message(random: &mut SeededRandom, area: &str) -> String {
    let kind = random.low_of(&KINDS);
    let subject = random.one_of(&SUBJECTS);
    let reason = random.one_of(&REASONS);
    let module = area.split('/').nth(1).unwrap_or(area);
    let issue = 100 + random.below(4_000);
    format!("{kind}: {subject} in {module}\n\n{reason}\n\nCloses #{issue}.")
}

fn changed_file(random: &mut SeededRandom, area: &str) -> ChangedFile {
    let stem = random.one_of(&STEMS);
    let suffix = random.one_of(&["ts", "test.ts", "ts", "md"]);
    ChangedFile {
        path: format!("{area}/{stem}.{suffix}"),
        status: random.one_of(&["modified", "modified", "modified", "added"]),
        additions: 1 + random.low(160) as u64,
        deletions: random.low(90) as u64,
        blob: random.sha(),
    }
}

/// Eight commits a day, an hour apart, from 1 January 2026, in months of 28 days.
fn date(index: usize) -> String {
    let (day, hour) = (index / 8, 9 + index % 8);
    format!("2026-{:02}-{:02}T{hour:02}:{:02}:00Z", 1 + day / 28, 1 + day % 28, index * 7 % 60)
}

const AUTHORS: [&str; 12] = [
    "Ada Okafor",
    "Mateo Rossi",
    "Yuki Tanaka",
    "Priya Raman",
    "Jonas Lindqvist",
    "Amara Diallo",
    "Chen Wei",
    "Sofia Marchetti",
    "Noah Becker",
    "Leila Haddad",
    "Tomás Silva",
    "Ingrid Dahl",
];
const AREAS: [&str; 8] = [
    "packages/api/src",
    "packages/web/src",
    "packages/store/src",
    "packages/auth/src",
    "packages/jobs/src",
    "packages/cli/src",
    "tools/release",
    "docs/guides",
];
const KINDS: [&str; 6] = ["fix", "feat", "refactor", "test", "docs", "perf"];
const SUBJECTS: [&str; 8] = [
    "retry a request whose connection was reset",
    "keep the cursor when a page is reloaded",
    "reject an upload without a content type",
    "batch writes that arrive within a tick",
    "name the column when a migration fails",
    "stop the worker before its queue is closed",
    "show how long a job has been waiting",
    "drop the second lookup of the session",
];
const REASONS: [&str; 5] = [
    "The old path assumed that the response had arrived whole, which is true on a quiet network \
     and false on a busy one. The reader now waits for the length it was promised.",
    "Two callers could both see the flag unset and both do the work. Taking the lock first makes \
     the second one wait and then find nothing left to do.",
    "This was measured with the traffic of last week: the median does not move, the slowest one \
     percent comes down from 410 to 95 milliseconds.",
    "Reported by a customer whose names contain apostrophes. The new test has theirs, and a few \
     that are worse.",
    "No change in behaviour. The three copies of this had begun to differ, and the next change \
     would have had to be made three times.",
];
const STEMS: [&str; 12] = [
    "session",
    "router",
    "queue",
    "migrations/index",
    "uploads",
    "cursor",
    "retry",
    "metrics",
    "schema",
    "handlers/orders",
    "handlers/accounts",
    "worker",
];
