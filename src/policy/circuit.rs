//! A circuit: whether a call is worth being made at all.
//!
//! The rules of a circuit breaker over instants that are arguments. It makes no call, waits for
//! nothing and knows no task: see [`CircuitBreaker`](crate::CircuitBreaker).
//!
//! # Invariants
//!
//! 1. While it is half open, one call is under way at most.
//! 2. What becomes of a call that was let through before the last change changes nothing.
//! 3. It opens with the failure that makes it `max_failures` in a row, and not before.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::later;

/// Whether a [`CircuitBreaker`](crate::CircuitBreaker) lets calls through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// Calls are made.
    Closed,
    /// Calls are refused, until the reset time is over.
    Open,
    /// One call is made to see whether it works again; the others are refused.
    HalfOpen,
}

impl fmt::Display for CircuitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        })
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Circuit {
    max_failures: u32,
    reset_after: Duration,
    /// So many failures in a row.
    failures: u32,
    /// When the next probe may be made; `None` while it is closed.
    opens: Option<Instant>,
    probe: bool,
    /// How often it has changed.
    epoch: u64,
}

/// That a call may be made. It is to be told what became of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    epoch: u64,
}

/// From what to what a circuit has changed.
pub(crate) type Change = (CircuitState, CircuitState);

impl Circuit {
    pub(crate) fn new(max_failures: u32, reset_after: Duration) -> Self {
        Self { max_failures, reset_after, failures: 0, opens: None, probe: false, epoch: 0 }
    }

    /// What it is. That the reset time is over is noticed by the next call, and not before.
    pub(crate) fn state(&self) -> CircuitState {
        match (self.opens, self.probe) {
            (None, _) => CircuitState::Closed,
            (Some(_), false) => CircuitState::Open,
            (Some(_), true) => CircuitState::HalfOpen,
        }
    }

    /// Lets a call through, or says for how long none will be.
    pub(crate) fn admit(&mut self, now: Instant) -> (Result<Permit, Duration>, Option<Change>) {
        match self.opens {
            None => (Ok(self.permit()), None),
            Some(_) if self.probe => (Err(Duration::ZERO), None),
            Some(at) if now < at => (Err(at - now), None),
            Some(_) => {
                self.probe = true;
                self.epoch += 1;
                let change = (CircuitState::Open, CircuitState::HalfOpen);
                (Ok(self.permit()), Some(change))
            }
        }
    }

    fn permit(&self) -> Permit {
        Permit { epoch: self.epoch }
    }

    pub(crate) fn succeeded(&mut self, permit: &Permit) -> Option<Change> {
        if permit.epoch != self.epoch {
            return None;
        }
        let from = self.state();
        self.failures = 0;
        (self.opens, self.probe) = (None, false);
        self.changed(from)
    }

    /// `asked`: for how long it is to be open, if it opens, in place of the reset time.
    pub(crate) fn failed(
        &mut self,
        permit: &Permit,
        asked: Option<Duration>,
        now: Instant,
    ) -> Option<Change> {
        if permit.epoch != self.epoch {
            return None;
        }
        let from = self.state();
        self.failures = self.failures.saturating_add(1);
        if self.probe || self.failures >= self.max_failures {
            let reset = asked.unwrap_or(self.reset_after);
            (self.opens, self.probe) = (Some(later(now, reset)), false);
        }
        self.changed(from)
    }

    /// Nobody will know what has become of the call: its caller has gone. The next one may try.
    pub(crate) fn abandoned(&mut self, permit: &Permit, now: Instant) -> Option<Change> {
        if permit.epoch != self.epoch || !self.probe {
            return None;
        }
        let from = self.state();
        (self.opens, self.probe) = (Some(now), false);
        self.changed(from)
    }

    fn changed(&mut self, from: CircuitState) -> Option<Change> {
        let to = self.state();
        (from != to).then(|| {
            self.epoch += 1;
            (from, to)
        })
    }
}

#[cfg(test)]
mod tests {
    use CircuitState::{Closed, HalfOpen, Open};

    use super::*;

    const RESET: Duration = Duration::from_secs(10);
    const TICK: Duration = Duration::from_nanos(1);

    fn circuit() -> (Circuit, Instant) {
        (Circuit::new(3, RESET), Instant::now())
    }

    fn permit(circuit: &mut Circuit, now: Instant) -> Permit {
        circuit.admit(now).0.expect("it lets a call through")
    }

    fn fail(circuit: &mut Circuit, now: Instant) -> Option<Change> {
        let permit = permit(circuit, now);
        circuit.failed(&permit, None, now)
    }

    fn opened() -> (Circuit, Instant) {
        let (mut circuit, t0) = circuit();
        for _ in 0..3 {
            fail(&mut circuit, t0);
        }
        (circuit, t0)
    }

    #[test]
    fn it_opens_with_the_last_of_so_many_failures_in_a_row() {
        let (mut circuit, t0) = circuit();
        assert_eq!([fail(&mut circuit, t0), fail(&mut circuit, t0)], [None, None]);
        let good = permit(&mut circuit, t0);
        assert_eq!(circuit.succeeded(&good), None, "and begins to count anew");
        assert_eq!([fail(&mut circuit, t0), fail(&mut circuit, t0)], [None, None]);
        assert_eq!(fail(&mut circuit, t0), Some((Closed, Open)));
    }

    #[test]
    fn an_open_one_refuses_and_says_for_how_long() {
        let (mut circuit, t0) = opened();
        assert_eq!(circuit.admit(t0).0, Err(RESET));
        assert_eq!(circuit.admit(t0 + RESET - TICK).0, Err(TICK));
        assert_eq!(circuit.state(), Open);
    }

    #[test]
    fn after_the_reset_time_one_call_is_made_and_the_others_are_refused() {
        let (mut circuit, t0) = opened();
        assert_eq!(circuit.admit(t0 + RESET).1, Some((Open, HalfOpen)));
        assert_eq!(circuit.admit(t0 + RESET), (Err(Duration::ZERO), None));
    }

    #[test]
    fn a_probe_that_works_closes_it_and_one_that_fails_opens_it_for_as_long_again() {
        let (mut circuit, t0) = opened();
        let t1 = t0 + RESET;
        let probe = permit(&mut circuit, t1);
        assert_eq!(circuit.failed(&probe, None, t1), Some((HalfOpen, Open)));
        assert_eq!(circuit.admit(t1 + RESET - TICK).0, Err(TICK));
        let probe = permit(&mut circuit, t1 + RESET);
        assert_eq!(circuit.succeeded(&probe), Some((HalfOpen, Closed)));
        assert_eq!(fail(&mut circuit, t1 + RESET), None, "and counts from zero");
    }

    #[test]
    fn it_is_open_for_as_long_as_the_failure_asks_for_that_opens_it() {
        let (mut circuit, t0) = circuit();
        for asked in [Some(9 * RESET), None, Some(2 * RESET)] {
            let permit = permit(&mut circuit, t0);
            circuit.failed(&permit, asked, t0);
        }
        assert_eq!(circuit.admit(t0).0, Err(2 * RESET));
        let t1 = t0 + 2 * RESET;
        let probe = permit(&mut circuit, t1);
        circuit.failed(&probe, Some(Duration::ZERO), t1);
        let probe = permit(&mut circuit, t1);
        circuit.failed(&probe, None, t1);
        assert_eq!(circuit.admit(t1).0, Err(RESET), "only this time");
    }

    #[test]
    fn a_call_of_before_changes_nothing() {
        let (mut circuit, t0) = circuit();
        let [first, second] = [(); 2].map(|()| permit(&mut circuit, t0));
        for _ in 0..3 {
            fail(&mut circuit, t0);
        }
        assert_eq!(circuit.succeeded(&first), None);
        let _probe = permit(&mut circuit, t0 + RESET);
        assert_eq!(circuit.failed(&second, None, t0 + RESET), None);
        assert_eq!(circuit.abandoned(&first, t0), None);
        assert_eq!(circuit.state(), HalfOpen);
    }

    #[test]
    fn a_probe_whose_caller_has_gone_leaves_its_place_to_the_next() {
        let (mut circuit, t0) = opened();
        let probe = permit(&mut circuit, t0 + RESET);
        assert_eq!(circuit.abandoned(&probe, t0 + RESET), Some((HalfOpen, Open)));
        assert_eq!(circuit.admit(t0 + RESET).1, Some((Open, HalfOpen)));
    }

    #[test]
    fn with_no_reset_time_the_next_call_is_a_probe() {
        let mut circuit = Circuit::new(1, Duration::ZERO);
        let t0 = Instant::now();
        assert_eq!(fail(&mut circuit, t0), Some((Closed, Open)));
        assert_eq!(circuit.admit(t0).1, Some((Open, HalfOpen)));
    }

    #[test]
    fn a_state_is_shown_as_a_word() {
        let shown = [Closed, Open, HalfOpen].map(|state| format!("{state:>9}"));
        assert_eq!(shown, ["   closed", "     open", "half_open"]);
    }
}
