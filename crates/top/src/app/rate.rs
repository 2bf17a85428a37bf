//! How often children are restarted, from a counter that the server sends.

use std::collections::VecDeque;

use crate::text::{count, duration};

const MINUTE_MS: u64 = 60_000;

/// The last minute of a counter.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Times of the server, and the counter then.
    samples: VecDeque<(u64, u64)>,
}

impl Rate {
    pub(crate) fn record(&mut self, at_ms: u64, counter: u64) {
        // A counter that has gone back is that of another process.
        match self.samples.back() {
            // An older snapshot, which has arrived after a change.
            Some(&(last, _)) if at_ms < last => return,
            Some(&(_, before)) if counter < before => self.samples.clear(),
            _ => {}
        }
        self.samples.push_back((at_ms, counter));
        // The first sample is at least a minute old, if there is one.
        while self.samples.get(1).is_some_and(|&(second, _)| second + MINUTE_MS <= at_ms) {
            self.samples.pop_front();
        }
    }

    /// The restarts of the last minute, or since the first sample.
    pub(crate) fn text(&self) -> String {
        let (Some(&(first_ms, first)), Some(&(last_ms, last))) =
            (self.samples.front(), self.samples.back())
        else {
            return "0 restarts".into();
        };
        let restarts = count(last - first, "restart", "restarts");
        match last_ms.saturating_sub(first_ms) {
            0..1_000 => restarts,
            MINUTE_MS.. => format!("{restarts}/min"),
            window => format!("{restarts} in {}", duration(window / 1_000 * 1_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_those_of_the_last_minute() {
        let mut rate = Rate::default();
        assert_eq!(rate.text(), "0 restarts");
        rate.record(1_000, 10);
        rate.record(15_000, 11);
        assert_eq!(rate.text(), "1 restart in 14s");
        rate.record(61_000, 30);
        assert_eq!(rate.text(), "20 restarts/min");
        rate.record(75_000, 31);
        assert_eq!(rate.text(), "20 restarts/min");
    }

    #[test]
    fn a_new_process_is_counted_from_its_beginning() {
        let mut rate = Rate::default();
        rate.record(1_000, 10);
        rate.record(5_000, 2);
        rate.record(8_000, 3);
        assert_eq!(rate.text(), "1 restart in 3s");
    }
}
