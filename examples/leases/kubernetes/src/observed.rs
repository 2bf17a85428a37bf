//! When this process has seen the objects change.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The last version of each object that this process has seen.
#[derive(Default)]
pub(crate) struct Observed(Mutex<HashMap<Box<str>, Version>>);

struct Version {
    version: Box<str>,
    /// Before the request of this process that wrote it, or else as `seen`.
    sent: Instant,
    /// After the first answer that showed it.
    seen: Instant,
}

impl Observed {
    /// Records that an answer has shown this version.
    pub(crate) fn see(&self, name: &str, version: &str, now: Instant) {
        self.write(name, version, now, now);
    }

    /// Records that a request which was sent then has written this version.
    pub(crate) fn write(&self, name: &str, version: &str, sent: Instant, now: Instant) {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match objects.get_mut(name) {
            Some(last) if &*last.version == version => {
                // A different request of this process may have seen it before its writer has.
                last.sent = last.sent.min(sent);
            }
            _ => {
                objects.insert(name.into(), Version { version: version.into(), sent, seen: now });
            }
        }
    }

    /// Returns how long the object has had this version, as its holder has to count.
    pub(crate) fn since_sent(&self, name: &str, version: &str, now: Instant) -> Duration {
        self.since(name, version, |it| now.saturating_duration_since(it.sent))
    }

    /// Returns how long the object has had this version, as other holders have to count.
    pub(crate) fn since_seen(&self, name: &str, version: &str, now: Instant) -> Duration {
        self.since(name, version, |it| now.saturating_duration_since(it.seen))
    }

    fn since(
        &self,
        name: &str,
        version: &str,
        time: impl FnOnce(&Version) -> Duration,
    ) -> Duration {
        let objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A version that has been replaced meanwhile can't be replaced by the caller either.
        objects.get(name).filter(|it| &*it.version == version).map(time).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_version_counts_from_when_it_was_first_seen() {
        let (observed, began) = (Observed::default(), Instant::now());
        observed.see("app", "1", began);
        observed.see("app", "1", began + 5 * SECOND);
        assert_eq!(observed.since_seen("app", "1", began + 7 * SECOND), 7 * SECOND);
        assert_eq!(observed.since_seen("app", "2", began + 7 * SECOND), Duration::ZERO);
        observed.see("app", "2", began + 8 * SECOND);
        assert_eq!(observed.since_seen("app", "2", began + 9 * SECOND), SECOND);
        assert_eq!(observed.since_seen("other", "2", began + 9 * SECOND), Duration::ZERO);
    }

    #[test]
    fn a_holder_counts_from_its_request_and_a_standby_from_the_answer() {
        let (observed, began) = (Observed::default(), Instant::now());
        observed.write("app", "1", began, began + 3 * SECOND);
        assert_eq!(observed.since_sent("app", "1", began + 4 * SECOND), 4 * SECOND);
        assert_eq!(observed.since_seen("app", "1", began + 4 * SECOND), SECOND);
        // A standby of this process has read it before the holder's request was answered.
        observed.see("app", "2", began + 6 * SECOND);
        observed.write("app", "2", began + 5 * SECOND, began + 7 * SECOND);
        assert_eq!(observed.since_sent("app", "2", began + 8 * SECOND), 3 * SECOND);
        assert_eq!(observed.since_seen("app", "2", began + 8 * SECOND), 2 * SECOND);
    }
}
