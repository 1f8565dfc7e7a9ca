//! The table that is shipped, and the tokenizer it goes with.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{DIMENSIONS, FILE, HASH, INSIDE, MAGIC, Piece, VectorTable};
use crate::words::{Humps, Splitter};

/// The pieces of a text as the vocabulary writes them.
fn pieces(table: &VectorTable, text: &str) -> Vec<String> {
    let mut names = vec![String::new(); table.len()];
    for (piece, at) in &table.first {
        names[*at as usize] = (*piece).to_owned();
    }
    for (piece, at) in &table.further {
        names[*at as usize] = format!("{INSIDE}{piece}");
    }
    let (mut found, mut all) = (Vec::new(), Vec::new());
    Splitter::default().split(text, usize::MAX, Humps::Keep, |word| {
        table.pieces(word.text, &mut found);
        all.extend(found.iter().map(|Piece(at)| names[*at as usize].clone()));
    });
    all
}

#[test]
fn d5_words_come_apart_as_in_the_reference() {
    let table = VectorTable::get();
    let reference: Vec<Value> = serde_json::from_str(include_str!("reference.json")).unwrap();
    assert!(reference.len() > 20);
    for case in reference {
        let text = case["text"].as_str().unwrap();
        let expected: Vec<String> = serde_json::from_value(case["pieces"].clone()).unwrap();
        assert_eq!(pieces(table, text), expected, "{text:?}");
    }
}

#[test]
fn d5_the_shipped_table_is_whole_and_small_enough() {
    assert!(FILE.len() < 10_000_000, "{} bytes", FILE.len());
    let hash = Sha256::digest(&FILE[MAGIC.len() + HASH..]);
    assert_eq!(hash.as_slice(), VectorTable::hash());
    assert_eq!(VectorTable::get().len(), 29_523);
}

/// `scripts/distill` writes the files and their hashes together.
#[test]
fn d5_the_shipped_files_are_those_that_the_manifest_names() {
    let manifest = include_str!("../../table/SOURCES.txt");
    let lists = include_bytes!("../../table/neighbours.bin");
    for (name, file) in [("table.bin", FILE), ("neighbours.bin", lists.as_slice())] {
        let hash: String = Sha256::digest(file).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(manifest.lines().any(|line| line == format!("{hash}  {name}")), "{name}: {hash}");
    }
    let sources = manifest.lines().filter(|line| line.starts_with("  from ")).count();
    let licences = manifest.lines().filter(|line| line.starts_with("  licence ")).count();
    assert!(sources > 5 && licences == sources, "{sources} sources, {licences} licences");
}

#[test]
fn d5_words_of_like_meaning_are_near_and_others_are_not() {
    let table = VectorTable::get();
    let nearness = |left: &str, right: &str| {
        let vector = |word: &str| {
            let (mut found, mut sum) = (Vec::new(), [0.0; DIMENSIONS]);
            table.pieces(word, &mut found);
            found.iter().for_each(|piece| table.add(*piece, 1.0, &mut sum));
            crate::meaning::Meaning::of(&sum)
        };
        let right = vector(right);
        crate::meaning::QueryMeaning::new(&vector(left)).nearness(&right.numbers, right.scale)
    };
    assert!(nearness("weather", "weather") > 0.98);
    assert!(nearness("weather", "meteorological") > 0.4);
    assert!(nearness("weather", "invoice") < 0.15);
}

#[test]
fn a_file_that_is_no_table_gives_none() {
    assert!(VectorTable::read(b"").is_none());
    assert!(VectorTable::read(&FILE[..FILE.len() - 1]).is_none());
    assert!(VectorTable::read(&FILE[1..]).is_none());
    assert!(VectorTable::read(&FILE[..1000]).is_none());
}
