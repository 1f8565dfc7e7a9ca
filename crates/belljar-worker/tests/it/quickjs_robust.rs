//! No input makes the engine panic or hang (A7, A10).

use std::{
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use belljar_contract::{ErrorCode, ErrorKind, Language};
use belljar_wire::RunCommand;
use belljar_worker::{CodeRunner, HostLink, quickjs::QuickJs};
use proptest::prelude::*;

use crate::harness::command;

/// Runs many pieces of code in one engine, to have time for many.
fn survive(codes: Vec<RunCommand>) {
    let (cell, mut host) = UnixStream::pair().expect("a socket pair");
    let reader = thread::spawn(move || std::io::copy(&mut host, &mut std::io::sink()));
    let engine = thread::Builder::new().stack_size(64 << 20).spawn(move || {
        let link = HostLink::new(cell);
        let mut engine = QuickJs::warm().expect("the engine warms");
        for mut command in codes {
            command.limits.wall_ms = 200;
            let began = Instant::now();
            if let Err(error) = engine.run(command.clone(), &link) {
                assert_ne!(error.code.kind(), ErrorKind::SandboxError, "{error:?}");
                // A place is in the source, or at its end.
                let lines = command.code.split('\n').count();
                assert!(error.line.is_none_or(|line| line as usize <= lines), "{error:?}");
                if error.code == ErrorCode::LimitTimeout {
                    engine = QuickJs::warm().expect("the engine warms");
                }
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{}", command.code);
        }
    });
    engine.expect("a thread").join().expect("the engine does not panic");
    let _ = reader.join();
}

fn of_language(code: String, language: Language) -> RunCommand {
    RunCommand { language, ..command(&code) }
}

fn language() -> impl Strategy<Value = Language> {
    prop_oneof![Just(Language::TypeScript), Just(Language::JavaScript)]
}

/// Pieces that make parsers and transformers work for their living, one to a space; `~` stands
/// for a space within one.
const PIECES: &str = "a b 1 's' `t${ }` ( ) [ ] { } < > => = + ? : ; , . ... ?. ! / /re/g ~ async~ \
    await~ function~ class~ extends~ enum~ namespace~ declare~ abstract~ interface~ type~ as~ \
    satisfies~ export~ import~ default~ return~ throw~ if~ else~ for~ of~ while~ break try~ catch~ \
    finally~ const~ let~ var~ new~ this super yield~ static~ get~ #p @d~ null undefined é 😀 0x1 1n \
    /*~c~*/ using~ \u{2028} \n";

fn piece() -> impl Strategy<Value = String> {
    let pieces = PIECES.split(' ').map(|piece| piece.replace('~', " "));
    proptest::sample::select(pieces.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A7: arbitrary printable ASCII.
    #[test]
    fn arbitrary_text_never_panics(
        codes in prop::collection::vec(("[ -~\n]{0,80}", language()), 20)
    ) {
        survive(codes.into_iter().map(|(code, language)| of_language(code, language)).collect());
    }

    /// A7: arbitrary sequences of tokens.
    #[test]
    fn arbitrary_tokens_never_panic(
        codes in prop::collection::vec((prop::collection::vec(piece(), 0..24), language()), 20)
    ) {
        survive(codes.into_iter().map(|(code, of)| of_language(code.concat(), of)).collect());
    }

    /// A7: arbitrary Unicode, odd line ends included.
    #[test]
    fn arbitrary_unicode_never_panics(
        codes in prop::collection::vec((any::<String>(), language()), 20)
    ) {
        survive(codes.into_iter().map(|(code, language)| of_language(code, language)).collect());
    }
}
