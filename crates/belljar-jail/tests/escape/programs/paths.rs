//! Every way to change a file, on the software a cell is shown, on what it is granted to read, and
//! on a workspace, whose own files stay as they are whatever the cell does.

use std::path::PathBuf;

use super::tamper;
use crate::harness::{
    attempt::{Attempt, Judge, Setting::User},
    bait::Bait,
    home::{INNER, KEPT, ONE, READ, WRITE},
    software::LIBRARY,
};

/// One attempt for each way of [`tamper`].
macro_rules! each_way {
    ($what:literal, $path:path, $as:path) => {
        each_way!(@ $what, $path, $as, [
            write append truncate truncate_by_opening chmod chmod_by_descriptor chmod_by_link
            touch touch_by_descriptor set_attribute set_attribute_by_descriptor rename unlink
            make_beside make_directory_beside make_link_beside make_fifo_beside second_name
            name_the_nameless allocate write_by_mapping write_by_mapping_to_read reopen_to_write
            reopen_handle_to_write
        ])
    };
    (@ $what:literal, $path:path, $as:path, [$($way:ident)*]) => {
        &[$($as(Attempt::new(concat!(stringify!($way), "_", $what), User, |bait| {
            tamper::$way(&$path(bait))
        })),)*]
    };
}

pub(crate) const SOFTWARE: &[Attempt] = each_way!("software", library, plainly);
pub(crate) const READ_GRANTS: &[Attempt] = each_way!("read_grant", kept_to_read, with_grants);
pub(crate) const READ_GRANTS_WITHIN: &[Attempt] =
    each_way!("file_in_read_grant", inner_to_read, with_grants);
pub(crate) const READ_GRANTS_OF_FILES: &[Attempt] =
    each_way!("granted_file", one_to_read, with_grants);
/// A tree to be read, within one that may be written to.
pub(crate) const NESTED_READ_GRANTS: &[Attempt] =
    each_way!("nested_grant", inner_to_read_in_write, with_grants);
/// A guest may do all of it, in a layer of its own.
pub(crate) const WORKSPACES: &[Attempt] = each_way!("workspace", kept_in_work, on_own_layer);

const fn plainly(attempt: Attempt) -> Attempt {
    attempt
}

const fn with_grants(attempt: Attempt) -> Attempt {
    attempt.granted(Judge::ReportAndFiles)
}

const fn on_own_layer(attempt: Attempt) -> Attempt {
    attempt.granted(Judge::Files)
}

fn library(bait: &Bait) -> PathBuf {
    bait.home.join("software").join(LIBRARY)
}

fn kept_to_read(bait: &Bait) -> PathBuf {
    bait.home.join(READ).join(KEPT)
}

fn inner_to_read(bait: &Bait) -> PathBuf {
    bait.home.join(READ).join(INNER)
}

fn inner_to_read_in_write(bait: &Bait) -> PathBuf {
    bait.home.join(WRITE).join(INNER)
}

fn one_to_read(bait: &Bait) -> PathBuf {
    bait.home.join(ONE)
}

fn kept_in_work(bait: &Bait) -> PathBuf {
    bait.work().join(KEPT)
}
