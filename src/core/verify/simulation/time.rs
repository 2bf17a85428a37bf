//! Letting time pass.

use std::time::{Duration, Instant};

use super::Simulation;
use crate::core::MachineEvent;

impl Simulation {
    /// Lets everything happen that is due now.
    pub(in crate::core) fn settle(&mut self) {
        let mut events = 0;
        while !self.finished() {
            let due = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now);
            if let Some(entry) = due {
                let (key, incarnation, happening) = entry.remove();
                self.deliver(key, incarnation, happening);
            } else if self.machine.next_deadline().is_some_and(|at| at <= self.now) {
                self.event(MachineEvent::Tick);
            } else {
                return;
            }
            events += 1;
            self.check(events < 1_000 + 16 * self.fakes.len(), "an instant has few events");
        }
    }

    /// The machine's next deadline comes.
    pub(in crate::core) fn due(&mut self) {
        let at = self.machine.next_deadline().expect("a deadline");
        self.now = self.now.max(at);
        self.event(MachineEvent::Tick);
    }

    /// Lets time pass, from one deadline to the next.
    pub(in crate::core) fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        self.settle();
        while let Some(next) = self.next_instant().filter(|&next| next <= end) {
            self.now = self.now.max(next);
            self.settle();
        }
        self.now = end;
    }

    /// Lets time pass until nothing more is due than heartbeats, but not for longer than this. Returns how long it
    /// took, or nothing if it was not enough.
    pub(in crate::core) fn until_idle(&mut self, limit: Duration) -> Option<Duration> {
        let begin = self.now;
        self.settle();
        while let Some(next) = self.next_instant() {
            if self.agenda.is_empty() && self.machine.only_watches() {
                break;
            }
            if next > begin + limit {
                return None;
            }
            self.now = self.now.max(next);
            self.settle();
        }
        Some(self.now - begin)
    }

    pub(super) fn next_instant(&self) -> Option<Instant> {
        if self.finished() {
            return None;
        }
        let planned = self.agenda.first_key_value().map(|(&(at, _), _)| at);
        planned.into_iter().chain(self.machine.next_deadline()).min()
    }
}
