//! The first start of all children, in order or at once.

use super::{begin, limited, prompt, rest_for_one, waiting};
use crate::core::verify::simulation::{Script, Simulation, fake, ms, rules, secs};
use crate::core::{ChildRequest, RequirementId};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, FirstStart, Rules, Start, Strategy};

#[test]
fn each_starts_when_the_one_before_is_ready() {
    let fakes = [fake("a").signals(secs(1)), fake("b").signals(secs(2)), fake("c")];
    let mut sim = begin(rules(), fakes);
    assert_eq!(sim.acts(), "start a#1");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start b#1");
    sim.advance(secs(5));
    assert_eq!(sim.timed(), "3s start c#1, 3s up");
    assert_eq!(sim.story("a"), "discovered → resolved → activating → active");
}

#[test]
fn a_concurrent_start_starts_all_children_and_is_up_with_the_last() {
    let rules = Rules { start: Start::Concurrent, ..rules() };
    let fakes = [fake("a").signals(secs(2)), fake("b").signals(secs(1)), fake("c")];
    let mut sim = begin(rules, fakes);
    assert_eq!(sim.acts(), "start a#1, start b#1, start c#1");
    sim.advance(secs(5));
    assert_eq!(sim.timed(), "2s up");
}

#[test]
fn a_requirement_gates_a_concurrent_start() {
    let rules = Rules { start: Start::Concurrent, ..rules() };
    let fakes = [
        fake("a").signals(secs(2)),
        fake("b").requires("a").signals(secs(1)),
        fake("c").requires("a").requires("b"),
        fake("d"),
    ];
    let mut sim = begin(rules, fakes);
    assert_eq!(sim.acts(), "start a#1, start d#1");
    assert_eq!(sim.why("c"), Some("waits for a requirement"));
    assert_eq!(sim.lifecycle("c"), Lifecycle::Discovered);
    sim.advance(secs(5));
    assert_eq!(sim.timed(), "2s start b#1, 3s start c#1, 3s up");
}

#[test]
fn a_child_that_is_down_for_good_lets_the_next_start() {
    let fakes = [
        prompt("a").transient().scripts([Script::End]),
        prompt("b").scripts([Script::Ignore]),
        prompt("c").temporary().scripts([Script::Fail]),
        prompt("d").temporary().scripts([Script::Ignore]),
        fake("e"),
    ];
    let mut sim = begin(rules(), fakes);
    assert_eq!(
        sim.acts(),
        "start a#1, start b#1, start c#1, removed c, start d#1, removed d, start e#1, up"
    );
    assert_eq!(sim.why("a"), Some("finished"));
    assert_eq!(sim.why("b"), Some("declined to start"));
    assert_eq!(sim.story("b"), "discovered → resolved → activating → stopped (ignored)");
    assert_eq!(
        sim.story("a"),
        "discovered → resolved → activating → deactivating → stopped (normal)"
    );
}

#[test]
fn a_failed_first_start_is_retried_uncharged_and_blocks_the_next_child() {
    let fakes = [prompt("a").scripts([Script::Fail; 4]), fake("b")];
    let mut sim = begin(limited(1, waiting(rules())), fakes);
    assert_eq!(sim.acts(), "start a#1");
    assert_eq!(
        sim.story("a"),
        "discovered → resolved → activating → errored (activation_failed) → restarting"
    );
    sim.advance(secs(5));
    assert_eq!(
        sim.timed(),
        "200ms start a#2, 400ms start a#3, 600ms start a#4, 800ms start a#5, 800ms start b#1, \
         800ms up"
    );
}

#[test]
fn without_a_delay_it_is_charged() {
    let mut sim = begin(limited(2, rules()), [prompt("a").scripts([Script::Fail; 9])]);
    assert_eq!(
        sim.acts(),
        "start a#1, start a#2, start a#3, gave up a, finish escalated a: activation_failed"
    );
}

#[test]
fn count_failed_starts_charges_it_too() {
    let rules = Rules { count_failed_starts: true, ..limited(1, waiting(rules())) };
    let mut sim = begin(rules, [prompt("a").scripts([Script::Fail; 9])]);
    sim.advance(secs(9));
    assert_eq!(
        sim.timed(),
        "0ns start a#1, 200ms start a#2, 200ms gave up a, \
         200ms finish escalated a: activation_failed"
    );
}

#[test]
fn an_escalation_is_charged_also_before_it_was_active() {
    let fakes = [prompt("a").scripts([Script::Escalate; 9])];
    let mut sim = begin(limited(1, waiting(rules())), fakes);
    sim.advance(secs(9));
    assert!(sim.acts().ends_with("start a#2, gave up a, finish escalated a: escalated"));
}

#[test]
fn with_no_restarts_there_is_no_second_attempt_not_even_before_active() {
    let mut sim = begin(limited(0, waiting(rules())), [prompt("a").scripts([Script::Fail])]);
    assert_eq!(sim.acts(), "start a#1, gave up a, finish escalated a: activation_failed");
}

#[test]
fn the_first_start_fails_as_a_whole_if_configured() {
    let rules = Rules { first_start: FirstStart::Fail, ..waiting(rules()) };
    let fakes = [fake("a"), fake("b"), prompt("c").scripts([Script::Panic]), fake("d")];
    let mut sim = begin(rules, fakes);
    assert_eq!(
        sim.acts(),
        "start a#1, start b#1, start c#1, gave up c, cancel b, cancel a, \
         finish start failed c: panicked"
    );
}

#[test]
fn once_it_is_up_a_failed_start_is_an_ordinary_failure() {
    let rules = Rules { first_start: FirstStart::Fail, ..waiting(rules()) };
    let mut sim = Simulation::running(rules, [prompt("a").scripts([Script::Run, Script::Fail])]);
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(sim.timed(), "200ms start a#2, 400ms start a#3");
}

#[test]
fn a_child_that_was_up_and_fails_its_restart_does_not_fail_the_first_start() {
    let rules = Rules {
        strategy: Strategy::OneForAll,
        first_start: FirstStart::Fail,
        count_failed_starts: true,
        ..limited(5, rules())
    };
    let a = prompt("a").scripts([Script::Run, Script::Fail]);
    let mut sim = begin(rules, [a, fake("b").signals(secs(1)), fake("c")]);
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(
        sim.timed(),
        "0ns start a#1, 0ns start b#1, 0ns cancel b, 0ns start a#2, 0ns start a#3, 0ns start b#2, \
         1s start c#1, 1s up"
    );
    assert_eq!(sim.machine.intensity(sim.now).0, 2, "both failures are charged");
}

#[test]
fn a_child_that_has_declined_or_finished_does_not_fail_the_first_start_when_its_group_restarts() {
    for first in [Script::Ignore, Script::End] {
        let rules = Rules { first_start: FirstStart::Fail, ..rest_for_one() };
        let b = prompt("b").transient().scripts([first, Script::Fail]);
        let mut sim = begin(rules, [fake("a"), b, fake("c").signals(secs(1))]);
        sim.fail("a");
        sim.advance(secs(1));
        let acts = "start a#1, start b#1, start c#1, cancel c, start a#2, start b#2, start b#3, \
                    start c#2, up";
        assert_eq!(sim.acts(), acts, "{first:?}");
    }
}

#[test]
fn a_child_whose_first_start_its_group_has_interrupted_fails_the_first_start() {
    let rules = Rules { first_start: FirstStart::Fail, ..rest_for_one() };
    let b = fake("b").signals(secs(1)).scripts([Script::Run, Script::Fail]);
    let mut sim = begin(rules, [fake("a"), b, fake("c")]);
    sim.fail("a");
    sim.advance(secs(1));
    assert_eq!(
        sim.acts(),
        "start a#1, start b#1, cancel b, start a#2, start b#2, gave up b, cancel a, \
         finish start failed b: activation_failed"
    );
}

#[test]
fn a_child_that_is_not_ready_in_time_is_ended_and_then_retried() {
    let a = fake("a").signals(None).activation_timeout(secs(3)).stops(secs(1));
    let mut sim = begin(waiting(rules()), [a]);
    sim.fake("a").ready = Some(ms(1));
    sim.advance(secs(9));
    assert_eq!(sim.timed(), "0ns start a#1, 3s cancel a, 4s start a#2, 4.001s up");
    assert_eq!(
        sim.story("a"),
        "discovered → resolved → activating → errored (activation_timed_out) → resolved → \
         activating → active"
    );
}

#[test]
fn a_child_gated_by_a_sibling_that_will_start_blocks_the_next() {
    let fakes = [
        fake("a").backoff(Backoff::constant(secs(3))),
        fake("b").signals(secs(1)),
        fake("c").requires("a"),
        fake("d"),
    ];
    let mut sim = begin(rules(), fakes);
    sim.fail("a");
    sim.advance(secs(9));
    assert_eq!(
        sim.timed(),
        "0ns start a#1, 0ns start b#1, 3s start a#2, 3s start c#1, 3s start d#1, 3s up"
    );
}

#[test]
fn under_concurrent_start_it_is_up_when_all_have_passed_also_after_a_group_restart() {
    let rules = Rules { start: Start::Concurrent, ..rest_for_one() };
    let mut sim = begin(rules, [fake("a").signals(secs(2)), fake("b"), fake("c")]);
    sim.fail("b");
    sim.advance(secs(9));
    assert_eq!(
        sim.timed(),
        "0ns start a#1, 0ns start b#1, 0ns start c#1, 0ns cancel c, 0ns start b#2, \
         0ns start c#2, 2s up"
    );
}

#[test]
fn a_child_gated_by_a_sibling_that_stays_down_blocks_no_start_and_starts_with_it() {
    let fakes = [prompt("a").scripts([Script::Ignore]), fake("b").requires("a"), fake("c")];
    let mut sim = begin(rules(), fakes);
    assert_eq!(sim.acts(), "start a#1, start c#1, up");
    assert_eq!(sim.call("a", ChildRequest::RESTART_CHILD), "started 2");
    assert_eq!(sim.acts(), "start a#2, start b#1");
}

#[test]
fn a_requirement_that_ended_well_is_met() {
    let fakes = [
        prompt("a").transient().scripts([Script::End]),
        prompt("b").temporary().scripts([Script::End]),
        fake("c").requires("a").requires("b"),
    ];
    let mut sim = begin(rules(), fakes);
    assert_eq!(sim.acts(), "start a#1, start b#1, removed b, start c#1, up");
}

#[test]
fn a_slow_start_does_not_keep_from_stopping() {
    let fakes = [fake("a"), fake("b").signals(None), fake("c")];
    let mut sim = begin(rules(), fakes);
    sim.stop();
    assert_eq!(sim.acts(), "start a#1, start b#1, cancel b, cancel a, finish stopped");
}

#[test]
fn a_group_restart_during_it_revives_only_its_range() {
    let fakes = [
        prompt("a").transient().scripts([Script::End]),
        fake("b"),
        fake("c").signals(secs(1)),
        fake("d"),
    ];
    let mut sim = begin(rest_for_one(), fakes);
    sim.fail("b");
    assert_eq!(sim.acts(), "start a#1, start b#1, start c#1, cancel c, start b#2, start c#2");
    assert_eq!(sim.lifecycle("d"), Lifecycle::Discovered, "the first start has not reached it");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "start d#1, up");
}

#[test]
fn many_start_in_slices() {
    let fakes = (0..300).map(|number| fake(&number.to_string()));
    let mut sim = Simulation::running(rules(), fakes);
    assert_eq!(sim.alive().split(' ').count(), 300);
    sim.stop();
    assert!(sim.acts().starts_with("cancel 299, cancel 298"));
    assert!(sim.finished());
}

#[test]
fn a_chain_of_requirements_can_be_asked_for() {
    let fakes = [fake("a"), fake("b").requires("a"), fake("c").requires("b"), fake("d")];
    let sim = Simulation::ordered(rules(), fakes);
    let [b, c, d] = ["b", "c", "d"].map(|name| sim.key(name));
    // The first name that a child requires.
    let id = RequirementId::Name(0);
    assert_eq!(sim.machine.chain_to(id, &[c]), Some(vec![c, b]));
    assert_eq!(sim.machine.chain_to(id, &[d]), None);
}
