//! A Rust program that lets an agent's code work on its data.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use belljar_project::{RunResultExt, Sandbox};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Order {
    customer: &'static str,
    cents: u32,
}

#[derive(Deserialize)]
struct Summary {
    best: String,
    total: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // First line, always: the sandbox starts this very program again, as its zygote.
    belljar_project::init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work())
}

async fn work() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::builder().pool(2).build().await?;

    // The simplest case: code in, value out.
    let sum: u32 = sandbox.run("return 1 + 1").await.value()?;
    println!("1 + 1 = {sum}");

    // Data goes in as `context`, a small answer comes out.
    let orders = [
        Order { customer: "Ada", cents: 1_250 },
        Order { customer: "Grace", cents: 9_900 },
        Order { customer: "Ada", cents: 4_000 },
    ];
    let result = sandbox
        .typescript(
            "const orders: { customer: string; cents: number }[] = context.orders;
             const best = orders.toSorted((a, b) => b.cents - a.cents)[0].customer;
             return { best, total: orders.reduce((sum, order) => sum + order.cents, 0) };",
        )
        .context(&serde_json::json!({ "orders": orders }))
        .timeout(std::time::Duration::from_secs(5))
        .memory(64 << 20)
        .run()
        .await;
    let summary: Summary = result.value()?;
    println!("best customer: {}, total: {}", summary.best, summary.total);

    // Whatever the code does, the answer is a result, and the host is unharmed.
    let result = sandbox.run("return (await fetch('https://example.org')).status").await;
    println!("fetch: {:?}", result.error_kind());

    sandbox.shutdown().await;
    Ok(())
}
