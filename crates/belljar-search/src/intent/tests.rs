//! Intents taken apart.

use super::{Intent, MOST_NEIGHBOURS, MOST_TERMS, NEIGHBOUR, sentences_of};
use crate::{Document, Index};

#[test]
fn sentences_end_where_people_end_them() {
    let text = "Get version 1.5 of node.js. Then mail it!\nDone？好。";
    let found: Vec<&str> =
        sentences_of(text).map(str::trim).filter(|one| !one.is_empty()).collect();
    assert_eq!(found, ["Get version 1.5 of node.js.", "Then mail it!", "Done？", "好。"]);
}

#[test]
fn one_sentence_is_not_asked_for_twice() {
    let document = Document { name: "send_mail", description: "list files", ..Document::default() };
    let index = Index::new([document]);
    assert!(Intent::new("Send a mail to Anna.", &index).sentences.is_empty());
    assert_eq!(Intent::new("Send a mail. List the files.", &index).sentences.len(), 2);
    assert_eq!(Intent::new(&"Send mail. ".repeat(10_000), &index).sentences.len(), 8);
}

#[test]
fn neighbours_of_words_come_after_them_and_count_less() {
    let weather = Document { name: "weather", description: "rain", ..Document::default() };
    let index = Index::new([weather, Document { name: "other", ..Document::default() }]);
    let number = |term| index.lexicon.get(term).unwrap();
    let intent = Intent::new("Will there be rain?", &index);
    let [(own, rarity), (near, of_neighbour)] = intent.whole.terms[..] else {
        unreachable!("{:?}", intent.whole.terms)
    };
    assert_eq!((own, near), (number("rain"), number("weather")));
    assert!((of_neighbour - NEIGHBOUR * rarity).abs() < 1e-6);
    // It is no word of the intent, so it is none that is shown.
    assert_eq!(intent.words.into_iter().collect::<Vec<_>>(), [(own, "rain".to_owned())]);
    // A word of the intent counts in full, also where it is a neighbour of another.
    let both = Intent::new("Will there be rain, or other weather?", &index);
    assert_eq!(both.whole.terms.iter().filter(|(_, one)| *one >= rarity * 0.99).count(), 3);
}

#[test]
fn a_word_of_one_sentence_counts_less_where_it_is_a_neighbour() {
    let weather = Document { name: "weather", description: "rain", ..Document::default() };
    let index = Index::new([weather, Document { name: "other", ..Document::default() }]);
    let intent = Intent::new("Will rain fall tomorrow? Tell me about other weather.", &index);
    let shares = |at: usize| {
        let mut shares: Vec<f32> = intent.sentences[at].terms.iter().map(|(_, one)| *one).collect();
        shares.sort_by(f32::total_cmp);
        shares
    };
    let [least, most] = shares(0)[..] else { unreachable!("{:?}", shares(0)) };
    assert!((least - NEIGHBOUR).abs() < 1e-6 && (most - 1.0).abs() < 1e-6, "{least} {most}");
}

#[test]
fn an_intent_of_many_words_has_few_terms() {
    let table = crate::VectorTable::get();
    let words: Vec<&str> =
        (0..30_000).filter_map(|at| table.word(crate::table::Piece(at))).collect();
    let index = Index::new(
        [Document { name: "all", ..Document::default() }]
            .into_iter()
            .chain(words.iter().map(|word| Document { name: word, ..Document::default() })),
    );
    let english: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| word.len() > 5 && word.bytes().all(|one| one.is_ascii_lowercase()))
        .collect();
    let intent = Intent::new(&english.join(" "), &index);
    assert_eq!(intent.whole.terms.len(), MOST_TERMS + MOST_NEIGHBOURS);
    assert_eq!(intent.words.len(), MOST_TERMS);
}
