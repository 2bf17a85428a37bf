//! Counts of all children. The [invariants](crate::core::verify::invariants) count too; these tests check
//! children of the same name.

use crate::core::ChildRequest;
use crate::core::verify::simulation::{Simulation, fake, rules};
use crate::lifecycle::Lifecycle;

/// The number of children, and how many of them are supervisors.
fn count(sim: &Simulation) -> (u32, u32) {
    let counts = sim.machine.counts();
    (counts.specs(), counts.supervisors)
}

#[test]
fn supervisors_are_counted_from_when_they_are_declared_until_they_are_deleted() {
    let mut sim = Simulation::ordered(rules(), [fake("a").supervisor(), fake("b")]);
    assert_eq!(count(&sim), (2, 1), "before any has started");
    sim.settle();
    sim.add(fake("c").supervisor());
    assert_eq!(count(&sim), (3, 2));
    for (name, expected) in [("b", (2, 2)), ("a", (1, 1)), ("c", (0, 0))] {
        sim.call(name, ChildRequest::Terminate);
        sim.call(name, ChildRequest::Delete);
        assert_eq!(count(&sim), expected, "without {name}");
    }
}

#[test]
fn a_fallback_is_counted_as_what_it_is_and_not_as_what_it_replaces() {
    let limited = |name: &str| fake(name).consecutive(0);
    let fakes = [
        limited("worker").fallback(fake("x").supervisor()),
        limited("supervisor").supervisor().fallback(fake("x")),
        limited("both").supervisor().fallback(fake("x").supervisor()),
        limited("neither").fallback(fake("x")),
    ];
    let mut sim = Simulation::dynamic(rules(), fakes);
    assert_eq!(count(&sim), (4, 2));
    for (name, supervisors) in [("worker", 3), ("supervisor", 2), ("both", 2), ("neither", 2)] {
        sim.fail(name);
        assert_eq!(sim.why(name), Some("fallback"));
        assert_eq!(count(&sim), (4, supervisors), "{name}");
    }
    assert_eq!(sim.machine.counts().of(Lifecycle::Active), 4);
}
