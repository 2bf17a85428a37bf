//! Memory for the next children of a thread, asked for at once.
//!
//! glibc gets what threads other than the first need from the kernel a page at a time, with a system call
//! each, and sixteen children fill a page. If much is asked for and given back, the thread keeps it for
//! what it is asked for next; the pages are not touched before. That takes a tenth off a start. Where
//! an allocator has pages of its own, it is one more piece of memory for each [`CHILDREN`].
//!
//! Knows how many tasks the thread has spawned, and nothing of what they are.

use std::cell::Cell;
use std::hint::black_box;

/// So many share what is asked for at once.
const CHILDREN: u32 = 128;

/// Twice what they need, as far as the thread that starts them asks for it. From 64 KB on, glibc would look
/// through all that is free when this is given back, and from 128 KB on return it to the kernel.
const BYTES: usize = 60 * 1024;

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(CHILDREN) };
}

/// Comes before each task that is spawned.
pub(super) fn make_room() {
    // Without it, the thread is about to end.
    if LEFT.try_with(one_less).unwrap_or(false) {
        drop(black_box(Vec::<u8>::with_capacity(BYTES)));
    }
}

/// Whether nothing was left. The first of them come without: most threads start few.
fn one_less(left: &Cell<u32>) -> bool {
    let less = left.get().checked_sub(1);
    left.set(less.unwrap_or(CHILDREN - 1));
    less.is_none()
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_for_so_many_at_once_after_the_first_so_many() {
        let left = Cell::new(CHILDREN);
        let made: Vec<_> = (1..=3 * CHILDREN + 1).filter(|_| one_less(&left)).collect();
        assert_eq!(made, [CHILDREN + 1, 2 * CHILDREN + 1, 3 * CHILDREN + 1]);
    }
}
