//! How long writes take until they are on disk, and reads: printed, never asserted.
//!
//! `cargo run -p belljar-store --example append_latency -- DIRECTORY`; the directory decides which
//! disk is measured.
#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::{
    env,
    error::Error,
    path::Path,
    time::{Duration, Instant},
};

use belljar_contract::Language;
use belljar_store::{AuditRow, JournalRow, Lease, NewRun, Store};

const ROUNDS: u32 = 2_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = env::args_os().nth(1).ok_or("say in which directory")?;
    let began = Instant::now();
    let store = Store::open(Path::new(&directory))?;
    println!("open                      {:?}", began.elapsed());
    let id = format!("run_{}", std::process::id());
    let lease = store.begin_run(new_run(id)).await?;
    appends(&store, &lease).await?;
    others(&store, &lease).await?;
    println!("{:?}", store.write_counts());
    let began = Instant::now();
    drop(store);
    println!("close                     {:?}", began.elapsed());
    Ok(())
}

async fn appends(store: &Store, lease: &Lease) -> Result<(), Box<dyn Error>> {
    for (name, size) in [("200 B", 200), ("10 KB", 10_000), ("100 KB", 100_000)] {
        let mut times = Vec::new();
        for call in 0..ROUNDS {
            let began = Instant::now();
            store.append(lease, vec![row(call, size)], 1).await?;
            times.push(began.elapsed());
        }
        print(&format!("append {name}"), times);
    }
    let mut times = Vec::new();
    for call in 0..ROUNDS {
        let began = Instant::now();
        store.append(lease, vec![row(call, 200)], 1).await?;
        store.append(lease, vec![row(call, 2000)], 1).await?;
        times.push(began.elapsed());
    }
    print("intent + outcome", times);
    let writers: tokio::task::JoinSet<_> = (0..16)
        .map(|_| {
            let (store, lease) = (store.clone(), lease.clone());
            async move {
                let mut times = Vec::new();
                for call in 0..ROUNDS / 8 {
                    let began = Instant::now();
                    if store.append(&lease, vec![row(call, 200)], 1).await.is_ok() {
                        times.push(began.elapsed());
                    }
                }
                times
            }
        })
        .collect();
    print("append, 16 at a time", writers.join_all().await.concat());
    Ok(())
}

async fn others(store: &Store, lease: &Lease) -> Result<(), Box<dyn Error>> {
    let mut times = Vec::new();
    for call in 0..ROUNDS {
        let began = Instant::now();
        store.audit(audited(call)).await?;
        times.push(began.elapsed());
    }
    print("audit, not waited for", times);
    store.flush().await?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        store.run(&lease.run_id).await?;
        times.push(began.elapsed());
    }
    print("read one run", times);
    Ok(())
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("{name:<25} p50 {:>10.3?}  p90 {:>10.3?}  p99 {:>10.3?}", at(50), at(90), at(99));
}

fn row(call: u32, size: usize) -> JournalRow {
    // Not twice the same, or large ones would be one blob.
    let body = call.to_le_bytes().into_iter().cycle().take(size).collect();
    let head = format!("{{\"call\":{call},\"tool\":\"server__tool\"}}");
    JournalRow { kind: "intent".to_owned(), call, head, body: Some(body) }
}

fn new_run(id: String) -> NewRun {
    NewRun {
        id: id.into(),
        caller: "example".to_owned(),
        work: Language::TypeScript.into(),
        code: "return 1".to_owned(),
        request_json: "{}".to_owned(),
        durable: true,
        seed: String::new(),
        owner: "example".to_owned(),
        started_ms: 1,
    }
}

fn audited(call: u32) -> AuditRow {
    AuditRow {
        run_id: "run".into(),
        call,
        tool: "server__tool".to_owned(),
        decision: "allow".to_owned(),
        reason: "read-only".to_owned(),
        caller: "example".to_owned(),
        argument_hash: "0".repeat(64),
        started_ms: 1,
        duration_ms: 0.5,
        outcome: "ok".to_owned(),
    }
}
