//! Who is said to stop after whom, so that each end can ask the next child.

use std::time::Duration;

use super::super::simulator::{Kid, World, kid, rules};
use super::super::{ChildRequest, Machine};
use crate::policy::{Rules, Shutdown, Strategy};

/// From the one that stops now.
fn line(world: &World) -> String {
    let present = world.present();
    let name = |key| &*present.iter().find(|it| it.1 == key).expect("it is there").0;
    let line =
        std::iter::successors(world.machine.stops_now(), |&key| world.machine.stops_after(key));
    line.map(name).collect::<Vec<_>>().join(" ")
}

/// Each takes a while to stop.
fn slow(names: &str) -> impl Iterator<Item = Kid> {
    names.split(' ').map(|name| kid(name).stops(Duration::from_secs(1)))
}

#[test]
fn nobody_stops_while_the_supervisor_runs() {
    assert_eq!(line(&World::running(rules(), slow("a b c"))), "");
}

#[test]
fn children_stop_in_reverse_order_each_after_the_one_behind_it() {
    let mut world = World::running(rules(), slow("a b c"));
    world.stop();
    assert_eq!(line(&world), "c b a");
    world.advance(Duration::from_secs(1));
    assert_eq!(line(&world), "b a");
}

#[test]
fn the_line_ends_before_a_supervisor_and_before_who_is_aborted_without_being_asked() {
    let supervisor = kid("b").supervisor();
    let killed = kid("b").shutdown(Shutdown::BrutalKill);
    for b in [supervisor, killed] {
        let kids = slow("a").chain([b]).chain(slow("c d"));
        let mut world = World::running(rules(), kids);
        world.stop();
        assert_eq!(line(&world), "d c");
    }
}

#[test]
fn the_line_ends_before_who_is_down() {
    let mut world = World::running(rules(), slow("a b c"));
    world.call("b", ChildRequest::Terminate);
    world.advance(Duration::from_secs(1));
    world.stop();
    assert_eq!(line(&world), "c");
}

#[test]
fn a_group_stops_in_the_same_way_and_nobody_in_front_of_it() {
    let rules = Rules { strategy: Strategy::RestForOne, ..rules() };
    let mut world = World::running(rules, slow("a b c d"));
    world.ask("b", ChildRequest::RestartRunning);
    assert_eq!(line(&world), "d c b");
}

#[test]
fn a_supervisor_ends_when_it_is_stopped_and_not_when_a_child_fails() {
    fn check(mut world: World, ends: bool) {
        assert!(!Machine::is_ending(&world.machine));
        if ends {
            world.stop();
        } else {
            world.fail("b");
        }
        assert_eq!(Machine::is_ending(&world.machine), ends);
    }
    let group = || Rules { strategy: Strategy::OneForAll, ..rules() };
    for ends in [true, false] {
        check(World::running(group(), slow("a b c")), ends);
        check(World::dynamic(rules(), slow("a b c")), ends);
    }
}

#[test]
fn equal_children_are_asked_at_once() {
    let mut world = World::dynamic(rules(), slow("a b"));
    world.stop();
    assert_eq!(world.acts(), "cancel b, cancel a");
    assert_eq!(line(&world), "");
}
