//! The `belljar` program: becomes a zygote or a process supervisor if it was started as one, else
//! runs the command line.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    belljar_project::init();
    cli::main()
}
