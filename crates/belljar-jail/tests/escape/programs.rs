//! Attempts that only make sense where guests are programs: what bounds the calls that are allowed
//! there, and what becomes of the host's own files that such cells are shown or granted.
//!
//! Those on granted files are made in cells of scripts too; all others in cells of programs only. Their
//! controls are like any other's.

mod bounds;
mod execution;
mod grants;
mod kin;
mod paths;
mod privilege;
mod tamper;

use crate::harness::attempt::Attempt;

/// Every attempt of this kind, by what it is aimed at.
pub(crate) const MECHANISMS: &[(&str, &[Attempt])] = &[
    ("execution", execution::ATTEMPTS),
    ("kin", kin::ATTEMPTS),
    ("bounds", bounds::ATTEMPTS),
    ("software", paths::SOFTWARE),
    ("privilege", privilege::IN_TMP),
];

/// Those in cells that are granted something, which are never parked ones.
pub(crate) const GRANTED: &[(&str, &[Attempt])] = &[
    ("read_grants", paths::READ_GRANTS),
    ("files_in_read_grants", paths::READ_GRANTS_WITHIN),
    ("nested_grants", paths::NESTED_READ_GRANTS),
    ("granted_files", paths::READ_GRANTS_OF_FILES),
    ("write_grants", privilege::ON_WRITE_GRANT),
    ("workspaces", paths::WORKSPACES),
    ("ways_out_of_grants", grants::ATTEMPTS),
    ("fifos_in_grants", grants::FIFO_ATTEMPTS),
    ("neighbours_with_grants", grants::BESIDE),
];

/// Starts processes that mean to outlive the run: in sessions of their own, deaf to signals.
pub(crate) fn leave_daemons() {
    bounds::leave_daemons();
}

/// Whether an attempt changes files that others need, outside.
pub(crate) fn is_on_files(attempt: &Attempt) -> bool {
    let own = [paths::SOFTWARE, privilege::IN_TMP].into_iter().flatten();
    attempt.granted.is_some() || own.into_iter().any(|other| other.name == attempt.name)
}
