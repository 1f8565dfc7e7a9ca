//! The lists that are shipped.

use sha2::{Digest as _, Sha256};

use super::{FILE, HASH, MAGIC, Neighbours};
use crate::table::{Piece, VectorTable};

fn of(word: &str) -> Vec<&'static str> {
    let mut pieces = Vec::new();
    VectorTable::get().pieces(word, &mut pieces);
    let [piece] = pieces[..] else { return Vec::new() };
    Neighbours::get().of(piece).filter_map(|near| VectorTable::get().word(near)).collect()
}

#[test]
fn d5_words_have_neighbours_of_like_meaning() {
    assert!(of("rain").contains(&"weather"), "{:?}", of("rain"));
    assert!(of("picture").contains(&"photo"), "{:?}", of("picture"));
    assert!(!of("rain").contains(&"invoice"));
    // Stop words, numbers, parts of words and words of several pieces have none.
    for word in ["the", "2026", "zzzz", "antidisestablishmentarianism", "获", ""] {
        assert_eq!(of(word), Vec::<&str>::new(), "{word}");
    }
}

#[test]
fn d5_every_list_is_short_and_of_other_words() {
    let (table, neighbours) = (VectorTable::get(), Neighbours::get());
    let mut lists = 0;
    for at in 0..u32::try_from(table.len()).unwrap() {
        let list: Vec<Piece> = neighbours.of(Piece(at)).collect();
        assert!(list.len() <= 8 && !list.contains(&Piece(at)), "{at}: {list:?}");
        assert!(list.iter().all(|near| table.word(*near).is_some()), "{at}: {list:?}");
        lists += usize::from(!list.is_empty());
    }
    assert!(lists > 15_000, "{lists}");
    assert_eq!(neighbours.of(Piece(u32::MAX)).count(), 0);
}

#[test]
fn d5_the_shipped_lists_are_whole_and_belong_to_the_table() {
    assert!(FILE.len() < 500_000, "{} bytes", FILE.len());
    let rest = FILE.strip_prefix(MAGIC).unwrap().strip_prefix(VectorTable::hash()).unwrap();
    assert_eq!(Sha256::digest(&rest[HASH..]).as_slice(), &rest[..HASH]);
}

#[test]
fn a_file_that_has_no_lists_gives_none() {
    assert!(Neighbours::read(FILE).is_some());
    assert!(Neighbours::read(b"").is_none());
    assert!(Neighbours::read(&FILE[1..]).is_none());
    assert!(Neighbours::read(&FILE[..FILE.len() - 1]).is_none());
    assert!(Neighbours::read(&FILE[..FILE.len() - 2]).is_none());
    assert!(Neighbours::read(&FILE[..1000]).is_none());
}
