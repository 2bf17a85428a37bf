//! The end of significant children.

use super::{one_for_one, parking, rest_for_one, waiting};
use crate::core::ChildRequest;
use crate::core::verify::simulation::{FakeChild, Simulation, fake, secs};
use crate::policy::{AutoShutdown, Rules, Strategy};

fn rules(auto_shutdown: AutoShutdown) -> Rules {
    Rules { auto_shutdown, ..one_for_one() }
}

#[test]
fn the_first_significant_child_that_ends_for_good_ends_it() {
    let fakes = || [fake("a"), fake("t").transient().significant(), fake("x").temporary()];
    let mut sim = Simulation::running(rules(AutoShutdown::AnySignificant), fakes());
    sim.fail("x");
    sim.fail("t");
    assert_eq!(sim.acts(), "removed x, start t#2", "one insignificant, one restarted");
    sim.end("t");
    assert_eq!(sim.acts(), "cancel a, finish auto");

    let x = fake("x").temporary().significant();
    let mut sim = Simulation::running(rules(AutoShutdown::AnySignificant), [fake("a"), x]);
    sim.fail("x");
    assert_eq!(sim.acts(), "removed x, cancel a, finish auto");
}

#[test]
fn the_last_one_ends_it_if_all_must_have_ended() {
    let fakes = [fake("a"), fake("t"), fake("x")];
    let [a, t, x] = fakes;
    let fakes = [a, t.transient().significant(), x.temporary().significant()];
    let mut sim = Simulation::running(rules(AutoShutdown::AllSignificant), fakes);
    sim.end("t");
    sim.fail("x");
    assert_eq!(sim.acts(), "removed x, cancel a, finish auto");
}

#[test]
fn a_child_in_backoff_counts_as_remaining_and_a_terminated_child_does_not() {
    let fakes = || ["t", "u"].map(|name| fake(name).transient().significant());
    let all = || waiting(rules(AutoShutdown::AllSignificant));
    let mut sim = Simulation::running(all(), fakes());
    sim.fail("t");
    sim.end("u");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start t#2");

    let mut sim = Simulation::running(all(), fakes());
    sim.call("t", ChildRequest::Terminate);
    assert!(!sim.finished(), "a manual stop ends nothing");
    sim.end("u");
    assert!(sim.finished());
}

#[test]
fn a_child_that_awaits_its_group_counts_as_remaining_and_a_parked_child_does_not() {
    let fakes = || {
        let [u, a, t] = ["u", "a", "t"].map(fake);
        [u.transient().significant(), a, t.transient().significant()]
    };
    let all = Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rest_for_one() };
    let mut sim = Simulation::running(waiting(all.clone()), fakes());
    sim.fail("a");
    sim.end("u");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "cancel t, start a#2, start t#2");

    let mut sim = Simulation::running(parking(0, all), fakes());
    sim.fail("a");
    sim.end("u");
    assert_eq!(sim.acts(), "gave up a, cancel t, finish auto");
}

#[test]
fn a_child_being_terminated_counts_as_gone_unless_its_group_restarts_it() {
    let all = || Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rest_for_one() };
    let fakes = || {
        let [u, a, t] = ["u", "a", "t"].map(fake);
        let u = u.temporary().significant();
        [u, a, t.transient().significant().stops(secs(1))]
    };
    let mut sim = Simulation::running(all(), fakes());
    sim.request("t", ChildRequest::Terminate);
    sim.end("u");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "cancel t, removed u, cancel a, finish auto");

    let mut sim = Simulation::running(all(), fakes());
    sim.request("t", ChildRequest::Terminate);
    sim.fail("a");
    sim.end("u");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "cancel t, removed u, start a#2, start t#2");
}

#[test]
fn when_the_last_one_ends_while_a_group_stops_it_is_the_group_that_decides() {
    let all = || Rules { auto_shutdown: AutoShutdown::AllSignificant, ..rest_for_one() };
    let fakes = |last: FakeChild| {
        let [u, a] = ["u", "a"].map(fake);
        [u.temporary().significant(), a, last.significant(), fake("z").stops(secs(1))]
    };
    let script = |sim: &mut Simulation| {
        sim.fail("a");
        sim.end("u");
        sim.advance(secs(1));
    };

    let mut sim = Simulation::running(all(), fakes(fake("x").temporary()));
    script(&mut sim);
    let acts = "cancel z, removed u, cancel x, removed x, finish auto";
    assert_eq!(sim.acts(), acts, "it is removed");

    let mut sim = Simulation::running(all(), fakes(fake("t").transient()));
    script(&mut sim);
    let acts = "cancel z, removed u, cancel t, start a#2, start t#2, start z#2";
    assert_eq!(sim.acts(), acts, "it restarts");

    let mut sim = Simulation::running(all(), fakes(fake("t").transient()));
    sim.end("t");
    script(&mut sim);
    let acts = "cancel z, removed u, start a#2, start t#2, start z#2";
    assert_eq!(sim.acts(), acts, "it restarts, although it had finished");

    let mut sim = Simulation::running(parking(0, all()), fakes(fake("t").transient()));
    script(&mut sim);
    let acts = "gave up a, cancel z, removed u, cancel t, finish auto";
    assert_eq!(sim.acts(), acts, "it stays down");
}

#[test]
fn a_bystander_of_a_group_restart_ends_nothing() {
    let any = Rules { strategy: Strategy::OneForAll, ..rules(AutoShutdown::AnySignificant) };
    let fakes =
        [fake("a"), fake("t").transient().significant(), fake("x").temporary().significant()];
    let mut sim = Simulation::running(any, fakes);
    sim.fail("a");
    assert_eq!(sim.acts(), "cancel x, removed x, cancel t, start a#2, start t#2");
}
