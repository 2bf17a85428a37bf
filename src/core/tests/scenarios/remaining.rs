//! Children whose own task has ended while a helper of theirs still runs.

use super::{limited, one_for_one, waiting};
use crate::core::MachineEvent;
use crate::core::verify::simulation::{Simulation, fake, secs};
use crate::exit::{ExitError, ExitReason};
use crate::lifecycle::Lifecycle;
use crate::policy::RestartType;

fn remains(sim: &mut Simulation, name: &str, fails: bool) {
    let of = if fails { failed } else { returned };
    sim.child_event(name, of);
    sim.settle();
}

fn failed(key: crate::core::Key, incarnation: crate::core::IncarnationNumber) -> MachineEvent {
    let reason = Some(ExitReason::Failed(ExitError::from("no")));
    MachineEvent::Remaining { key, incarnation, reason }
}

fn returned(key: crate::core::Key, incarnation: crate::core::IncarnationNumber) -> MachineEvent {
    MachineEvent::Remaining { key, incarnation, reason: Some(ExitReason::Normal) }
}

#[test]
fn a_failure_is_reported_at_once_and_decided_on_when_the_rest_has_ended() {
    let mut sim = Simulation::running(limited(1, waiting(one_for_one())), [fake("a")]);
    remains(&mut sim, "a", true);
    sim.advance(secs(9));
    let story = sim.story("a");
    let expected = "active → errored (failed) → restarting → resolved → activating → active";
    assert!(story.ends_with(expected), "{story}");
}

#[test]
fn a_rest_that_does_not_end_has_leaked() {
    let mut sim = Simulation::running(limited(1, waiting(one_for_one())), [fake("a").leaks()]);
    remains(&mut sim, "a", true);
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns abort a, 1s leaked a#1, 1s start a#2");

    sim.advance(secs(60));
    remains(&mut sim, "a", false);
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "69s abort a, 70s leaked a#2, 70.2s start a#3");
}

#[test]
fn the_restart_type_decides_on_a_clean_end() {
    let transient = fake("a").restart(RestartType::Transient);
    let mut sim = Simulation::running(one_for_one(), [transient]);
    remains(&mut sim, "a", false);
    sim.advance(secs(9));
    assert_eq!((sim.acts(), sim.lifecycle("a")), ("abort a".to_owned(), Lifecycle::Stopped));
}

#[test]
fn a_child_that_is_being_stopped_is_aborted_before_its_grace_is_over() {
    let slow = fake("a").stops(secs(3)).shutdown(secs(5));
    let mut sim = Simulation::running(one_for_one(), [slow]);
    let ticket = sim.request("a", crate::core::ChildRequest::Terminate);
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "cancel a");
    remains(&mut sim, "a", false);
    assert_eq!((sim.acts(), sim.answer(ticket)), ("abort a".to_owned(), "done"));
}
