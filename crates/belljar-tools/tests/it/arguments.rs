//! No call is held back that its schema allows, as another validator reads it.
//!
//! The other is npm's ajv. The reverse is not asked for: what our check does not understand it
//! leaves to the server. But most of what is wrong has to be found, or the check is worth nothing.

use std::fs;

use belljar_tools::{FaultKind, validate};
use serde_json::{Value, json};

use crate::{
    corpus::corpus,
    oracle::{desk, oracles, run},
};

#[test]
fn a_fault_is_a_fault_to_another_validator() {
    let schemas: Vec<Value> =
        corpus().tools().iter().map(|tool| tool.input_schema.clone()).collect();
    let desk = desk("arguments");
    fs::write(desk.join("cases.json"), json!(schemas).to_string()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/arguments.mjs");
    let (content, printed) = run("node".as_ref(), &[script, &oracles().to_string_lossy()], &desk);
    assert!(content, "{printed}");
    let judged: Vec<(usize, Value, bool)> =
        serde_json::from_slice(&fs::read(desk.join("judged.json")).unwrap()).unwrap();
    let (mut right, mut wrong, mut found) = (0_usize, 0_usize, 0_usize);
    for (at, value, valid) in judged {
        let ours = validate(&schemas[at], &value);
        match (valid, ours) {
            (true, Ok(())) => right += 1,
            (true, Err(fault)) => {
                // Another spelling of a declared field is caught where the schema leaves it open.
                let spelling = matches!(&fault.kind, FaultKind::Unknown { near: Some(_), .. });
                assert!(spelling, "{fault}\nvalue {value}\nschema {}", schemas[at]);
            }
            (false, Ok(())) => wrong += 1,
            (false, Err(_)) => {
                wrong += 1;
                found += 1;
            }
        }
    }
    println!("{right} valid values pass, {found} of {wrong} invalid ones are found");
    assert!(right > 5_000 && wrong > 1_000, "{right} {wrong}");
    assert!(found * 100 >= wrong * 97, "{found} of {wrong}");
}
