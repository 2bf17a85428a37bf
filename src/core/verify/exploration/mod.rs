//! Every order of events, from every configuration of a few children.
//!
//! The machine is pure, so the exploration can take it through all that can happen, state by state:
//! exits of each kind, starts that fail or are declined, readiness, deadlines on time and late,
//! requests, stops and leaks. It checks the [invariants](crate::core::verify::invariants) in each state
//! and on the way from each.
//!
//! In the tests the bound is small, and only a sample of the plans is taken. `VERGER_EXPLORE` sets a
//! different bound; `cargo explore` does that, optimised, with all plans. `VERGER_EXPLORE_FLAVOUR=Leased`
//! takes the plans of one flavour only, which leaves time for a larger bound.
//!
//! # What is not explored
//!
//! 1. More than three children: ranges, merges and orders need no more. What depends on many children,
//!    the slices, is left to the property tests.
//! 2. Longer scripts than the bound. States with the same future are merged (see
//!    [`fingerprint`](crate::core::verify::fingerprint)), so the length of a script is the number of
//!    *different* states on its way.
//! 3. All settings with all settings. Strategy, restart types, limit, backoff and order of start are
//!    multiplied; the rest comes in the flavours of [`plan`].
//! 4. Instants between two beats. All times are whole beats, so an instant between two beats compares
//!    like one of them.
//! 5. A machine that gets the event of a later deadline before that of an earlier one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::core::verify::fingerprint::Fingerprint;
use crate::core::verify::simulation::{Script, Simulation, fake, ms, rules};
use crate::core::{ChildRequest, ConditionEvent, Machine, MachineEvent};
use crate::exit::ExitReason;
use crate::policy::{
    AutoShutdown, Backoff, FirstStart, Intensity, Jitter, OnExhausted, Resolution, RestartPolicy,
    RestartType, Rules, Start, Strategy,
};
use plan::{Flavour, Plan, plans};
use search::{CounterExample, Seen, compare_merged, explore};
use state::{ExploredState, PlannedChildren};
use step::{ExplorationStep, OwnPolicy, TaskExit};

mod plan;
mod search;
mod state;
mod step;

/// How far to explore.
struct Bound {
    children: usize,
    depth: usize,
    /// One of this many plans is explored.
    sample: usize,
}

const SMALL: [Bound; 3] = [
    Bound { children: 1, depth: 3, sample: 97 },
    Bound { children: 2, depth: 2, sample: 701 },
    Bound { children: 3, depth: 1, sample: 701 },
];

/// The bounds of `VERGER_EXPLORE`, as in `1:8 2:4`: children and depth, with all plans.
fn bounds(setting: &str) -> Vec<Bound> {
    let number = |text: &str| text.parse().expect("VERGER_EXPLORE is like `1:8 2:4`");
    let bounds = setting.split_whitespace().map(|bound| {
        let (children, depth) = bound.split_once(':').expect("VERGER_EXPLORE is like `1:8 2:4`");
        Bound { children: number(children), depth: number(depth), sample: 1 }
    });
    bounds.collect()
}

/// The plans of the flavour in `VERGER_EXPLORE_FLAVOUR`, or all of them.
fn chosen_plans(children: usize) -> Vec<Plan> {
    let mut plans = plans(children);
    if let Ok(flavour) = std::env::var("VERGER_EXPLORE_FLAVOUR") {
        plans.retain(|plan| format!("{:?}", plan.flavour) == flavour);
        assert!(!plans.is_empty(), "VERGER_EXPLORE_FLAVOUR is like `Leased`");
    }
    plans
}

#[test]
fn every_order_of_events_keeps_the_promises() {
    let setting = std::env::var("VERGER_EXPLORE");
    let bounds = setting.map_or_else(|_| SMALL.into(), |setting| bounds(&setting));
    for Bound { children, depth, sample } in bounds {
        let began = Instant::now();
        let plans: Vec<_> = chosen_plans(children).into_iter().step_by(sample).collect();
        let seen = all(&plans, depth).unwrap_or_else(|found| {
            panic!("broken: {}\n\n{}\n", found.broken, found.script());
        });
        eprintln!(
            "{children} children, {depth} steps: {} plans, {} states, {} transitions, {:.1?}",
            plans.len(),
            seen.states,
            seen.transitions,
            began.elapsed(),
        );
    }
}

#[test]
fn states_that_are_merged_have_the_same_future() {
    let mut compared = 0;
    let sampled = if std::env::var_os("VERGER_EXPLORE").is_some() { 1 } else { 25 };
    for (children, depth, sample) in [(1, 4, 41), (2, 2, 211)] {
        for plan in plans(children).iter().step_by(sample * sampled) {
            compared += compare_merged(plan, depth);
        }
    }
    assert!(compared > 1_000, "{compared}");
}

/// Explores all plans on two threads.
fn all(plans: &[Plan], depth: usize) -> Result<Seen, Box<CounterExample>> {
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Ok(Seen::default())));
    let work = || {
        while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
            let seen = explore(plan, depth);
            let mut total = total.lock().expect("no thread panics");
            match (&mut *total, seen) {
                (Ok(total), Ok(seen)) => {
                    total.states += seen.states;
                    total.transitions += seen.transitions;
                }
                (Ok(_), Err(found)) => *total = Err(found),
                (Err(first), Err(found)) if found.steps.len() < first.steps.len() => {
                    *total = Err(found);
                }
                (Err(_), _) => return,
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    total.into_inner().expect("no thread panics")
}

/// Runs a script, and returns the simulation that it leads to and the script as text.
macro_rules! pasted {
    ($sim:ident: $($script:tt)*) => {{
        $($script)*
        ($sim, stringify!($($script)*))
    }};
}

#[test]
fn what_is_printed_can_be_pasted() {
    use ExplorationStep::{
        AbortAll, Add, Decide, Due, Exited, Healthy, Ignored, Pass, Policy, Ready, Request, Stop,
        StopSelf, Unhealthy,
    };
    let plan = Plan {
        dynamic: false,
        strategy: Strategy::RestForOne,
        budget: 2,
        waits: true,
        start: Start::Sequential,
        flavour: Flavour::Slow,
        types: vec![RestartType::Permanent, RestartType::Temporary],
    };
    let steps = vec![
        Due,
        Ready(0),
        Healthy(0),
        Ignored(1),
        Add(1),
        StopSelf(1),
        Policy(1, OwnPolicy::Type(RestartType::Permanent)),
        Policy(0, OwnPolicy::Once),
        Unhealthy(0),
        Decide(1, Resolution::GiveUp),
        Exited(1, TaskExit::Normal),
        Exited(0, TaskExit::Failed),
        Pass(1),
        Request(0, ChildRequest::RESUME),
        Exited(0, TaskExit::Escalated),
        Stop { hurried: true },
        AbortAll,
    ];
    let (sim, text) = pasted! { sim:
        let rules = Rules {
            strategy: Strategy::RestForOne,
            start: Start::Sequential,
            intensity: Some(Intensity::sliding(2, ms(200))),
            backoff: Backoff::exponential(ms(100), ms(200)).jitter(Jitter::None).reset_after(ms(100)),
            leak_timeout: ms(100),
            on_exhausted: OnExhausted::Escalate,
            first_start: FirstStart::Retry,
            count_failed_starts: false,
            has_failure_callback: false,
            auto_shutdown: AutoShutdown::Never,
            ..rules()
        };
        let mut sim = Simulation::ordered(rules, [
            fake("a").leaks().restart(RestartType::Permanent).shutdown(ms(100)).signals(None)
                .activation_timeout(ms(200)),
            fake("b").leaks().restart(RestartType::Temporary).shutdown(ms(100)).signals(None)
                .activation_timeout(ms(200)).requires("a")
        ]);
        sim.due();
        sim.child_event("a", |key, incarnation| MachineEvent::Ready { key, incarnation });
        sim.child_event("a", |key, incarnation| MachineEvent::Healthy { key, incarnation });
        sim.child_event("b", |key, incarnation| MachineEvent::Ignored { key, incarnation });
        sim.add(fake("b").leaks().restart(RestartType::Temporary).shutdown(ms(100)).signals(None)
            .activation_timeout(ms(200)).requires("a"));
        sim.child_event("b", |key, incarnation| MachineEvent::StopSelf { key, incarnation });
        sim.policy("b", RestartPolicy::new().restart(RestartType::Permanent));
        sim.policy("a", RestartPolicy::new().consecutive_restarts(1)
            .on_exhausted(OnExhausted::Park));
        sim.child_event("a", |key, incarnation| MachineEvent::Condition(ConditionEvent::Health {
            key, incarnation, problem: Some("ill".into())
        }));
        sim.decide("b", Resolution::GiveUp.into());
        sim.exit("b", ExitReason::Normal);
        sim.crash("a");
        sim.now += ms(100);
        sim.request("a", ChildRequest::RESUME);
        sim.exit("a", Script::Escalate.reason());
        sim.event(MachineEvent::Stop { within: Some(ms(100)) });
        sim.event(MachineEvent::AbortAll);
    };
    let mut state = ExploredState::begin(&plan, &PlannedChildren::of(&plan));
    for &step in &steps {
        state.take(step, &PlannedChildren::of(&plan)).expect("no invariant is broken");
    }
    let print = |machine: &Machine, now| {
        let mut print = Fingerprint::new(now);
        print.machine(machine);
        print.read()
    };
    assert_eq!(print(&sim.machine, sim.now), print(&state.machine, state.now));

    let broken = String::new();
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(bare(&CounterExample { plan, steps, broken }.script()), bare(text));
}
