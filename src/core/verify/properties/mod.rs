//! Random children and random scripts.
//!
//! The [simulation](crate::core::verify::simulation) checks the invariants at every event; the properties
//! check the outcome.

mod children;
mod rules;
mod script;

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::core::MachineEvent;
use crate::core::child::{ChildState, DownState};
use crate::core::verify::simulation::{FakeChild, Simulation, ms, secs};
use crate::exit::{ExitError, ExitReason};
use crate::policy::{AutoShutdown, FirstStart, Rules, Shutdown};
use children::fakes;
use rules::some_rules;
use script::{ScriptStep, follow, step};

#[derive(Clone, Copy, Debug)]
enum Conclusion {
    Stop {
        within: Option<u64>,
    },
    StopTwice {
        within: u64,
        then: u64,
    },
    /// An ordered stop, and then no more time for it.
    Close {
        after: u64,
    },
    AbortAll,
    Heal,
}

fn end() -> impl Strategy<Value = Conclusion> {
    prop_oneof![
        option::of(0..3_000_u64).prop_map(|within| Conclusion::Stop { within }),
        (0..3_000_u64, 0..3_000_u64)
            .prop_map(|(within, then)| Conclusion::StopTwice { within, then }),
        (0..1_000_u64).prop_map(|after| Conclusion::Close { after }),
        Just(Conclusion::AbortAll),
        Just(Conclusion::Heal),
        Just(Conclusion::Heal),
    ]
}

/// How long the remaining children may take to stop: one after the other, and all at once.
fn bounds(sim: &Simulation) -> (Option<Duration>, Option<Duration>) {
    let leak = sim.machine.children().rules.leak_timeout;
    let mut bounds = (Some(Duration::ZERO), Some(Duration::ZERO));
    for (_, key) in sim.present() {
        let grace = match sim.machine.children().shutdown(key) {
            Shutdown::BrutalKill => Some(leak),
            Shutdown::Timeout(grace) | Shutdown::Drain(grace) => Some(grace + leak),
            Shutdown::Infinity => None,
        };
        let (sum, max) = bounds;
        bounds = (
            sum.zip(grace).map(|(sum, grace)| sum + grace),
            max.zip(grace).map(|(max, grace)| max.max(grace)),
        );
    }
    bounds
}

/// Ends the simulation, and checks the outcome.
fn conclude(
    sim: &mut Simulation,
    end: Conclusion,
    bound: impl Fn(&Simulation) -> Option<Duration>,
) -> Result<(), TestCaseError> {
    let leak = sim.machine.children().rules.leak_timeout;
    let limit = match end {
        _ if sim.finished() => return Ok(()),
        Conclusion::Heal => return recover(sim),
        Conclusion::AbortAll => {
            let limit = Some(leak);
            sim.event(MachineEvent::AbortAll);
            limit
        }
        Conclusion::Close { after } => {
            sim.event(MachineEvent::Stop { within: None });
            sim.advance(ms(after));
            sim.event(MachineEvent::Close { all: false });
            sim.advance(ms(after));
            if !sim.finished() {
                sim.event(MachineEvent::Close { all: true });
                sim.event(MachineEvent::AbortAll);
            }
            Some(leak)
        }
        Conclusion::Stop { within } => {
            let limit = bound(sim);
            let within = within.map(ms);
            sim.event(MachineEvent::Stop { within });
            let total = within.map(|within| within + leak);
            limit.into_iter().chain(total).min()
        }
        Conclusion::StopTwice { within, then } => {
            sim.event(MachineEvent::Stop { within: Some(ms(within)) });
            sim.event(MachineEvent::Stop { within: Some(ms(then)) });
            Some(ms(within.min(then)) + leak)
        }
    };
    match limit {
        Some(limit) => {
            sim.advance(limit);
            prop_assert!(sim.finished(), "the supervisor stops within {:?}", limit);
        }
        None => {
            sim.heal();
            prop_assert!(sim.until_idle(secs(60)).is_some());
            prop_assert!(sim.finished(), "the supervisor stops when its children do");
        }
    }
    Ok(())
}

/// Checks that once no child fails any more, every child that should be up comes up.
fn recover(sim: &mut Simulation) -> Result<(), TestCaseError> {
    sim.heal();
    prop_assert!(sim.until_idle(secs(60)).is_some(), "the supervisor comes to rest");
    if sim.finished() {
        return Ok(());
    }
    sim.check_rest();
    Ok(())
}

proptest! {
    #![proptest_config(crate::random_cases::cases(100))]

    #[test]
    fn no_script_breaks_the_rules_of_children_in_order(
        rules in some_rules(),
        fakes in fakes(90),
        script in vec(step(), 0..40),
        end in end(),
    ) {
        let mut sim = Simulation::ordered(rules, fakes);
        follow(&mut sim, script);
        conclude(&mut sim, end, |sim| bounds(sim).0)?;
    }

    #[test]
    fn no_script_breaks_the_rules_of_equal_children(
        rules in some_rules(),
        fakes in fakes(200),
        script in vec(step(), 0..40),
        end in end(),
    ) {
        let fakes = fakes.into_iter().map(FakeChild::alone);
        let script = script.into_iter().map(|step| match step {
            ScriptStep::Add(fake) => ScriptStep::Add(Box::new(fake.alone())),
            other => other,
        });
        let script = script.collect();
        let mut sim = Simulation::dynamic(rules, fakes);
        follow(&mut sim, script);
        conclude(&mut sim, end, |sim| bounds(sim).1)?;
    }

    #[test]
    fn a_replay_from_any_moment_goes_as_the_recording(
        dynamic: bool,
        rules in some_rules(),
        fakes in fakes(90),
        (before, after) in (vec(step(), 0..20), vec(step(), 0..20)),
    ) {
        let alone = fakes.clone().into_iter().map(FakeChild::alone);
        let mut sim = match dynamic {
            true => Simulation::dynamic(rules, alone),
            false => Simulation::ordered(rules, fakes),
        };
        follow(&mut sim, before);
        sim.record();
        follow(&mut sim, after);
        sim.stop();
        sim.replay();
    }

    /// Without a limit, without parking and without requests, all children come back.
    #[test]
    fn what_fails_comes_back_once_it_can(
        rules in some_rules(),
        fakes in fakes(70),
        crashes in vec((0..8_usize, 0..200_u64), 0..20),
    ) {
        let rules = Rules {
            intensity: None,
            of_each: None,
            auto_shutdown: AutoShutdown::Never,
            first_start: FirstStart::Retry,
            has_failure_callback: false,
            ..rules
        };
        let fakes = fakes.into_iter().map(|fake| fake.always_restarts().without_limits());
        let fakes: Vec<_> = fakes.collect();
        let mut sim = Simulation::ordered(rules, fakes);
        for (index, wait) in crashes {
            let present = sim.present();
            let (name, _) = &present[index % present.len()];
            sim.exit(name, ExitReason::Failed(ExitError::from("no")));
            sim.advance(ms(wait));
        }
        sim.heal();
        prop_assert!(sim.until_idle(secs(60)).is_some());
        for (name, key) in sim.present() {
            let state = sim.state(key).expect("a child that exists");
            // It declined, leaked or waits for a message, or it requires such a child.
            let given_up = matches!(
                state,
                ChildState::Down(DownState::Ignored | DownState::Leaked | DownState::Dormant) | ChildState::Gated(_)
            );
            prop_assert!(state == ChildState::Active || given_up, "{} is {:?}", name, state);
        }
    }
}
