//! The record of a child's conditions, which a child without one doesn't have.

use crate::core::verify::simulation::{Heart, Simulation, fake, rules, secs};
use crate::lifecycle::Lifecycle;
use crate::policy::{ChildLayer, Rules};

fn has_record(sim: &Simulation, name: &str) -> bool {
    let entry = sim.machine.children().entries.get(sim.key(name)).expect("a child that exists");
    entry.conditions.is_some()
}

#[test]
fn a_child_has_a_record_if_its_rules_request_a_condition() {
    let plain = || fake("a").significant().temporary();
    let sim = Simulation::running(rules(), [plain()]);
    assert!(!has_record(&sim, "a"));
    for child in [
        plain().leased(secs(5)),
        plain().watchdog(secs(4)),
        plain().run_time_limit(secs(4)),
        plain().fails_unhealthy(),
        plain().on_message(),
        plain().delays_delivery(),
    ] {
        let text = format!("{child:?}");
        let sim = Simulation::running(rules(), [child]);
        assert!(has_record(&sim, "a"), "{text}");
    }
}

#[test]
fn all_children_of_a_supervisor_with_a_failure_callback_have_a_record() {
    let rules = Rules { has_failure_callback: true, ..rules() };
    let sim = Simulation::running(rules, [fake("a"), fake("b")]);
    assert!(has_record(&sim, "a") && has_record(&sim, "b"));
}

#[test]
fn a_record_is_made_and_dropped_with_the_rules_that_request_it() {
    let mut sim = Simulation::running(rules(), [fake("a").heart(Heart::Manual(None))]);
    let key = sim.key("a");
    sim.advance(secs(9));
    sim.configure(key, ChildLayer { watchdog: Some(secs(4)), ..ChildLayer::default() });
    assert!(has_record(&sim, "a"));
    sim.advance(secs(3));
    sim.configure(key, ChildLayer::default());
    assert!(!has_record(&sim, "a"));
    sim.advance(secs(9));
    assert_eq!((sim.acts().as_str(), sim.lifecycle("a")), ("", Lifecycle::Active));

    sim.configure(key, ChildLayer { run_time_limit: Some(secs(60)), ..ChildLayer::default() });
    sim.advance(secs(38));
    assert_eq!(sim.acts(), "", "the time before counts, but isn't over");
    sim.advance(secs(1));
    assert_eq!(sim.acts(), "cancel a, start a#2");
}

#[test]
fn a_fallback_has_a_record_for_itself() {
    let a = fake("a").watchdog(secs(4)).heart(Heart::Beats).consecutive(0).fallback(fake("x"));
    let mut sim = Simulation::running(rules(), [a]);
    assert!(has_record(&sim, "a"));
    sim.fail("a");
    assert_eq!((sim.alive().as_str(), has_record(&sim, "a")), ("a#2", false));
}
