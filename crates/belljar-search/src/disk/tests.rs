//! Files that are whole, and files that are not.

use super::{IndexLoadError, MAGIC};
use crate::{Document, Index, Query, VectorTable};

fn index() -> Index {
    let tool =
        |name, description| Document { server: "s", name, description, ..Document::default() };
    Index::new([tool("read_file", "Reads a file"), tool("send_mail", "Sends 邮件 to someone")])
}

fn bytes(index: &Index) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tools.index");
    index.save(&path).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    std::fs::read(path).unwrap()
}

#[test]
fn d5_a_saved_index_answers_like_the_one_it_was() {
    let index = index();
    let loaded = Index::from_bytes(&bytes(&index)).unwrap();
    for intent in ["read a file", "邮件", "electronic letter", ""] {
        let query = Query::new(intent, 5);
        assert_eq!(loaded.search(&query), index.search(&query));
    }
}

#[test]
fn d5_every_damage_is_noticed() {
    let whole = bytes(&index());
    assert!(Index::from_bytes(&whole).is_ok());
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert!(Index::from_bytes(&damaged).is_err(), "byte {at}");
    }
    for length in [0, 7, 8, 40, 72, 100, whole.len() - 1] {
        assert!(Index::from_bytes(&whole[..length]).is_err(), "{length} bytes");
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(matches!(Index::from_bytes(&longer), Err(IndexLoadError::Damaged)));
}

#[test]
fn a_lie_with_the_right_hash_is_found_out() {
    use sha2::{Digest as _, Sha256};
    // One term, one tool with a term that is not there; then far more tools than bytes.
    let mut bodies = vec![vec![0, 0, 0, 0, 255, 255, 255, 255]];
    let mut body = vec![0; 4];
    body.extend(1_u32.to_le_bytes());
    body.extend([0; 24]);
    body.extend(1_u32.to_le_bytes());
    body.extend([9, 0, 0, 0, 0, 0, 128, 63]);
    body.extend([0; 4 + 256]);
    bodies.push(body);
    for body in bodies {
        let parts = [MAGIC.as_slice(), VectorTable::hash(), &Sha256::digest(&body), &body];
        assert!(matches!(Index::from_bytes(&parts.concat()), Err(IndexLoadError::Damaged)));
    }
}
