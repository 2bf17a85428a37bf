//! Memory for the next children of a thread, asked for at once.
//!
//! glibc gets what threads other than the first need from the kernel a page at a time, with a system call
//! each, and sixteen children fill a page. If much is asked for and given back, the thread keeps it for
//! what it is asked for next; the pages are not touched before. That takes a tenth off the start of a
//! worker, and a fifth off that of a supervisor. Where an allocator has pages of its own, it is one more
//! piece of memory for each [`WORKERS`].
//!
//! Knows how many tasks the thread has spawned, and of each only whether it is a supervisor's.

use std::cell::Cell;
use std::hint::black_box;

/// So many share what is asked for at once.
const WORKERS: u32 = 128;

/// A supervisor, with the hub and the driver that it makes for itself, needs as much as so many workers.
const SUPERVISOR: u32 = 4;

/// Twice what they need, as far as the thread that starts them asks for it. From 64 KB on, glibc would look
/// through all that is free when this is given back, and from 128 KB on return it to the kernel.
const BYTES: usize = 60 * 1024;

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(WORKERS) };
}

/// Comes before each task that is spawned.
pub(super) fn make_room(supervisor: bool) {
    let workers = if supervisor { SUPERVISOR } else { 1 };
    // Without it, the thread is about to end.
    if LEFT.try_with(|left| is_used_up(left, workers)).unwrap_or(false) {
        drop(black_box(Vec::<u8>::with_capacity(BYTES)));
    }
}

/// Whether less than that was left. The first of them come without: most threads start few.
fn is_used_up(left: &Cell<u32>, workers: u32) -> bool {
    let less = left.get().checked_sub(workers);
    left.set(less.unwrap_or(WORKERS - workers));
    less.is_none()
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_for_so_many_at_once_after_the_first_so_many() {
        for each in [1, SUPERVISOR] {
            let (left, many) = (Cell::new(WORKERS), WORKERS / each);
            let made: Vec<_> = (1..=3 * many + 1).filter(|_| is_used_up(&left, each)).collect();
            assert_eq!(made, [many + 1, 2 * many + 1, 3 * many + 1]);
        }
    }
}
