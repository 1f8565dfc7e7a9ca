//! O2: the short form of `scripts/chaos`: a host is killed under load, and nothing is lost, doubled, stuck
//! or left behind.

use crate::command::{BELLJAR, Place};
use belljar_testing::sandboxed;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/chaos");

#[sandboxed]
#[test]
fn o2_five_kills_lose_and_double_nothing() {
    let place = Place::new();
    let ran = place.command("python3").args([SCRIPT, "5", "--belljar", BELLJAR]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    // Control: there was something that could have been lost.
    let effects = said.split_once(" effects").and_then(|(before, _)| before.rsplit(' ').next());
    assert!(effects.and_then(|count| count.parse::<u32>().ok()) > Some(10), "{said}");
}
