//! The answer to each request in each state.

use std::time::Duration;

use super::{group, parking, slow, waiting};
use crate::core::verify::REQUESTS;
use crate::core::verify::simulation::{FakeChild, Script, Simulation, fake, ms, rules, secs};
use crate::core::{ChildRequest, MachineEvent};
use crate::exit::ExitKind;
use crate::policy::{OnExhausted, OnExit, OnLeak, Rules, Shutdown, Strategy};

fn stopping() -> Rules {
    Rules { on_exhausted: OnExhausted::StopChild, ..parking() }
}

fn pausing() -> Rules {
    Rules { on_exhausted: OnExhausted::Pause(secs(9)), ..parking() }
}

fn asking() -> Rules {
    Rules { has_failure_callback: true, ..waiting() }
}

/// The answers to all requests about `b`, each in a simulation of its own.
fn answers(sim: &impl Fn() -> Simulation) -> [String; REQUESTS.len()] {
    REQUESTS.map(|request| {
        let mut sim = sim();
        let (key, lifecycle) = (sim.key("b"), sim.lifecycle("b"));
        let ticket = sim.request_of(key, request);
        // Waiting callers are answered within a few seconds.
        sim.advance(secs(5));
        let answer = sim.answer(ticket);
        if answer == format!("invalid state {lifecycle}") {
            "·".to_owned()
        } else {
            answer.to_owned()
        }
    })
}

/// A row of a table of answers. A dot marks an answer of `InvalidState`.
fn row(name: &str, sim: impl Fn() -> Simulation) -> String {
    let answers = answers(&sim);
    let [a, keep, b, stop, remove, c, d, e, f, g, i, j, reset, hold, release] = answers;
    assert_eq!([stop, remove, reset, hold, release], ["done"; 5], "{name}: they fit any state");
    assert_eq!(keep, a, "{name}: only a failed start makes a difference");
    format!("{name:13} {a:9} {b:9} {c:10} {d:10} {e:4} {f:10} {g:10} {i:9} {j}")
}

#[test]
fn every_request_has_its_answer_in_every_state_of_an_ordered_child() {
    fn begin(rules: Rules, fakes: impl IntoIterator<Item = FakeChild>) -> Simulation {
        let mut sim = Simulation::ordered(rules, fakes);
        sim.advance(Duration::ZERO);
        sim
    }
    let rows = [
        row("turn to come", || begin(rules(), [fake("a").signals(secs(2)), slow()])),
        row("gated", || {
            let a = fake("a").signals(Duration::ZERO).scripts([Script::Ignore]);
            begin(rules(), [a, slow().requires("a")])
        }),
        row("activating", || begin(rules(), [slow().signals(secs(2))])),
        row("active", || begin(rules(), [slow()])),
        row("in a group", || begin(group(), [fake("a"), slow()])),
        row("backoff", || {
            let mut sim = begin(waiting(), [slow()]);
            sim.fail("b");
            sim
        }),
        row("asking", || {
            let mut sim = begin(asking(), [slow().silent()]);
            sim.fail("b");
            sim
        }),
        row("awaiting", || {
            let mut sim = begin(group(), [fake("a"), slow()]);
            sim.fail("b");
            sim
        }),
        row("its group", || {
            let mut sim = begin(group(), [fake("a"), slow()]);
            sim.fail("a");
            sim.advance(secs(1));
            sim
        }),
        row("stops: group", || {
            let mut sim =
                begin(Rules { strategy: Strategy::OneForAll, ..rules() }, [fake("a"), slow()]);
            sim.fail("a");
            sim
        }),
        row("stops: manual", || {
            let mut sim = begin(rules(), [slow()]);
            sim.request("b", ChildRequest::Terminate);
            sim
        }),
        row("stops: self", || {
            let mut sim = begin(rules(), [slow().transient()]);
            let key = sim.key("b");
            sim.event(MachineEvent::StopSelf { key, incarnation: 1 });
            sim
        }),
        row("stops: fails", || {
            let b = slow().signals(None).activation_timeout(secs(1));
            let mut sim = begin(rules(), [b]);
            sim.advance(secs(1));
            sim.fake("b").ready = Some(ms(1));
            sim
        }),
        row("finished", || {
            let mut sim = begin(rules(), [slow().transient()]);
            sim.end("b");
            sim
        }),
        row("terminated", || {
            let mut sim = begin(rules(), [slow()]);
            sim.request("b", ChildRequest::Terminate);
            sim.advance(secs(1));
            sim
        }),
        row("ignored", || begin(rules(), [slow().signals(ms(0)).scripts([Script::Ignore])])),
        row("given up", || {
            let mut sim = begin(parking(), [slow()]);
            sim.fail("b");
            sim
        }),
        row("not restarted", || {
            let mut sim =
                begin(group(), [fake("a"), slow().on_exit(ExitKind::Failed, OnExit::Leave)]);
            sim.fail("b");
            sim
        }),
        row("stopped", || {
            let mut sim = begin(stopping(), [slow()]);
            sim.fail("b");
            sim
        }),
        row("pauses", || {
            let mut sim = begin(pausing(), [slow()]);
            sim.fail("b");
            sim
        }),
        row("parked group", || {
            let mut sim =
                begin(Rules { strategy: Strategy::OneForAll, ..parking() }, [fake("a"), slow()]);
            sim.fail("a");
            sim.advance(secs(1));
            sim
        }),
        row("leaked", || {
            let b = fake("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
            let mut sim = begin(rules(), [b]);
            sim.call("b", ChildRequest::Kill);
            sim.advance(secs(1));
            sim.fake("b").dies = Some(ms(1));
            sim
        }),
    ];
    #[rustfmt::skip]
    let expected = [
        //              start     terminate again      restart    kill delete     resume     find      try
        "turn to come  started 1 done      restarting started 1  ·    restarting started 1  started 1 restarting",
        "gated         ·         done      restarting gated      ·    restarting gated      ·         ·",
        "activating    ·         done      running    started 2  done running    started 1  started 1 restarting",
        "active        ·         done      running    started 2  done running    started 1  started 1 started 1",
        "in a group    ·         done      running    started 2  done running    started 1  started 1 started 1",
        "backoff       ·         done      restarting started 2  ·    restarting started 2  -         restarting",
        "asking        ·         done      ·          started 2  ·    done       started 2  shutting down restarting",
        "awaiting      ·         done      restarting started 2  ·    restarting started 2  -         restarting",
        "its group     ·         done      restarting started 2  ·    restarting started 2  -         restarting",
        "stops: group  ·         done      running    started 2  done running    started 2  started 2 restarting",
        "stops: manual ·         done      running    started 2  done running    started 2  ·         ·",
        "stops: self   ·         done      running    started 2  done running    started 2  stopped   restarting",
        "stops: fails  ·         done      running    started 2  done running    started 2  started 2 restarting",
        "finished      ·         done      started 2  started 2  ·    done       started 2  ·         ·",
        "terminated    ·         done      started 2  started 2  ·    done       started 2  ·         ·",
        "ignored       ·         done      started 2  started 2  ·    done       started 2  ·         ·",
        "given up      ·         done      started 2  started 2  ·    done       started 2  ·         ·",
        "not restarted ·         done      started 2  started 2  ·    done       started 2  ·         ·",
        "stopped       ·         done      started 2  started 2  ·    done       started 2  ·         ·",
        "pauses        ·         done      restarting started 2  ·    restarting started 2  -         restarting",
        "parked group  ·         done      started 2  started 2  ·    done       started 2  ·         ·",
        "leaked        ·         done      started 2  started 2  ·    done       started 2  ·         ·",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn every_request_has_its_answer_in_every_state_of_an_equal_child() {
    fn begin(rules: Rules, b: FakeChild) -> Simulation {
        Simulation::dynamic(rules, [b])
    }
    let rows = [
        row("activating", || begin(rules(), slow().signals(secs(2)))),
        row("active", || begin(rules(), slow())),
        row("asking", || {
            let mut sim = begin(asking(), slow().silent());
            sim.fail("b");
            sim
        }),
        row("backoff", || {
            let mut sim = begin(waiting(), slow());
            sim.fail("b");
            sim
        }),
        row("stops: manual", || {
            let mut sim = begin(rules(), slow());
            sim.request("b", ChildRequest::Terminate);
            sim
        }),
        row("stops: renew", || {
            let mut sim = begin(rules(), slow());
            sim.request("b", ChildRequest::RESTART);
            sim
        }),
        row("given up", || {
            let mut sim = begin(parking(), slow());
            sim.fail("b");
            sim
        }),
        row("stopped", || {
            let mut sim = begin(stopping(), slow());
            sim.fail("b");
            sim
        }),
        row("pauses", || {
            let mut sim = begin(pausing(), slow());
            sim.fail("b");
            sim
        }),
        row("leaked", || {
            let b = fake("b").leaks().shutdown(Shutdown::BrutalKill).on_leak(OnLeak::Park);
            let mut sim = begin(rules(), b);
            sim.call("b", ChildRequest::Kill);
            sim.advance(secs(1));
            sim.fake("b").dies = Some(ms(1));
            sim
        }),
    ];
    #[rustfmt::skip]
    let expected = [
        //              start     terminate again      restart    kill delete     resume     find      try
        "activating    ·         done      running    started 2  done running    started 1  started 1 restarting",
        "active        ·         done      running    started 2  done running    started 1  started 1 started 1",
        "asking        ·         done      ·          started 2  ·    done       started 2  not found restarting",
        "backoff       ·         done      restarting started 2  ·    restarting started 2  -         restarting",
        "stops: manual ·         done      running    started 2  done running    started 2  ·         ·",
        "stops: renew  ·         done      running    started 2  done running    started 2  started 2 restarting",
        "given up      ·         done      ·          started 2  ·    done       started 2  ·         ·",
        "stopped       ·         done      ·          started 2  ·    done       started 2  ·         ·",
        "pauses        ·         done      restarting started 2  ·    restarting started 2  -         restarting",
        "leaked        ·         done      ·          started 2  ·    done       started 2  ·         ·",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_child_that_is_gone_is_not_found() {
    let ordered = || {
        let mut sim = Simulation::running(rules(), [fake("a"), slow().temporary()]);
        sim.end("b");
        sim
    };
    let dynamic = || {
        let mut sim = Simulation::dynamic(rules(), [fake("a"), slow().transient()]);
        sim.end("b");
        sim
    };
    assert_eq!(answers(&ordered), ["not found"; REQUESTS.len()]);
    assert_eq!(answers(&dynamic), ["not found"; REQUESTS.len()]);
}

#[test]
fn a_supervisor_that_is_stopping_refuses_all_requests_that_do_not_stop_the_child() {
    let ordered = || {
        let mut sim = Simulation::running(rules(), [slow().stops(secs(4))]);
        sim.stop();
        sim
    };
    let dynamic = || {
        let mut sim = Simulation::dynamic(rules(), [slow().stops(secs(4))]);
        sim.stop();
        sim
    };
    let fits =
        |request| matches!(request, ChildRequest::Stop | ChildRequest::Remove | ChildRequest::Kill);
    let expected = REQUESTS.map(|it| if fits(it) { "done" } else { "shutting down" });
    assert_eq!(answers(&ordered), expected);
    assert_eq!(answers(&dynamic), expected);
}

#[test]
fn a_call_joins_the_stop_of_the_supervisor_and_is_answered_when_that_comes_to_the_child() {
    let mut sim = Simulation::running(rules(), [slow().stops(secs(4)), fake("c").stops(secs(3))]);
    sim.stop();
    let ticket = sim.request("b", ChildRequest::Stop);
    sim.advance(secs(6));
    assert_eq!(sim.answer(ticket), "-", "`c` has needed three seconds, and `b` four");
    sim.advance(secs(1));
    assert_eq!(sim.answer(ticket), "done");
}

#[test]
fn a_child_is_removed_in_every_state_and_a_later_stop_does_not_keep_it() {
    for stop in [ChildRequest::Stop, ChildRequest::Terminate, ChildRequest::Hold] {
        let mut sim = Simulation::running(group(), [fake("a"), slow().stops(secs(2))]);
        let removed = sim.request("b", ChildRequest::Remove);
        let _ = sim.request("b", stop);
        let refused = sim.request("b", ChildRequest::RESTART);
        assert_eq!(sim.answer(refused), "not found");
        let key = sim.key("b");
        sim.advance(secs(2));
        assert_eq!(sim.answer(removed), "done");
        let again = sim.request_of(key, ChildRequest::RESUME);
        assert_eq!(sim.answer(again), "not found");
    }
}

#[test]
fn a_child_that_is_removed_while_its_group_restarts_is_not_started_with_it() {
    let mut sim = Simulation::running(group(), [fake("a"), slow().stops(secs(2)), fake("c")]);
    sim.fail("a");
    let removed = sim.request("b", ChildRequest::Remove);
    sim.advance(secs(10));
    assert_eq!(sim.answer(removed), "done");
    for name in ["a", "c"] {
        assert_eq!(sim.call(name, ChildRequest::Find { wait: false }), "started 2");
    }
}
