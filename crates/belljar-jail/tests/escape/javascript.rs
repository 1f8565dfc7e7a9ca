//! Attempts through the real engine: what an agent's code can try without breaking it.
//!
//! The jail is the boundary and the rest of the suite tests it; here it is shown that the language
//! offers no shortcut, that refusals are told as A4 wants, and that runs share nothing.

mod snippets;

use std::{io, time::Duration};

use belljar_contract::{Language, Limits, RunRequest};
use belljar_runtime::Host;
use belljar_worker::quickjs::QuickJs;
use libtest_mimic::{Failed, Trial};
use serde::{Deserialize, Serialize};

use crate::{
    harness::{bait::Bait, host, host::Spec, spawn, spawn::Who},
    modes::{needs_root, report},
};

/// Code, and how it has to end.
struct Snippet {
    name: &'static str,
    code: &'static str,
    end: End,
}

/// How a snippet ends.
enum End {
    /// The script succeeds with this value.
    Value(&'static str),
    /// The script fails with one of these codes.
    Code(&'static [&'static str]),
    /// Refused as A4 says: this code, a hint, and an entry in the log.
    Refused(&'static str),
}

/// The code for a host to run.
#[derive(Debug, Serialize, Deserialize)]
struct Scripts {
    pool_size: usize,
    /// Each with the milliseconds it may take.
    codes: Vec<(String, u64)>,
}

/// How one of them ended.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ScriptEnd {
    value: String,
    code: String,
    message: String,
    hint: Option<String>,
    stack: Option<String>,
    logs: Vec<String>,
    tier: String,
}

pub(crate) fn trials() -> Vec<Trial> {
    let groups = snippets::GROUPS.iter().flat_map(|(name, snippets)| {
        let root = Trial::test(format!("javascript::{name}_as_root"), move || {
            if !spawn::is_root() {
                return needs_root::<()>(name).map(|_| ());
            }
            end_as_they_should(Who::Same, 2, snippets)
        });
        let user = Trial::test(format!("javascript::{name}_as_user"), move || {
            end_as_they_should(spawn::ordinary(), 0, snippets)
        });
        [root, user]
    });
    let apart = Trial::test("javascript::runs_share_nothing", runs_share_nothing);
    let paths = Trial::test("javascript::errors_tell_no_host_path", errors_tell_no_host_path);
    groups.chain([apart, paths]).collect()
}

fn end_as_they_should(who: Who, pool_size: usize, snippets: &[Snippet]) -> Result<(), Failed> {
    let codes = snippets.iter().map(|snippet| (snippet.code, snippet.milliseconds()));
    let codes = codes.chain([("return 'still here'", PATIENT_MS)]);
    let ended = run(who, pool_size, codes)?;
    let checked = snippets.iter().zip(&ended).map(|(snippet, ended)| {
        snippet.check(ended).map_err(|what| format!("{}: {what}: {ended:?}", snippet.name))
    });
    let mut failures: Vec<String> = checked.filter_map(Result::err).collect();
    if ended.last().is_none_or(|last| last.value != "\"still here\"") {
        failures.push(format!("afterwards: {:?}", ended.last()));
    }
    report(failures)
}

/// For code that ends by itself, however busy the machine is.
const PATIENT_MS: u64 = 20_000;
/// For code that does not.
const SHORT_MS: u64 = 600;

impl Snippet {
    fn milliseconds(&self) -> u64 {
        match self.end {
            End::Code(codes) if codes.contains(&"limit.timeout") => SHORT_MS,
            End::Code(_) | End::Value(_) | End::Refused(_) => PATIENT_MS,
        }
    }

    fn check(&self, ended: &ScriptEnd) -> Result<(), String> {
        let ScriptEnd { value, code, hint, logs, tier, .. } = ended;
        let as_expected = match self.end {
            End::Value(expected) => code.is_empty() && value == expected,
            End::Code(codes) => codes.contains(&code.as_str()),
            End::Refused(expected) => {
                code == expected
                    && hint.is_some()
                    && logs.iter().any(|line| line.starts_with("[blocked] "))
            }
        };
        match (as_expected, tier.as_str()) {
            (true, "full") => Ok(()),
            (true, tier) => Err(format!("tier {tier}")),
            (false, _) => Err("ended otherwise".to_owned()),
        }
    }
}

fn runs_share_nothing() -> Result<(), Failed> {
    let again = "return [Math.random(), crypto.randomUUID(), typeof left, ({}).left ?? null]";
    let leave = "globalThis.left = 1; Object.prototype.left = 1; Array.prototype.push = null; \
                 Math.random = () => 4; return 1";
    let codes = [again, leave, again, again];
    let ended = run(Who::Same, 2, codes.map(|code| (code, PATIENT_MS)))?;
    let values: Vec<serde_json::Value> =
        ended.iter().filter_map(|ended| serde_json::from_str(&ended.value).ok()).collect();
    let [first, _, second, third] = &values[..] else {
        return Err(format!("{ended:?}").into());
    };
    let mut failures = Vec::new();
    for (one, other) in [(first, second), (second, third), (first, third)] {
        if one[0] == other[0] || one[1] == other[1] {
            failures.push(format!("the same randomness twice: {one} {other}"));
        }
    }
    for later in [second, third] {
        if later[2] != "undefined" || !later[3].is_null() {
            failures.push(format!("something of an earlier run is left: {later}"));
        }
    }
    report(failures)
}

/// Neither stacks nor messages name a file of the host or of the library.
fn errors_tell_no_host_path() -> Result<(), Failed> {
    let codes = [
        "throw new Error(new Error('x').stack)",
        "return null.x",
        "const fs = require('fs')",
        "await import('/etc/passwd')",
        "return [1n]",
        "new URL('nonsense')",
        "structuredClone(() => {})",
        "Error.stackTraceLimit = 1000; const f = (n) => n ? f(n - 1) : new Intl.NumberFormat('xx-');\
         f(5)",
    ];
    let program = std::env::current_exe()?;
    let parent = program.parent().map_or_else(String::new, |path| path.display().to_string());
    let mut failures = Vec::new();
    for (code, ended) in codes.iter().zip(run(Who::Same, 0, codes.map(|code| (code, PATIENT_MS)))?)
    {
        let said = format!("{} {:?} {:?} {:?}", ended.message, ended.stack, ended.hint, ended.logs);
        for secret in [&*parent, "belljar:", ".rs", "/proc/", "quickjs"] {
            if said.contains(secret) {
                failures.push(format!("{code}: says {secret}: {said}"));
            }
        }
    }
    report(failures)
}

fn run<'a>(
    who: Who,
    pool_size: usize,
    codes: impl IntoIterator<Item = (&'a str, u64)>,
) -> Result<Vec<ScriptEnd>, String> {
    let codes: Vec<_> = codes.into_iter().map(|(code, time)| (code.to_owned(), time)).collect();
    let expected = codes.len();
    let text = serde_json::to_string(&Scripts { pool_size, codes });
    let text = text.map_err(|error| error.to_string())?;
    let output = spawn::this_program(who, &["__scripts", &text])
        .and_then(|mut command| command.stdout(std::process::Stdio::piped()).output())
        .map_err(|error| error.to_string())?;
    let ended: Vec<ScriptEnd> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("no answer: {error}"))?;
    if ended.len() == expected { Ok(ended) } else { Err(format!("{ended:?}")) }
}

/// The role of the zygote whose guests run JavaScript.
pub(crate) fn become_zygote() -> ! {
    belljar_worker::become_zygote(|| QuickJs::warm().map_err(|error| error.to_string()))
}

/// The role of a host that runs scripts and prints how each ended.
pub(crate) fn main(scripts: &str) -> io::Result<()> {
    let scripts: Scripts = serde_json::from_str(scripts)?;
    let zygote = vec!["__javascript".to_owned()];
    let spec = Spec { pool_size: scripts.pool_size, zygote, ..Spec::full([] as [&str; 0]) };
    let ended = host::runtime()?.block_on(async {
        let host =
            Host::start(host::config(&spec, &Bait::nothing())).await.map_err(io::Error::other)?;
        let mut ended = Vec::new();
        for (code, milliseconds) in scripts.codes {
            ended.push(run_one(&host, code, Duration::from_millis(milliseconds)).await);
        }
        host.shutdown().await;
        io::Result::Ok(ended)
    })?;
    serde_json::to_writer(io::stdout().lock(), &ended)?;
    Ok(())
}

async fn run_one(host: &Host, code: String, timeout: Duration) -> ScriptEnd {
    let limits = Limits { timeout, cpu: timeout, memory: 64 << 20, ..Limits::DEFAULT };
    let request = RunRequest { limits, ..RunRequest::new(Language::JavaScript, code) };
    let result = host.run(request).await;
    let tier = result.isolation.tier.to_string();
    let ended = ScriptEnd { logs: result.logs, tier, ..ScriptEnd::default() };
    match result.error {
        None => ScriptEnd { value: result.result.get().to_owned(), ..ended },
        Some(error) => ScriptEnd {
            code: error.code.as_str().to_owned(),
            message: error.message,
            hint: error.hint,
            stack: error.stack,
            ..ended
        },
    }
}
