//! A pace in lines per second.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Spreads lines evenly over time, without catching up after an outage.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Lines per second; 0 is no limit.
    rate: u32,
    next: Instant,
}

impl Pace {
    pub(crate) fn new(rate: u32) -> Self {
        Self { rate, next: Instant::now() }
    }

    /// Returns how many lines to send at once: at most `most`, and at most those of a twentieth of a
    /// second.
    pub(crate) fn stride(&self, most: usize) -> usize {
        match self.rate {
            0 => most,
            rate => (rate as usize / 20).clamp(1, most),
        }
    }

    /// Waits until `lines` more lines are due.
    pub(crate) async fn wait(&mut self, lines: usize) {
        if self.rate > 0 {
            sleep_until(self.next).await;
            let share = Duration::from_secs_f64(lines as f64 / f64::from(self.rate));
            self.next = self.next.max(Instant::now()) + share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thousand_lines_at_five_hundred_a_second_take_two_seconds() {
        let begun = Instant::now();
        let mut pace = Pace::new(500);

        for _ in 0..40 {
            pace.wait(pace.stride(256)).await;
        }
        pace.wait(0).await;

        assert_eq!(begun.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_nothing_waits() {
        let begun = Instant::now();
        let mut pace = Pace::new(0);

        pace.wait(1_000_000).await;
        pace.wait(1_000_000).await;

        assert_eq!((pace.stride(256), begun.elapsed()), (256, Duration::ZERO));
    }
}
