//! Children that are parked when they exceed a limit, and their retries.

use super::{begin, one_for_all, one_for_one, parking, prompt, rest_for_one, sliding, waiting};
use crate::core::ChildRequest;
use crate::core::child::{ChildState, DownState};
use crate::core::verify::simulation::{Script, Simulation, fake, ms, secs};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, OnLeak, Rules, Shutdown, Start};

#[test]
fn a_parked_child_waits_for_retry_and_its_siblings_go_on() {
    let mut sim = Simulation::named(parking(1, one_for_one()), "a b c");
    sim.fail("b");
    sim.fail("b");
    assert_eq!(sim.acts(), "start b#2, gave up b");
    assert_eq!(sim.lifecycle("b"), Lifecycle::Errored);
    assert_eq!(sim.why("b"), Some("given up"));
    assert_eq!(sim.call("b", ChildRequest::RESUME), "started 3");
    sim.fail("b");
    assert_eq!(sim.alive(), "a#1 b#4 c#1", "the window is clear");
}

#[test]
fn a_parked_range_is_stopped_first_and_retry_starts_it() {
    let mut sim = Simulation::named(parking(0, waiting(rest_for_one())), "a b c d");
    sim.fail("b");
    sim.advance(secs(9));
    assert_eq!(sim.acts(), "gave up b, cancel d, cancel c");
    assert_eq!(sim.call("b", ChildRequest::RESUME), "started 2");
    assert_eq!(sim.acts(), "start b#2, start c#2, start d#2");
}

#[test]
fn a_retry_that_comes_while_the_range_is_stopped_waits_for_that() {
    let fakes = [fake("a"), fake("b"), fake("c"), fake("d").stops(secs(1))];
    let mut sim = Simulation::running(parking(0, rest_for_one()), fakes);
    sim.fail("b");
    let ticket = sim.request("b", ChildRequest::RESUME);
    sim.advance(secs(9));
    assert_eq!(
        sim.timed(),
        "0ns gave up b, 0ns cancel d, 1s cancel c, 1s start b#2, 1s start c#2, 1s start d#2"
    );
    assert_eq!(sim.answer(ticket), "started 2");
}

#[test]
fn a_retry_that_comes_while_the_range_is_stopped_clears_the_window() {
    let fakes = [fake("a"), fake("b"), fake("c").stops(secs(1))];
    let mut sim = Simulation::running(parking(1, rest_for_one()), fakes);
    sim.fail("b");
    sim.advance(secs(2));
    sim.fail("b");
    let ticket = sim.request("b", ChildRequest::RESTART);
    sim.advance(secs(2));
    assert_eq!(sim.answer(ticket), "started 3");
    sim.fail("b");
    sim.advance(secs(2));
    assert_eq!(sim.alive(), "a#1 b#4 c#4", "one restart was granted again");
}

#[test]
fn a_retry_in_a_part_of_a_range_that_is_parked_starts_that_part() {
    let fakes = [fake("a"), fake("a2"), fake("b").stops(secs(1)), fake("c"), fake("d")];
    let mut sim = Simulation::running(parking(1, rest_for_one()), fakes);
    sim.fail("c");
    sim.fail("c");
    sim.fail("a");
    assert_eq!(
        sim.acts(),
        "cancel d, start c#2, start d#2, gave up c, cancel d, gave up a, cancel b"
    );
    sim.request("c", ChildRequest::RESUME);
    assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "stopped");
    sim.advance(secs(9));
    assert_eq!(sim.acts(), "cancel a2, start c#3, start d#3");
    let [a2, d] = ["a2", "d"].map(|name| sim.state(sim.key(name)));
    assert_eq!(
        (a2, d),
        (Some(ChildState::Down(DownState::DownWithGroup)), Some(ChildState::Active))
    );
    assert_eq!(sim.alive(), "c#3 d#3");
}

#[test]
fn two_retries_in_a_range_that_is_being_parked_start_both() {
    let fakes = [fake("a"), fake("b").stops(secs(1)), fake("c"), fake("c2"), fake("d")];
    let mut sim = Simulation::running(parking(0, rest_for_one()), fakes);
    for name in ["d", "c", "a"] {
        sim.fail(name);
    }
    let tickets = ["d", "c"].map(|name| sim.request(name, ChildRequest::RESUME));
    sim.advance(secs(9));
    assert_eq!(
        sim.timed(),
        "0ns gave up d, 0ns gave up c, 0ns cancel c2, 0ns gave up a, 0ns cancel b, \
         1s start c#2, 1s start c2#2, 1s start d#2"
    );
    assert_eq!(tickets.map(|ticket| sim.answer(ticket)), ["started 2"; 2]);
}

#[test]
fn a_crash_while_a_retry_marks_its_range_is_an_ordinary_failure() {
    let last = fake("z").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
    let fakes = (0..200).map(|number| fake(&number.to_string())).chain([last]);
    let mut sim = Simulation::running(one_for_all(), fakes);
    sim.call("z", ChildRequest::Kill);
    sim.advance(secs(1));
    sim.fake("z").dies = Some(ms(1));
    sim.skip();
    let ticket = sim.request("z", ChildRequest::RESUME);
    sim.fail("5");
    let acts = sim.acts();
    assert_eq!(acts.matches("cancel").count(), 199);
    assert_eq!(acts.matches("start").count(), 201);
    assert_eq!(sim.answer(ticket), "started 2");
}

#[test]
fn a_parked_child_comes_back_with_its_group() {
    let fakes = [fake("a"), fake("b"), fake("c").backoff(Backoff::none())];
    let rules = Rules { intensity: sliding(1), ..parking(1, rest_for_one()) };
    let mut sim = Simulation::running(rules, fakes);
    sim.fail("c");
    sim.fail("c");
    sim.advance(secs(2));
    sim.skip();
    sim.fail("b");
    assert_eq!(sim.acts(), "start b#2, start c#3");
}

#[test]
fn a_retry_during_the_first_start_does_not_make_it_come_up_early() {
    let rules = Rules { start: Start::Concurrent, ..parking(0, rest_for_one()) };
    let fakes = [fake("a").signals(secs(2)), fake("b"), fake("c").stops(secs(1))];
    let mut sim = begin(rules, fakes);
    sim.fail("b");
    sim.skip();
    sim.request("b", ChildRequest::RESUME);
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "1s start b#2, 1s start c#2, 2s up");
}

#[test]
fn the_first_start_goes_on_past_what_was_parked() {
    let fakes =
        [fake("a").signals(secs(1)), prompt("b").scripts([Script::Fail]).stops(secs(1)), fake("c")];
    let mut sim = begin(parking(0, rest_for_one()), fakes);
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns start a#1, 1s start b#1, 1s gave up b, 1s up");
    assert_eq!(sim.lifecycle("c"), Lifecycle::Stopped);
    assert_eq!(sim.call("b", ChildRequest::RESUME), "started 2");
    assert_eq!(sim.acts(), "start b#2, start c#1");
}
