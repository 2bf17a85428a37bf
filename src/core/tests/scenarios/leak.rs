//! Children that leak.

use super::{begin, limited, one_for_all, one_for_one, rest_for_one, waiting};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{Simulation, fake, ms, secs};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, OnLeak, Rules, Shutdown};

fn hung(on_leak: OnLeak, rules: Rules) -> Simulation {
    let b = fake("b").leaks().shutdown(secs(1)).on_leak(on_leak);
    Simulation::running(rules, [fake("a"), b, fake("c")])
}

#[test]
fn a_leaked_child_is_restarted_like_any_failure() {
    let mut sim = hung(OnLeak::Restart, limited(1, waiting(one_for_one())));
    assert_eq!(sim.call("b", ChildRequest::Kill), "done");
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns abort b, 1s leaked b#1, 1s start b#2");
}

#[test]
fn or_it_is_parked_if_it_must_not_run_twice() {
    let mut sim = hung(OnLeak::Park, one_for_one());
    sim.call("b", ChildRequest::Kill);
    sim.advance(secs(9));
    assert_eq!(sim.lifecycle("b"), Lifecycle::Errored, "it had failed");
    assert_eq!(sim.why("b"), Some("leaked"));
    assert_eq!(sim.call("b", ChildRequest::RESUME), "started 2");

    let ticket = sim.request("b", ChildRequest::Terminate);
    sim.advance(secs(9));
    assert_eq!(sim.answer(ticket), "done");
    assert_eq!(sim.lifecycle("b"), Lifecycle::Stopped, "it was being stopped");
    assert_eq!(sim.why("b"), Some("leaked"));
    assert_eq!(sim.call("b", ChildRequest::RESTART_CHILD), "started 3");
}

#[test]
fn a_group_passes_a_leaked_child() {
    let mut sim = hung(OnLeak::Park, one_for_all());
    sim.fail("a");
    sim.advance(secs(9));
    assert_eq!(
        sim.timed(),
        "0ns cancel c, 0ns cancel b, 1s abort b, 2s leaked b#1, 2s start a#2, 2s start c#2"
    );
    sim.fail("a");
    assert_eq!(sim.acts(), "cancel c, start a#3, start c#3");
    assert_eq!(sim.call("b", ChildRequest::RESUME), "started 2");
    assert_eq!(sim.acts(), "start b#2", "running children keep running");
}

#[test]
fn a_leaked_child_can_be_asked_for_in_every_phase_of_a_group_restart() {
    let leaking = |name| fake(name).leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
    for rules in [one_for_all(), rest_for_one()] {
        for request in [ChildRequest::RESUME, ChildRequest::RESTART_CHILD] {
            for (name, wait) in [("a", 500), ("a", 1_500), ("z", 500), ("z", 1_500)] {
                let rules = Rules { backoff: Backoff::constant(secs(2)), ..rules.clone() };
                let fakes = [leaking("a"), fake("b"), fake("c").stops(secs(1)), leaking("z")];
                let mut sim = Simulation::running(rules, fakes);
                for name in ["a", "z"] {
                    sim.request(name, ChildRequest::Terminate);
                }
                sim.advance(secs(2));
                sim.fake(name).dies = Some(ms(1));
                sim.fail("b");
                sim.advance(ms(wait));
                sim.skip();
                let ticket = sim.request(name, request);
                sim.advance(secs(9));
                assert_eq!(sim.answer(ticket), "started 2", "{request:?} {name} {wait}");
                assert_eq!(sim.timed().matches("start").count(), 3);
            }
        }
    }
}

#[test]
fn a_leaked_child_retried_during_a_group_start_is_started_in_order() {
    let fakes = [
        fake("a").signals(secs(1)),
        fake("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park),
    ];
    let mut sim = begin(one_for_all(), fakes);
    sim.advance(secs(1));
    sim.fail("a");
    sim.advance(ms(1_500));
    sim.skip();
    let ticket = sim.request("b", ChildRequest::RESTART_CHILD);
    assert_eq!(sim.acts(), "");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "3s start b#2");
    assert_eq!(sim.answer(ticket), "started 2");
}
