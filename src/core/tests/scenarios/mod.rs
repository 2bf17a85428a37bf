//! What follows when children of an ordered supervisor start, fail, hang and stop.

mod auto_shutdown;
mod first_start;
mod group_requests;
mod group_restart;
mod leak;
mod overlapping_groups;
mod parking;
mod remaining;
mod restart;
mod stop;

use std::time::Duration;

use crate::core::verify::simulation::{FakeChild, Simulation, at_most, fake, rules, secs};
use crate::policy::{Backoff, Intensity, OnExhausted, Rules, Strategy};

const WAIT: Duration = Duration::from_millis(200);

/// Rules without a backoff and without a limit.
fn of(strategy: Strategy) -> Rules {
    Rules { strategy, ..rules() }
}

fn one_for_one() -> Rules {
    of(Strategy::OneForOne)
}

fn one_for_all() -> Rules {
    of(Strategy::OneForAll)
}

fn rest_for_one() -> Rules {
    of(Strategy::RestForOne)
}

fn waiting(rules: Rules) -> Rules {
    Rules { backoff: Backoff::constant(WAIT), ..rules }
}

fn sliding(max: u32) -> Option<Intensity> {
    Some(Intensity::sliding(max, secs(1)))
}

fn limited(max: u32, rules: Rules) -> Rules {
    Rules { intensity: at_most(max), ..rules }
}

fn parking(max: u32, rules: Rules) -> Rules {
    Rules { on_exhausted: OnExhausted::Park, ..limited(max, rules) }
}

/// A child that signals that it is ready, at once.
fn prompt(name: &str) -> FakeChild {
    fake(name).signals(Duration::ZERO)
}

fn deaf(name: &str) -> FakeChild {
    fake(name).stops(None)
}

fn begin(rules: Rules, fakes: impl IntoIterator<Item = FakeChild>) -> Simulation {
    let mut sim = Simulation::ordered(rules, fakes);
    sim.advance(Duration::ZERO);
    sim
}
