//! That a machine to which nobody listens does the same, and only keeps it to itself.

use std::time::Instant;

use super::super::{Effect, Event};
use super::{Broken, Subject, ensure};

/// A machine that was told what the real one is about to be told.
#[derive(Debug)]
pub(crate) struct Muted {
    machine: String,
    effects: Vec<Effect>,
}

impl Muted {
    pub(crate) fn new<M: Subject>(machine: &M, event: &Event, now: Instant) -> Self {
        let (mut machine, mut effects) = (machine.clone(), Vec::new());
        machine.mute(true);
        machine.on_event(event.clone(), now, &mut effects);
        machine.mute(false);
        Self { machine: format!("{machine:?}"), effects }
    }

    /// Compares it with the real one, which has taken in the event and done `effects`.
    pub(crate) fn check<M: Subject>(&self, machine: &M, effects: &[Effect]) -> Result<(), Broken> {
        let tells = |effect: &&Effect| match effect {
            Effect::Report(_) => true,
            Effect::Decided { decision, .. } => !decision.is_accounted_for(),
            _ => false,
        };
        ensure(!self.effects.iter().any(|effect| tells(&effect)), "who is muted tells nothing")?;
        // How an incarnation ended is left out where its edges follow at once.
        let ended = |effect: &&Effect| matches!(effect, Effect::Ended { .. });
        let text = |effect: &Effect| format!("{effect:?}");
        let all: Vec<_> = effects.iter().map(text).collect();
        let told = self.effects.iter().filter(ended).map(text);
        ensure(told.into_iter().all(|end| all.contains(&end)), "no end is told that is not one")?;
        let rest = |effects: &[Effect]| {
            let rest = effects.iter().filter(|effect| !tells(effect) && !ended(effect));
            rest.map(text).collect::<Vec<_>>()
        };
        ensure(rest(&self.effects) == rest(effects), "who is muted does the same")?;
        ensure(self.machine == format!("{machine:?}"), "who is muted comes to the same")
    }
}
