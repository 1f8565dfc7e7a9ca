//! The `belljar` program. All it does itself is become a zygote or a keeper when it was started as
//! one.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    belljar_project::init();
    cli::main()
}
