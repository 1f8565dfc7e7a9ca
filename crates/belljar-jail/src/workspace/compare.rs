//! Whether two files hold the same bytes, within a budget of bytes read.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
};

const BLOCK: u64 = 64 << 10;

/// Whether both hold the same `size` bytes. `None` once the budget is used up.
pub(super) fn same_content(
    one: OwnedFd,
    other: OwnedFd,
    size: u64,
    budget: &mut u64,
) -> io::Result<Option<bool>> {
    let Some(rest) = budget.checked_sub(size) else { return Ok(None) };
    let (mut one, mut other) = (File::from(one), File::from(other));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < size {
        ours.clear();
        theirs.clear();
        let length = (&mut one).take(BLOCK).read_to_end(&mut ours)?;
        (&mut other).take(BLOCK).read_to_end(&mut theirs)?;
        read += length as u64;
        if ours != theirs || length == 0 {
            *budget -= read.min(*budget);
            return Ok(Some(ours == theirs && read == size));
        }
    }
    *budget = rest;
    Ok(Some(true))
}
