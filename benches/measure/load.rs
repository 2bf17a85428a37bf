//! What other processes take of the machine while something is measured.
//!
//! Linux tells it in `/proc`, in hundredths of a second. Elsewhere nothing is known of it.

use std::fs;
use std::time::Duration;

/// A round counts as disturbed if others had more than this of the machine.
pub(crate) const MOST_FOREIGN: f64 = 0.08;

/// Fewer ticks may come from how they are counted.
const GRAIN: u64 = 3;

/// Of all processors together, in ticks since the machine was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    all: u64,
    busy: u64,
    /// Of this process, and of those it has started that are over.
    own: u64,
}

impl Load {
    pub(crate) fn now() -> Option<Self> {
        let machine = fs::read_to_string("/proc/stat").ok()?;
        let line = machine.lines().next()?.strip_prefix("cpu ")?;
        // user, nice, system, idle, iowait, irq, softirq, steal. What follows is part of user.
        let ticks: Vec<u64> = line.split_whitespace().take(8).flat_map(str::parse).collect();
        let (all, idle) = (ticks.iter().sum(), ticks.get(3)? + ticks.get(4)?);
        Some(Self { all, busy: all - idle, own: own_ticks()?.iter().sum() })
    }

    /// The share of the machine that others had since `self`, and whether that is too much.
    pub(crate) fn foreign(self, now: Self) -> (f64, bool) {
        let all = now.all.saturating_sub(self.all).max(1);
        let busy = now.busy.saturating_sub(self.busy);
        let foreign = busy.saturating_sub(now.own.saturating_sub(self.own));
        let share = foreign as f64 / all as f64;
        (share, foreign > GRAIN && share > MOST_FOREIGN)
    }
}

/// What the threads of this process that are there have worked; zero where nobody tells it.
///
/// In nanoseconds, unlike the ticks: `schedstat` begins with them.
pub(crate) fn worked() -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanos = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// `utime`, `stime`, `cutime` and `cstime`.
fn own_ticks() -> Option<[u64; 4]> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the program's name, which is in parentheses, from field 3: `utime` is 14.
    let fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let ticks: Vec<u64> = fields.take(4).flat_map(str::parse).collect();
    ticks.try_into().ok()
}
