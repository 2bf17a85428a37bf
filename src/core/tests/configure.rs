//! Options and rules that change while children run.

use crate::core::ChildRequest;
use crate::core::verify::simulation::{Simulation, fake, rules, secs};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, Intensity, RestartWindow, Rules, Strategy};

#[test]
fn a_child_that_is_taken_out_stops_and_is_discovered_until_it_is_brought_back() {
    let mut sim = Simulation::running(rules(), [fake("a").stops(secs(1)), fake("b")]);
    sim.enable("a", false);
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "cancel a");
    assert_eq!((sim.lifecycle("a"), sim.why("a")), (Lifecycle::Discovered, Some("disabled")));
    for request in [ChildRequest::RESTART_CHILD, ChildRequest::RESTART, ChildRequest::RESUME] {
        assert_eq!(sim.call("a", request), "disabled", "{request:?}");
    }
    sim.enable("a", true);
    sim.settle();
    assert_eq!(sim.alive(), "a#2 b#1");
}

#[test]
fn a_child_that_waits_for_a_restart_is_taken_out_at_once() {
    let backoff = Backoff::constant(secs(9));
    let mut sim = Simulation::running(rules(), [fake("a").backoff(backoff), fake("b")]);
    sim.fail("a");
    assert_eq!(sim.lifecycle("a"), Lifecycle::Restarting);
    sim.enable("a", false);
    sim.advance(secs(20));
    assert_eq!(sim.lifecycle("a"), Lifecycle::Discovered);
    sim.enable("a", true);
    sim.settle();
    assert_eq!(sim.alive(), "a#2 b#1", "it doesn't wait for the rest of its backoff");
}

#[test]
fn a_group_starts_without_the_child_that_is_taken_out() {
    let one_for_all = Rules { strategy: Strategy::OneForAll, ..rules() };
    let mut sim = Simulation::named(one_for_all, "a b c");
    sim.enable("b", false);
    sim.settle();
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.alive(), "a#2 c#2");
    sim.enable("b", true);
    sim.settle();
    assert_eq!(sim.alive(), "a#2 b#2 c#2");
}

#[test]
fn a_child_that_requires_one_that_is_taken_out_waits_for_it() {
    let mut sim = Simulation::running(rules(), [fake("db"), fake("api").requires("db")]);
    sim.enable("db", false);
    sim.settle();
    sim.fail("api");
    sim.advance(secs(1));
    assert_eq!(sim.lifecycle("api"), Lifecycle::Discovered);
    sim.enable("db", true);
    sim.settle();
    assert_eq!(sim.alive(), "db#2 api#2");
}

#[test]
fn a_window_keeps_its_count_whatever_its_kind_becomes() {
    let now = std::time::Instant::now();
    let kinds = [
        Intensity::sliding(5, secs(60)),
        Intensity::tumbling(5, secs(60)),
        Intensity::decaying(5.0, secs(60)),
    ];
    for from in kinds {
        for to in kinds {
            let mut window = RestartWindow::new(from);
            (0..3).for_each(|_| window.record(now));
            window.set_intensity(to, now);
            assert_eq!(window.count(now), 3, "{from} to {to}");
            (0..2).for_each(|_| window.record(now));
            assert!(!window.admits(now), "{from} to {to}");
        }
    }
}
