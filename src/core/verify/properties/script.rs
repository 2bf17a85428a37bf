//! Random scripts: what happens to the children of a simulation, step by step.

use proptest::prelude::*;
use proptest::sample::select;

use super::children::{ANSWERS, a_word, limited};
use crate::core::verify::REQUESTS;
use crate::core::verify::simulation::{FakeChild, Script, Simulation, ms};
use crate::core::{ChildRequest, Key, MachineEvent};
use crate::exit::ExitReason;
use crate::policy::{Resolution, RestartPolicy};

#[derive(Clone, Debug)]
pub(super) enum Step {
    Crash(usize),
    /// Fails with the error that may ask for a delay.
    Busy(usize),
    Panic(usize),
    End(usize),
    Ready(usize),
    Healthy(usize),
    StopSelf(usize),
    /// Acknowledges a message.
    Acked(usize),
    /// A message waits for the child.
    Wanted(usize),
    Policy(usize, Box<RestartPolicy>),
    /// The result of a health check: whether it passes.
    Checked(usize, bool),
    /// A decision of the failure callback, whether it was called or not.
    Decide(usize, Resolution),
    Ask(usize, ChildRequest),
    Add(Box<FakeChild>),
    Wait(u64),
    /// A tick without a deadline.
    Tick,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let index = 0..8_usize;
    prop_oneof![
        4 => index.clone().prop_map(Step::Crash),
        1 => index.clone().prop_map(Step::Busy),
        1 => index.clone().prop_map(Step::Panic),
        2 => index.clone().prop_map(Step::End),
        2 => index.clone().prop_map(Step::Ready),
        1 => index.clone().prop_map(Step::Healthy),
        1 => index.clone().prop_map(Step::StopSelf),
        1 => index.clone().prop_map(Step::Acked),
        2 => index.clone().prop_map(Step::Wanted),
        1 => (index.clone(), a_word()).prop_map(|(index, word)| Step::Policy(index, Box::new(word))),
        1 => (index.clone(), any::<bool>()).prop_map(|(index, well)| Step::Checked(index, well)),
        2 => (index.clone(), select(&ANSWERS)).prop_map(|(index, answer)| Step::Decide(index, answer)),
        6 => (index, select(&REQUESTS)).prop_map(|(index, request)| Step::Ask(index, request)),
        1 => limited(9).prop_map(|fake| Step::Add(Box::new(fake))),
        6 => (0..400_u64).prop_map(Step::Wait),
        1 => Just(Step::Tick),
    ]
}

/// Runs a script. A step concerns an existing child, or, for some requests, a removed one.
pub(super) fn follow(sim: &mut Simulation, script: Vec<Step>) {
    let known: Vec<Key> = sim.present().into_iter().map(|(_, key)| key).collect();
    for step in script {
        if sim.finished() {
            return;
        }
        let present = sim.present();
        let pick =
            |index: usize| present.get(index % present.len().max(1)).map(|(name, _)| &**name);
        match step {
            Step::Busy(index) => {
                if let Some(name) = pick(index) {
                    sim.exit(name, Script::Busy.reason());
                }
            }
            Step::Crash(index) => {
                if let Some(name) = pick(index) {
                    sim.crash(name);
                }
            }
            Step::Panic(index) => {
                let reason = ExitReason::Panicked("oh".to_owned());
                if let Some(name) = pick(index) {
                    sim.exit(name, reason);
                }
            }
            Step::End(index) => {
                if let Some(name) = pick(index) {
                    sim.exit(name, ExitReason::Normal);
                }
            }
            Step::Ready(index) => {
                if let Some(name) = pick(index) {
                    sim.ready(name);
                }
            }
            Step::Wanted(index) => {
                if let Some(&key) = known.get(index % known.len().max(1)) {
                    sim.event(MachineEvent::MessagePending { key });
                }
            }
            Step::Healthy(index) | Step::StopSelf(index) | Step::Acked(index) => {
                let live = present.get(index % present.len().max(1));
                if let Some((key, incarnation)) =
                    live.and_then(|&(_, key)| sim.live(key).map(|live| (key, live)))
                {
                    sim.event(match step {
                        Step::Healthy(_) => MachineEvent::Healthy { key, incarnation },
                        Step::Acked(_) => MachineEvent::Acked { key, incarnation },
                        _ => MachineEvent::StopSelf { key, incarnation },
                    });
                }
            }
            Step::Policy(index, word) => {
                if let Some(name) = pick(index) {
                    sim.policy(name, *word);
                }
            }
            Step::Checked(index, well) => {
                if let Some(name) = pick(index) {
                    sim.says(
                        name,
                        match well {
                            true => |key, incarnation| MachineEvent::Health {
                                key,
                                incarnation,
                                problem: None,
                            },
                            false => |key, incarnation| MachineEvent::Health {
                                key,
                                incarnation,
                                problem: Some("ill".into()),
                            },
                        },
                    );
                }
            }
            Step::Decide(index, resolution) => {
                if let Some(name) = pick(index) {
                    sim.decide(name, resolution.into());
                }
            }
            Step::Ask(index, request) => {
                if let Some(&key) = known.get(index % known.len().max(1)) {
                    sim.ask_for(key, request);
                }
            }
            Step::Add(fake) => {
                let free = present.iter().all(|(name, _)| *name != fake.name());
                if free && sim.machine.admits().is_ok() {
                    sim.add(*fake);
                }
            }
            Step::Wait(millis) => sim.advance(ms(millis)),
            Step::Tick => sim.event(MachineEvent::Tick),
        }
    }
}
