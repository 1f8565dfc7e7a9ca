//! Turning a process into a zygote.

use belljar_jail::{
    examine::{self, EXAMINE_ARGUMENT},
    zygote,
};

use crate::{Engine, cell::CellMain, quickjs::QuickJs};

/// The hidden first argument that makes a program become a zygote.
pub const ZYGOTE_ARGUMENT: &str = "__zygote";

/// Becomes the zygote of the `quickjs` engine, or examines the machine, if the program was started
/// for that, and then never returns. Must be the first thing `main` does: no thread may exist yet.
pub fn become_zygote_if_asked() {
    let Some(asked) = std::env::args_os().nth(1) else { return };
    if asked == ZYGOTE_ARGUMENT {
        become_zygote(|| QuickJs::warm().map_err(|error| error.to_string()))
    }
    if asked == EXAMINE_ARGUMENT {
        examine::print_and_exit()
    }
}

/// Becomes a zygote of any engine. Never returns.
pub fn become_zygote<E: Engine>(warm: impl FnOnce() -> Result<E, String>) -> ! {
    zygote::serve(|| warm().map(CellMain::new))
}
