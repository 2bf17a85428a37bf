//! The order of a stop that the machine shows, so that each exit can cancel the next child.

use std::time::Duration;

use crate::core::verify::simulation::{FakeChild, Simulation, fake, rules};
use crate::core::{ChildRequest, Machine};
use crate::policy::{Rules, Shutdown, Strategy};

/// The stop chain from the child that stops now.
fn chain(sim: &Simulation) -> String {
    let present = sim.present();
    let name = |key| &*present.iter().find(|it| it.1 == key).expect("an existing child").0;
    let chain = std::iter::successors(sim.machine.stops_now(), |&key| sim.machine.stops_after(key));
    chain.map(name).collect::<Vec<_>>().join(" ")
}

/// Children that take a second to stop.
fn slow(names: &str) -> impl Iterator<Item = FakeChild> {
    names.split(' ').map(|name| fake(name).stops(Duration::from_secs(1)))
}

#[test]
fn no_child_stops_while_the_supervisor_runs() {
    assert_eq!(chain(&Simulation::running(rules(), slow("a b c"))), "");
}

#[test]
fn children_stop_in_reverse_order_each_after_the_one_behind_it() {
    let mut sim = Simulation::running(rules(), slow("a b c"));
    sim.stop();
    assert_eq!(chain(&sim), "c b a");
    sim.advance(Duration::from_secs(1));
    assert_eq!(chain(&sim), "b a");
}

#[test]
fn the_line_ends_before_a_supervisor_and_before_a_brutally_killed_child() {
    let supervisor = fake("b").supervisor();
    let killed = fake("b").shutdown(Shutdown::BrutalKill);
    for b in [supervisor, killed] {
        let fakes = slow("a").chain([b]).chain(slow("c d"));
        let mut sim = Simulation::running(rules(), fakes);
        sim.stop();
        assert_eq!(chain(&sim), "d c");
    }
}

#[test]
fn the_line_ends_before_a_child_that_is_down() {
    let mut sim = Simulation::running(rules(), slow("a b c"));
    sim.call("b", ChildRequest::Terminate);
    sim.advance(Duration::from_secs(1));
    sim.stop();
    assert_eq!(chain(&sim), "c");
}

#[test]
fn a_group_stops_in_the_same_order_and_no_child_before_it() {
    let rules = Rules { strategy: Strategy::RestForOne, ..rules() };
    let mut sim = Simulation::running(rules, slow("a b c d"));
    sim.request("b", ChildRequest::RESTART);
    assert_eq!(chain(&sim), "d c b");
}

#[test]
fn a_supervisor_ends_when_it_is_stopped_and_not_when_a_child_fails() {
    fn check(mut sim: Simulation, ends: bool) {
        assert!(!Machine::is_ending(&sim.machine));
        if ends {
            sim.stop();
        } else {
            sim.fail("b");
        }
        assert_eq!(Machine::is_ending(&sim.machine), ends);
    }
    let group = || Rules { strategy: Strategy::OneForAll, ..rules() };
    for ends in [true, false] {
        check(Simulation::running(group(), slow("a b c")), ends);
        check(Simulation::dynamic(rules(), slow("a b c")), ends);
    }
}

#[test]
fn equal_children_are_asked_at_once() {
    let mut sim = Simulation::dynamic(rules(), slow("a b"));
    sim.stop();
    assert_eq!(sim.acts(), "cancel b, cancel a");
    assert_eq!(chain(&sim), "");
}
