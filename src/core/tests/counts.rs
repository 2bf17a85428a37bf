//! What is counted over all children. The [witness](super::super::witness) counts along; here is what
//! a supervisor's name adds to that.

use super::super::ChildRequest;
use super::super::simulator::{World, kid, rules};
use crate::lifecycle::Lifecycle;

/// How many children there are, and how many of them are supervisors.
fn count(world: &World) -> (u32, u32) {
    let counts = world.machine.counts();
    (counts.specs(), counts.supervisors)
}

#[test]
fn supervisors_are_counted_from_when_they_are_declared_until_they_are_deleted() {
    let mut world = World::ordered(rules(), [kid("a").supervisor(), kid("b")]);
    assert_eq!(count(&world), (2, 1), "before any has started");
    world.settle();
    world.add(kid("c").supervisor());
    assert_eq!(count(&world), (3, 2));
    for (name, expected) in [("b", (2, 2)), ("a", (1, 1)), ("c", (0, 0))] {
        world.call(name, ChildRequest::Terminate);
        world.call(name, ChildRequest::Delete);
        assert_eq!(count(&world), expected, "without {name}");
    }
}

#[test]
fn a_fallback_is_counted_as_what_it_is_and_not_as_what_it_replaces() {
    let limited = |name: &str| kid(name).consecutive(0);
    let kids = [
        limited("worker").fallback(kid("x").supervisor()),
        limited("supervisor").supervisor().fallback(kid("x")),
        limited("both").supervisor().fallback(kid("x").supervisor()),
        limited("neither").fallback(kid("x")),
    ];
    let mut world = World::dynamic(rules(), kids);
    assert_eq!(count(&world), (4, 2));
    for (name, supervisors) in [("worker", 3), ("supervisor", 2), ("both", 2), ("neither", 2)] {
        world.fail(name);
        assert_eq!(world.why(name), Some("fallback"));
        assert_eq!(count(&world), (4, supervisors), "{name}");
    }
    assert_eq!(world.machine.counts().of(Lifecycle::Active), 4);
}
