//! A program that forgot `init` gets an error, not a chain of copies of itself.

use super::{BuildError, check};
use std::ffi::OsStr;

#[test]
fn a_zygote_that_ran_on_as_a_program_is_refused() {
    let zygote = Some(OsStr::new("__zygote"));
    assert!(matches!(check(false, zygote, false), Err(BuildError::InsideZygote)));
    assert!(matches!(check(true, zygote, true), Err(BuildError::InsideZygote)));
}

#[test]
fn a_program_that_never_called_init_is_refused_before_it_starts_anything() {
    assert!(matches!(check(false, None, false), Err(BuildError::NotInitialised)));
    assert!(matches!(check(false, None, true), Ok(())));
    assert!(matches!(check(true, Some(OsStr::new("serve")), false), Ok(())));
}
