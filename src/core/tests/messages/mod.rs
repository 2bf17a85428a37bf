//! Children that are started by a message.

mod dormant;
mod failures;
mod groups;
mod starts;

use crate::core::verify::simulation::{FakeChild, Simulation, fake, rules};
use crate::exit::ExitKind;
use crate::policy::{OnExit, Rules, Strategy};

fn group(strategy: Strategy) -> Rules {
    Rules { strategy, ..rules() }
}

/// A child that is started by a message and not restarted after a clean exit.
fn on_message(name: &str) -> FakeChild {
    fake(name).transient().on_message()
}

/// A child that is started by a message and never restarted.
fn not_restarted(name: &str) -> FakeChild {
    on_message(name).on_exit(ExitKind::Failed, OnExit::Leave)
}

fn send(sim: &mut Simulation, name: &str) {
    sim.send(name);
    sim.settle();
}

fn returns(sim: &Simulation, name: &str) -> bool {
    sim.machine.returns(sim.key(name))
}
