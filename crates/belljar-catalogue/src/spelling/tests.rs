//! Words, folding and likeness of names.

use proptest::prelude::*;

use super::{distance, fold, nearest, words};

#[test]
fn spellings_of_one_name_fold_to_one() {
    for spelling in ["readFile", "read_file", "read-file", "Read.File", "READ FILE", "_read__file_"]
    {
        assert_eq!(fold(spelling), "readfile", "{spelling}");
    }
}

#[test]
fn words_are_split_at_separators_and_humps() {
    assert_eq!(words("getHTTPStatus"), ["get", "HTTP", "Status"]);
    assert_eq!(words("API-get-user"), ["API", "get", "user"]);
    assert_eq!(words("__proto__"), ["proto"]);
    assert_eq!(words("v2Users"), ["v2", "Users"]);
    assert_eq!(words("搜索_文件"), ["搜索", "文件"]);
    assert_eq!(words("--"), Vec::<String>::new());
}

#[test]
fn distance_counts_edits_and_swaps() {
    assert_eq!(distance("path", "pth"), 1);
    assert_eq!(distance("path", "apth"), 1);
    assert_eq!(distance("", "abc"), 3);
    assert_eq!(distance("kitten", "sitting"), 3);
}

#[test]
fn what_is_like_a_name_comes_best_first() {
    let names = ["write_file", "read_file", "read_media_file", "list_directory"];
    assert_eq!(nearest("readFiel", names, 3), ["read_file"]);
    assert_eq!(nearest("read", names, 3), ["read_file", "read_media_file"]);
    assert_eq!(nearest("zzz", names, 3), Vec::<String>::new());
}

proptest! {
    #[test]
    fn distance_is_a_metric_on_short_words(a in ".{0,12}", b in ".{0,12}") {
        prop_assert_eq!(distance(&a, &b), distance(&b, &a));
        prop_assert_eq!(distance(&a, &a), 0);
        prop_assert!(distance(&a, &b) <= a.chars().count().max(b.chars().count()));
    }

    #[test]
    fn the_words_of_a_name_hold_all_it_folds_to(name in ".{0,40}") {
        prop_assert_eq!(fold(&words(&name).concat()), fold(&name));
    }
}
