//! The contract's table and the finders of this crate fit together.

use super::*;

/// A12: an engine that is not part of Belljar has a finder, and only such an engine.
#[test]
fn a12_every_program_of_the_machine_has_a_finder() {
    for engine in EngineName::ALL {
        let finders = FINDERS.iter().filter(|(name, _)| name == engine).count();
        assert_eq!(finders, usize::from(!engine.row().is_built_in), "{engine}");
    }
    assert_eq!(locate_engine(EngineName::QuickJs), Ok(None));
    if let Ok(bash) = locate_engine(EngineName::Bash) {
        assert!(bash.is_some_and(|bash| bash.is_file()));
    }
}

/// Code that names a data library gets the zygote that has it loaded; other engines have no such zygote.
#[test]
fn a2_only_code_for_data_gets_a_zygote_with_data_libraries() {
    let source = MachineEngines::new(PathBuf::new());
    let preload = |engine, code| source.zygote_for(engine, code).preload;
    assert_eq!(preload(EngineName::CPython, "import pandas"), Preload::DataLibraries);
    assert_eq!(preload(EngineName::CPython, "1"), Preload::Standard);
    assert_eq!(preload(EngineName::QuickJs, "import pandas"), Preload::Standard);
}
