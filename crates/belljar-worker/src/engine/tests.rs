//! The table of engines: what the host takes for granted about it.

use super::*;

/// A12: the host chooses from the contract's table, so each of its rows has an engine here.
#[test]
fn a12_every_engine_of_the_contract_is_there_once() {
    for name in EngineName::ALL {
        let engines = ENGINES.iter().filter(|engine| engine.name() == *name);
        assert_eq!(engines.count(), 1, "{name}");
    }
    assert_eq!(ENGINES.len(), EngineName::ALL.len());
}
