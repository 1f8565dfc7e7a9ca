//! `cargo xtask tidy`: the rules of the tree that a machine can check.

mod tidy;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let chore = std::env::args().nth(1);
    match chore.as_deref() {
        Some("tidy") => tidy::check(std::path::Path::new(".")),
        _ => bail!("usage: cargo xtask tidy"),
    }
}
