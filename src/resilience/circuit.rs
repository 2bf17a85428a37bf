//! The state machine of a circuit breaker.
//!
//! Instants are arguments. The machine makes no calls and has no timers: see
//! [`CircuitBreaker`](crate::resilience::CircuitBreaker).
//!
//! # Invariants
//!
//! 1. While the circuit is half open, at most one call is in progress.
//! 2. The result of a call that was admitted before the last state change has no effect.
//! 3. A probe that has no result within `reset_after` is over: the next call is the probe, and the result of the
//!    earlier one has no effect. The refusals until then tell how long that lasts at most: a probe usually has its
//!    result much earlier.
//! 4. The circuit opens at exactly the failure that makes `max_failures` consecutive ones.

use std::fmt;
use std::time::{Duration, Instant};

use crate::clock::later;

/// Whether a [`CircuitBreaker`](crate::resilience::CircuitBreaker) lets calls through.
///
/// ```
/// use verger::resilience::{CircuitBreaker, CircuitState};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let vendor = CircuitBreaker::new("vendor").max_failures(1);
/// assert_eq!(vendor.state(), CircuitState::Closed);
///
/// vendor.call(async || Err::<(), _>("status 500")).await.unwrap_err();
/// assert_eq!(vendor.state(), CircuitState::Open);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CircuitState {
    /// Calls are made.
    Closed,
    /// Calls are refused until the reset time is over.
    Open,
    /// One call is made as a probe; all other calls are refused.
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

/// The state of a circuit breaker.
#[derive(Debug)]
pub(crate) struct Circuit {
    max_failures: u32,
    reset_after: Duration,
    /// Consecutive failures.
    failures: u32,
    /// When the next probe is admitted, even while one is in progress; `None` while the circuit is closed.
    opens: Option<Instant>,
    probe: bool,
    /// The number of state changes.
    epoch: u64,
}

/// The permission for a call, which must be passed back with its result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    epoch: u64,
}

/// Why a call isn't made, with the time until the next probe is let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CircuitRefusal {
    Open(Duration),
    /// A probe is in progress, and may decide earlier.
    HalfOpen(Duration),
}

/// The previous and the new state.
pub(crate) type CircuitChange = (CircuitState, CircuitState);

impl Circuit {
    pub(crate) fn new(max_failures: u32, reset_after: Duration) -> Self {
        Self { max_failures, reset_after, failures: 0, opens: None, probe: false, epoch: 0 }
    }

    /// Returns the state. The end of the reset time is noticed at the next call.
    pub(crate) fn state(&self) -> CircuitState {
        match (self.opens, self.probe) {
            (None, _) => CircuitState::Closed,
            (Some(_), false) => CircuitState::Open,
            (Some(_), true) => CircuitState::HalfOpen,
        }
    }

    /// Admits a call, or returns for how long calls are refused.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
    ) -> (Result<Permit, CircuitRefusal>, Option<CircuitChange>) {
        match self.opens {
            None => (Ok(self.permit()), None),
            Some(at) if now < at && self.probe => (Err(CircuitRefusal::HalfOpen(at - now)), None),
            Some(at) if now < at => (Err(CircuitRefusal::Open(at - now)), None),
            Some(_) => {
                let from = self.state();
                self.probe = true;
                self.opens = Some(later(now, self.reset_after));
                // The permit of a probe that hangs is void.
                self.epoch += 1;
                let change = (from == CircuitState::Open).then_some((from, CircuitState::HalfOpen));
                (Ok(self.permit()), change)
            }
        }
    }

    fn permit(&self) -> Permit {
        Permit { epoch: self.epoch }
    }

    pub(crate) fn succeeded(&mut self, permit: &Permit) -> Option<CircuitChange> {
        if permit.epoch != self.epoch {
            return None;
        }
        let from = self.state();
        self.failures = 0;
        (self.opens, self.probe) = (None, false);
        self.changed(from)
    }

    /// Records a failure. If it opens the circuit, `reset_after` replaces the reset time.
    pub(crate) fn failed(
        &mut self,
        permit: &Permit,
        reset_after: Option<Duration>,
        now: Instant,
    ) -> Option<CircuitChange> {
        if permit.epoch != self.epoch {
            return None;
        }
        let from = self.state();
        self.failures = self.failures.saturating_add(1);
        if self.probe || self.failures >= self.max_failures {
            let reset = reset_after.unwrap_or(self.reset_after);
            (self.opens, self.probe) = (Some(later(now, reset)), false);
        }
        self.changed(from)
    }

    /// Records that a call was dropped. If it was the probe, the next call is the probe.
    pub(crate) fn abandoned(&mut self, permit: &Permit, now: Instant) -> Option<CircuitChange> {
        if permit.epoch != self.epoch || !self.probe {
            return None;
        }
        let from = self.state();
        (self.opens, self.probe) = (Some(now), false);
        self.changed(from)
    }

    fn changed(&mut self, from: CircuitState) -> Option<CircuitChange> {
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
        circuit.admit(now).0.expect("the circuit admits a call")
    }

    fn fail(circuit: &mut Circuit, now: Instant) -> Option<CircuitChange> {
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
    fn the_last_of_max_failures_opens_the_circuit() {
        let (mut circuit, t0) = circuit();
        assert_eq!([fail(&mut circuit, t0), fail(&mut circuit, t0)], [None, None]);
        let good = permit(&mut circuit, t0);
        assert_eq!(circuit.succeeded(&good), None, "the count starts again");
        assert_eq!([fail(&mut circuit, t0), fail(&mut circuit, t0)], [None, None]);
        assert_eq!(fail(&mut circuit, t0), Some((Closed, Open)));
    }

    #[test]
    fn an_open_circuit_refuses_with_the_remaining_time() {
        let (mut circuit, t0) = opened();
        assert_eq!(circuit.admit(t0).0, Err(CircuitRefusal::Open(RESET)));
        assert_eq!(circuit.admit(t0 + RESET - TICK).0, Err(CircuitRefusal::Open(TICK)));
        assert_eq!(circuit.state(), Open);
    }

    #[test]
    fn after_the_reset_time_one_call_is_a_probe() {
        let (mut circuit, t0) = opened();
        assert_eq!(circuit.admit(t0 + RESET).1, Some((Open, HalfOpen)));
        assert_eq!(circuit.admit(t0 + RESET), (Err(CircuitRefusal::HalfOpen(RESET)), None));
        assert_eq!(
            circuit.admit(t0 + RESET + TICK),
            (Err(CircuitRefusal::HalfOpen(RESET - TICK)), None)
        );
    }

    #[test]
    fn a_probe_that_hangs_gives_way_to_the_next_one_after_the_reset_time() {
        let (mut circuit, t0) = opened();
        let hangs = permit(&mut circuit, t0 + RESET);
        assert_eq!(
            circuit.admit(t0 + 2 * RESET - TICK),
            (Err(CircuitRefusal::HalfOpen(TICK)), None)
        );
        let (next, change) = circuit.admit(t0 + 2 * RESET);
        assert_eq!(change, None, "the circuit stays half open");
        assert_eq!(
            circuit.admit(t0 + 2 * RESET),
            (Err(CircuitRefusal::HalfOpen(RESET)), None),
            "one probe at a time"
        );
        let late = t0 + 2 * RESET + TICK;
        assert_eq!(circuit.failed(&hangs, None, late), None);
        assert_eq!(circuit.abandoned(&hangs, late), None);
        assert_eq!(circuit.succeeded(&next.unwrap()), Some((HalfOpen, Closed)));
    }

    #[test]
    fn a_probe_closes_the_circuit_or_opens_it_again() {
        let (mut circuit, t0) = opened();
        let t1 = t0 + RESET;
        let probe = permit(&mut circuit, t1);
        assert_eq!(circuit.failed(&probe, None, t1), Some((HalfOpen, Open)));
        assert_eq!(circuit.admit(t1 + RESET - TICK).0, Err(CircuitRefusal::Open(TICK)));
        let probe = permit(&mut circuit, t1 + RESET);
        assert_eq!(circuit.succeeded(&probe), Some((HalfOpen, Closed)));
        assert_eq!(fail(&mut circuit, t1 + RESET), None, "the count starts at zero");
    }

    #[test]
    fn the_failure_that_opens_the_circuit_can_set_the_reset_time() {
        let (mut circuit, t0) = circuit();
        for asked in [Some(9 * RESET), None, Some(2 * RESET)] {
            let permit = permit(&mut circuit, t0);
            circuit.failed(&permit, asked, t0);
        }
        assert_eq!(circuit.admit(t0).0, Err(CircuitRefusal::Open(2 * RESET)));
        let t1 = t0 + 2 * RESET;
        let probe = permit(&mut circuit, t1);
        circuit.failed(&probe, Some(Duration::ZERO), t1);
        let probe = permit(&mut circuit, t1);
        circuit.failed(&probe, None, t1);
        assert_eq!(circuit.admit(t1).0, Err(CircuitRefusal::Open(RESET)), "only this time");
    }

    #[test]
    fn the_result_of_an_earlier_call_has_no_effect() {
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
    fn after_a_dropped_probe_the_next_call_is_a_probe() {
        let (mut circuit, t0) = opened();
        let probe = permit(&mut circuit, t0 + RESET);
        assert_eq!(circuit.abandoned(&probe, t0 + RESET), Some((HalfOpen, Open)));
        assert_eq!(circuit.admit(t0 + RESET).1, Some((Open, HalfOpen)));
    }

    #[test]
    fn without_a_reset_time_the_next_call_is_a_probe() {
        let mut circuit = Circuit::new(1, Duration::ZERO);
        let t0 = Instant::now();
        assert_eq!(fail(&mut circuit, t0), Some((Closed, Open)));
        assert_eq!(circuit.admit(t0).1, Some((Open, HalfOpen)));
    }

    #[test]
    fn a_state_is_displayed_as_a_word() {
        let shown = [Closed, Open, HalfOpen].map(|state| format!("{state:>9}"));
        assert_eq!(shown, ["   closed", "     open", "half_open"]);
    }
}
