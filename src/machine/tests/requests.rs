//! What each request leads to in each state.

use std::fmt::Write;
use std::time::Duration;

use super::super::simulator::{Kid, Play, Subject, World, kid, ms, rules, secs};
use super::super::{Dynamic, Event, Ordered, Request};
use crate::lifecycle::Lifecycle;
use crate::policy::{Backoff, OnExhausted, OnLeak, Rules, Shutdown, Strategy};

const REQUESTS: [Request; 8] = [
    Request::Start,
    Request::Terminate,
    Request::RestartStopped,
    Request::RestartRunning,
    Request::Kill,
    Request::Delete,
    Request::Retry,
    Request::Wake,
];

fn waiting() -> Rules {
    Rules { backoff: Backoff::constant(secs(9)), ..rules() }
}

fn parking() -> Rules {
    Rules { max_restarts: Some(0), on_exhausted: OnExhausted::Park, ..waiting() }
}

fn group() -> Rules {
    Rules { strategy: Strategy::OneForAll, ..waiting() }
}

/// A child that takes a second for everything.
fn slow() -> Kid {
    kid("b").stops(secs(1))
}

/// The answer to each request about `b` in a world that was just made.
fn row<M: Subject>(name: &str, world: impl Fn() -> World<M>) -> String {
    let mut row = format!("{name:>12}");
    for request in REQUESTS {
        let mut world = world();
        let key = world.key("b");
        let ticket = world.ask_for(key, request);
        // Those who wait get their answer within a few seconds.
        world.advance(secs(5));
        let _ = write!(row, " | {}", world.answer(ticket));
    }
    row
}

#[test]
fn every_request_has_its_answer_in_every_state_of_an_ordered_child() {
    fn begin(rules: Rules, kids: impl IntoIterator<Item = Kid>) -> World<Ordered> {
        let mut world = World::ordered(rules, kids);
        world.advance(Duration::ZERO);
        world
    }
    let rows = [
        row("turn to come", || begin(rules(), [kid("a").signals(secs(2)), slow()])),
        row("gated", || {
            let a = kid("a").signals(Duration::ZERO).plays([Play::Ignore]);
            begin(rules(), [a, slow().requires("a")])
        }),
        row("activating", || begin(rules(), [slow().signals(secs(2))])),
        row("active", || begin(rules(), [slow()])),
        row("in a group", || begin(group(), [kid("a"), slow()])),
        row("backoff", || {
            let mut world = begin(waiting(), [slow()]);
            world.fail("b");
            world
        }),
        row("awaiting", || {
            let mut world = begin(group(), [kid("a"), slow()]);
            world.fail("b");
            world
        }),
        row("its group", || {
            let mut world = begin(group(), [kid("a"), slow()]);
            world.fail("a");
            world.advance(secs(1));
            world
        }),
        row("stops: group", || {
            let mut world =
                begin(Rules { strategy: Strategy::OneForAll, ..rules() }, [kid("a"), slow()]);
            world.fail("a");
            world
        }),
        row("stops: hand", || {
            let mut world = begin(rules(), [slow()]);
            world.ask("b", Request::Terminate);
            world
        }),
        row("stops: self", || {
            let mut world = begin(rules(), [slow().transient()]);
            let key = world.key("b");
            world.event(Event::StopSelf { key, incarnation: 1 });
            world
        }),
        row("stops: fails", || {
            let b = slow().signals(None).activation_timeout(secs(1));
            let mut world = begin(rules(), [b]);
            world.advance(secs(1));
            world.kid("b").ready = Some(ms(1));
            world
        }),
        row("finished", || {
            let mut world = begin(rules(), [slow().transient()]);
            world.end("b");
            world
        }),
        row("by hand", || {
            let mut world = begin(rules(), [slow()]);
            world.ask("b", Request::Terminate);
            world.advance(secs(1));
            world
        }),
        row("ignored", || begin(rules(), [slow().signals(ms(0)).plays([Play::Ignore])])),
        row("given up", || {
            let mut world = begin(parking(), [slow()]);
            world.fail("b");
            world
        }),
        row("parked group", || {
            let mut world =
                begin(Rules { strategy: Strategy::OneForAll, ..parking() }, [kid("a"), slow()]);
            world.fail("a");
            world.advance(secs(1));
            world
        }),
        row("leaked", || {
            let b = kid("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
            let mut world = begin(rules(), [b]);
            world.call("b", Request::Kill);
            world.advance(secs(1));
            world.kid("b").dies = Some(ms(1));
            world
        }),
        row("forgotten", || {
            let mut world = begin(rules(), [kid("a"), slow().temporary()]);
            world.end("b");
            world
        }),
        row("shutdown", || {
            let mut world = begin(rules(), [slow().stops(secs(4))]);
            world.stop();
            world
        }),
    ];
    let expected = "";
    println!("{}", rows.join("\n"));
    assert_eq!(rows.join("\n"), expected);
}

#[test]
fn every_request_has_its_answer_in_every_state_of_an_equal_child() {
    fn begin(rules: Rules, b: Kid) -> World<Dynamic> {
        World::dynamic(rules, [b])
    }
    let rows = [
        row("activating", || begin(rules(), slow().signals(secs(2)))),
        row("active", || begin(rules(), slow())),
        row("backoff", || {
            let mut world = begin(waiting(), slow());
            world.fail("b");
            world
        }),
        row("stops: hand", || {
            let mut world = begin(rules(), slow());
            world.ask("b", Request::Terminate);
            world
        }),
        row("stops: renew", || {
            let mut world = begin(rules(), slow());
            world.ask("b", Request::RestartRunning);
            world
        }),
        row("given up", || {
            let mut world = begin(parking(), slow());
            world.fail("b");
            world
        }),
        row("leaked", || {
            let b = kid("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
            let mut world = begin(rules(), b);
            world.call("b", Request::Kill);
            world.advance(secs(1));
            world.kid("b").dies = Some(ms(1));
            world
        }),
        row("forgotten", || {
            let mut world = begin(rules(), slow().transient());
            world.end("b");
            world
        }),
        row("shutdown", || {
            let mut world = begin(rules(), slow().stops(secs(4)));
            world.stop();
            world
        }),
    ];
    let expected = "";
    println!("{}", rows.join("\n"));
    assert_eq!(rows.join("\n"), expected);
}
