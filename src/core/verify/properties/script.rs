//! Random scripts: what happens to the children of a simulation, step by step.

use proptest::prelude::*;
use proptest::sample::select;

use super::children::{ANSWERS, child_with_limits, own_policy};
use crate::core::verify::REQUESTS;
use crate::core::verify::simulation::{FakeChild, Script, Simulation, ms};
use crate::core::{ChildRequest, ConditionEvent, Key, MachineEvent};
use crate::exit::{ExitError, ExitReason};
use crate::policy::{Resolution, RestartPolicy};

#[derive(Clone, Debug)]
pub(super) enum ScriptStep {
    Crash(usize),
    /// Fails with the error that may set the delay.
    Busy(usize),
    /// Fails with an error that no restart can mend.
    Fatal(usize),
    Panic(usize),
    End(usize),
    Ready(usize),
    Healthy(usize),
    StopSelf(usize),
    /// The child's own task has ended, well or not, and what is left was aborted.
    Remaining(usize, bool),
    /// Acknowledges a message.
    Acked(usize),
    /// The child's lease is granted, if it is asked for.
    Granted(usize),
    /// The child's lease is lost, if it is granted.
    Lost(usize),
    /// A message is pending for the child.
    MessagePending(usize),
    Policy(usize, Box<RestartPolicy>),
    /// The result of a health check: whether it passes.
    Checked(usize, bool),
    /// A decision of the failure callback, even if it was not called.
    Decide(usize, Resolution),
    Request(usize, ChildRequest),
    /// A configuration takes the child out, or brings it back.
    Enable(usize, bool),
    Add(Box<FakeChild>),
    Wait(u64),
    /// A tick without a deadline.
    Tick,
}

pub(super) fn step() -> impl Strategy<Value = ScriptStep> {
    let index = 0..8_usize;
    prop_oneof![
        4 => index.clone().prop_map(ScriptStep::Crash),
        1 => index.clone().prop_map(ScriptStep::Busy),
        1 => index.clone().prop_map(ScriptStep::Fatal),
        1 => index.clone().prop_map(ScriptStep::Panic),
        2 => index.clone().prop_map(ScriptStep::End),
        2 => index.clone().prop_map(ScriptStep::Ready),
        1 => index.clone().prop_map(ScriptStep::Healthy),
        1 => index.clone().prop_map(ScriptStep::StopSelf),
        1 => (index.clone(), any::<bool>()).prop_map(|(index, well)| ScriptStep::Remaining(index, well)),
        1 => index.clone().prop_map(ScriptStep::Acked),
        3 => index.clone().prop_map(ScriptStep::Granted),
        1 => index.clone().prop_map(ScriptStep::Lost),
        2 => index.clone().prop_map(ScriptStep::MessagePending),
        1 => (index.clone(), own_policy()).prop_map(|(index, policy)| ScriptStep::Policy(index, Box::new(policy))),
        1 => (index.clone(), any::<bool>()).prop_map(|(index, well)| ScriptStep::Checked(index, well)),
        2 => (index.clone(), select(&ANSWERS)).prop_map(|(index, answer)| ScriptStep::Decide(index, answer)),
        2 => (index.clone(), any::<bool>()).prop_map(|(index, enabled)| ScriptStep::Enable(index, enabled)),
        6 => (index, select(&REQUESTS)).prop_map(|(index, request)| ScriptStep::Request(index, request)),
        1 => child_with_limits(9).prop_map(|fake| ScriptStep::Add(Box::new(fake))),
        6 => (0..400_u64).prop_map(ScriptStep::Wait),
        1 => Just(ScriptStep::Tick),
    ]
}

/// Runs a script. A step concerns an existing child, or, for some requests, a removed one.
pub(super) fn follow(sim: &mut Simulation, script: Vec<ScriptStep>) {
    let known: Vec<Key> = sim.present().into_iter().map(|(_, key)| key).collect();
    for step in script {
        if sim.finished() {
            return;
        }
        let present = sim.present();
        let pick =
            |index: usize| present.get(index % present.len().max(1)).map(|(name, _)| &**name);
        match step {
            ScriptStep::Busy(index) => {
                if let Some(name) = pick(index) {
                    sim.exit(name, Script::Busy.reason());
                }
            }
            ScriptStep::Crash(index) => {
                if let Some(name) = pick(index) {
                    sim.crash(name);
                }
            }
            ScriptStep::Fatal(index) => {
                if let Some(name) = pick(index) {
                    sim.exit(name, ExitReason::Failed(ExitError::fatal("no")));
                }
            }
            ScriptStep::Panic(index) => {
                let reason = ExitReason::Panicked("oh".into());
                if let Some(name) = pick(index) {
                    sim.exit(name, reason);
                }
            }
            ScriptStep::End(index) => {
                if let Some(name) = pick(index) {
                    sim.exit(name, ExitReason::Normal);
                }
            }
            ScriptStep::Ready(index) => {
                if let Some(name) = pick(index) {
                    sim.ready(name);
                }
            }
            ScriptStep::Granted(index) => {
                if let Some(name) = pick(index) {
                    sim.grant(name);
                }
            }
            ScriptStep::Lost(index) => {
                if let Some(name) = pick(index) {
                    sim.lose(name);
                }
            }
            ScriptStep::MessagePending(index) => {
                if let Some(&key) = known.get(index % known.len().max(1)) {
                    sim.event(MachineEvent::Condition(ConditionEvent::MessagePending { key }));
                }
            }
            ScriptStep::Healthy(index) | ScriptStep::StopSelf(index) | ScriptStep::Acked(index) => {
                let picked = present.get(index % present.len().max(1));
                if let Some((key, incarnation)) =
                    picked.and_then(|&(_, key)| sim.live(key).map(|live| (key, live)))
                {
                    sim.event(match step {
                        ScriptStep::Healthy(_) => MachineEvent::Healthy { key, incarnation },
                        ScriptStep::Acked(_) => MachineEvent::Acked { key, incarnation },
                        _ => MachineEvent::StopSelf { key, incarnation },
                    });
                }
            }
            ScriptStep::Remaining(index, well) => {
                let picked = present.get(index % present.len().max(1));
                if let Some((key, incarnation)) =
                    picked.and_then(|&(_, key)| sim.live(key).map(|live| (key, live)))
                {
                    let script = if well { Script::End } else { Script::Fail };
                    let reason = Some(script.reason());
                    sim.event(MachineEvent::Remaining { key, incarnation, reason });
                }
            }
            ScriptStep::Policy(index, policy) => {
                if let Some(name) = pick(index) {
                    sim.policy(name, *policy);
                }
            }
            ScriptStep::Checked(index, well) => {
                if let Some(name) = pick(index) {
                    sim.child_event(
                        name,
                        match well {
                            true => |key, incarnation| {
                                MachineEvent::Condition(ConditionEvent::Checked {
                                    key,
                                    incarnation,
                                    passed: true,
                                })
                            },
                            false => |key, incarnation| {
                                MachineEvent::Condition(ConditionEvent::Checked {
                                    key,
                                    incarnation,
                                    passed: false,
                                })
                            },
                        },
                    );
                    sim.child_event(
                        name,
                        match well {
                            true => |key, incarnation| {
                                MachineEvent::Condition(ConditionEvent::Health {
                                    key,
                                    incarnation,
                                    problem: None,
                                })
                            },
                            false => |key, incarnation| {
                                MachineEvent::Condition(ConditionEvent::Health {
                                    key,
                                    incarnation,
                                    problem: Some("ill".into()),
                                })
                            },
                        },
                    );
                }
            }
            ScriptStep::Decide(index, resolution) => {
                if let Some(name) = pick(index) {
                    sim.decide(name, resolution.into());
                }
            }
            ScriptStep::Request(index, request) => {
                if let Some(&key) = known.get(index % known.len().max(1)) {
                    sim.request_of(key, request);
                }
            }
            ScriptStep::Enable(index, enabled) => {
                if let Some(&key) = known.get(index % known.len().max(1)) {
                    sim.enable_key(key, enabled);
                }
            }
            ScriptStep::Add(fake) => {
                let free = present.iter().all(|(name, _)| *name != fake.name());
                if free && sim.machine.admits().is_ok() {
                    sim.add(*fake);
                }
            }
            ScriptStep::Wait(millis) => sim.advance(ms(millis)),
            ScriptStep::Tick => sim.event(MachineEvent::Tick),
        }
    }
}
