//! The heap of a zygote, without holes.
//!
//! Memory that was freed while the zygote got warm is scattered among used memory. A cell that
//! allocates there makes a page its own for every few bytes; one that finds no holes takes the
//! pages after the last, which are together.

use std::mem;

/// A block for which there is no hole.
const LARGE: usize = 96 << 10;
/// Sizes of holes, largest first: the rest of one may hold a smaller block.
const SIZES: [usize; 10] =
    [64 << 10, 32 << 10, 16 << 10, 8 << 10, 6 << 10, 4 << 10, 3 << 10, 2 << 10, 1536, 1280];
const SMALL: usize = 1024;
const STEP: usize = 16;
/// More than a zygote has: an allocator that works otherwise is left as it is.
const MOST: usize = 4 << 20;

/// Fills them, for good.
pub(super) fn fill() {
    let end = address(&block(LARGE));
    let mut filled = 0;
    let small = (1..=SMALL / STEP).rev().map(|steps| steps * STEP - mem::size_of::<usize>());
    for size in SIZES.into_iter().chain(small) {
        loop {
            let block = block(size);
            if address(&block) >= end || filled > MOST {
                break;
            }
            filled += size;
            mem::forget(block);
        }
    }
}

fn block(size: usize) -> Vec<u8> {
    Vec::with_capacity(size)
}

fn address(block: &[u8]) -> usize {
    block.as_ptr().addr()
}
