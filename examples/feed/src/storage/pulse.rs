//! A heartbeat that shows whether the database responds, however long a commit takes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::timeout;
use verger::Exit;

/// The interval between two beats.
const BEAT: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub(crate) struct Pulse {
    beaten: AtomicBool,
}

impl Pulse {
    /// Waits for `work`, and beats until it is done.
    pub(crate) async fn beating<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            self.beaten.store(true, Relaxed);
            if let Ok(done) = timeout(BEAT, &mut work).await {
                return done;
            }
        }
    }

    /// Whether there was a beat since the last check.
    pub(crate) fn check(&self) -> Exit {
        if self.beaten.swap(false, Relaxed) { Ok(()) } else { Err("no sign of life".into()) }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn there_are_beats_during_long_work_and_none_after_it() {
        let (pulse, began) = (Pulse::default(), Instant::now());
        let checking = async {
            for _ in 0..9 {
                sleep(2 * BEAT).await;
                assert!(pulse.check().is_ok(), "after {:?}", began.elapsed());
            }
        };

        tokio::join!(pulse.beating(sleep(20 * BEAT)), checking);

        assert_eq!(began.elapsed(), 20 * BEAT);
        assert!(pulse.check().is_ok(), "it has beaten since the last check");
        assert!(pulse.check().is_err(), "and not since this one");
    }
}
