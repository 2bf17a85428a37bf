//! Presets: the settings of other supervision systems.
//!
//! A [`Preset`] is a bundle of values. The builder decides on their precedence.

use std::str::FromStr;
use std::time::Duration;

use super::{
    Backoff, BinarySlots, ChildLayer, FirstStart, Intensity, Jitter, OnExhausted, OnExit, Reset,
    RestartPolicy, RestartType, Revival, Trigger, UnknownWord,
};
use crate::exit::ExitKind;

/// A bundle of settings that reproduces the behaviour of a different supervision system.
///
/// The defaults of this crate differ from other systems where a service benefits. A preset undoes these
/// differences, for a tree that is ported and has to behave as before. A value that is set explicitly
/// takes precedence over the preset. Values that the other system requires from its users (a
/// first delay, a cap) are those of its documentation.
///
/// | preset | delays | resets after | restart limit, then | restarts after |
/// | --- | --- | --- | --- | --- |
/// | without | 200 ms to 30 s, doubling, +20 % | 30 s | 12 in 5 min per child, escalates | any exit |
/// | [`actor_ts`](Self::actor_ts) | 200 ms to 10 s, doubling, ±20 % | 200 ms | none | any exit |
/// | [`pekko_on_stop`](Self::pekko_on_stop) | 3 s to 30 s, doubling, +20 % | 3 s | none | any exit |
/// | [`pekko_on_failure`](Self::pekko_on_failure) | the same | 3 s | none | failures of active children; any other exit ends the supervisor |
/// | [`pekko_typed`](Self::pekko_typed) | 200 ms to 10 s, doubling, +10 % | 5.1 s | none | failures |
/// | [`xebia`](Self::xebia) | up to 511 slots of 10 ms | an acknowledged message | none | any exit |
/// | [`signalpy`](Self::signalpy) | 1 s to 60 s, doubling | 60 s | 3 in 60 s per child, escalates; at the root, parks | failures before active |
/// | [`elfo`](Self::elfo) | 5 s to 30 s, doubling; none after 5 s of being active | 5 s | none | no exit |
/// | [`otp`](Self::otp) | none | | 1 in 5 s, ends cleanly | any exit |
/// | [`elixir`](Self::elixir) | none | | 3 in 5 s, ends cleanly | any exit |
/// | [`suture`](Self::suture) | none, then a pause of 15 s, +50 % | | a score of 5, halved every 30 s | any exit |
/// | [`oversight`](Self::oversight) | none | | 1 in 5 s, escalates | any exit |
/// | [`systemd`](Self::systemd) | 100 ms | by a call | 4 in 10 s per child, parks | failures |
/// | [`kubelet`](Self::kubelet) | none, then 10 s to 300 s, doubling | more than 600 s | none | any exit |
/// | [`pebble`](Self::pebble) | 500 ms to 30 s, doubling, +10 % | 30 s | none | any exit |
///
/// A preset doesn't change settings that the other system doesn't have: strategies, the order of
/// starts, and how children stop. Each constructor says where the preset differs from its system.
///
/// ```
/// use verger::Supervisor;
/// use verger::policy::Preset;
///
/// let app = Supervisor::builder("app").preset(Preset::otp());
/// assert_eq!("otp".parse::<Preset>().unwrap().name(), Preset::otp().name());
/// # drop(app);
/// ```
#[derive(Clone, Debug)]
pub struct Preset {
    name: &'static str,
    /// The limit for all children together; `None`: no limit.
    pub(crate) intensity: Option<Intensity>,
    /// The limit for each child.
    of_each: Option<Intensity>,
    on_exhausted: OnExhausted,
    /// Whether the root parks a child that exceeds a limit, in place of `on_exhausted`.
    parks_at_root: bool,
    /// The backoff of children without their own.
    backoff: Backoff,
    /// The trigger of children without their own.
    trigger: Trigger,
    /// What happens when a child fails its very first start.
    pub(crate) first_start: FirstStart,
    /// Whether delayed failures before a child is active are charged.
    pub(crate) count_failed_starts: bool,
    /// Whether a supervisor that gives up ends as `Shutdown`, and not as `Escalated`.
    pub(crate) gives_up_cleanly: bool,
    /// How a message starts a temporary child again.
    pub(crate) revival: Revival,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

impl Preset {
    /// Returns all presets, in the order of the table.
    #[must_use]
    pub fn all() -> [Self; 14] {
        [
            Self::actor_ts(),
            Self::pekko_on_stop(),
            Self::pekko_on_failure(),
            Self::pekko_typed(),
            Self::xebia(),
            Self::signalpy(),
            Self::elfo(),
            Self::otp(),
            Self::elixir(),
            Self::suture(),
            Self::oversight(),
            Self::systemd(),
            Self::kubelet(),
            Self::pebble(),
        ]
    }

    /// The backoff supervisor of actor-ts, with the values of its documentation.
    ///
    /// Jitter can make a delay shorter than the first and longer than the last. The backoff resets after
    /// 200 ms, so a child that fails a little later is never delayed for longer.
    #[must_use]
    pub fn actor_ts() -> Self {
        let backoff = Backoff::exponential(ms(200), secs(10)).reset_after(ms(200));
        let backoff = backoff.jitter(Jitter::Symmetric(0.2)).soft_cap();
        Self::of("actor_ts", Trigger::any(), backoff)
    }

    /// `BackoffOpts.onStop` of Akka and Pekko, with the values of their documentation.
    ///
    /// Every exit is followed by a restart, after its delay. In the original, this holds with the
    /// stopping strategy. With the default strategy, a child that throws is restarted at once, without a
    /// delay and without a limit; this preset has no such second path.
    ///
    /// For `withMaxNrOfRetries`, set [`consecutive_restarts`](crate::ChildSpec::consecutive_restarts),
    /// which is reset with the backoff, as in the original.
    #[must_use]
    pub fn pekko_on_stop() -> Self {
        Self::of("pekko_on_stop", Trigger::any(), pekko())
    }

    /// `BackoffOpts.onFailure` of Akka and Pekko.
    ///
    /// A failure is followed by a restart, and a clean exit ends the supervisor. So do an activation that
    /// fails and [`kill`](crate::SupervisorHandle::kill), as with the default decider of the
    /// original. To restart the child after these, too, set [`Trigger::failure`] on it.
    ///
    /// For `withMaxNrOfRetries`, set [`consecutive_restarts`](crate::ChildSpec::consecutive_restarts),
    /// which is reset with the backoff, as in the original. For `withinTimeRange`, set
    /// [`own_restarts`](crate::ChildSpec::own_restarts) with that period. It slides over the restarts; the
    /// original counts from the first restart, and resets count and backoff together at the end.
    #[must_use]
    pub fn pekko_on_failure() -> Self {
        let trigger = Trigger::failure()
            .on(ExitKind::ActivationFailed, OnExit::EndSupervisor)
            .on(ExitKind::Aborted, OnExit::EndSupervisor);
        Self::of("pekko_on_failure", trigger, pekko())
    }

    /// `restartWithBackoff` of Akka's and Pekko's typed actors.
    ///
    /// The backoff resets after the mean of the first and the last delay.
    #[must_use]
    pub fn pekko_typed() -> Self {
        let (min, max) = (ms(200), secs(10));
        let backoff = Backoff::exponential(min, max).reset_after((min + max) / 2);
        let backoff = backoff.jitter(0.1).soft_cap();
        Self::of("pekko_typed", RestartType::Transient.into(), backoff)
    }

    /// The backoff that Raymond Roestenburg described for Akka in 2012.
    ///
    /// A slot takes 10 ms. The backoff resets at the tenth slot, and when a message is acknowledged. The
    /// original delays the messages instead of the child: to get this, set
    /// `Delay::Delivery` on the mailbox.
    #[must_use]
    pub fn xebia() -> Self {
        let backoff = Backoff::binary_slots(BinarySlots::new(ms(10))).reset(Reset::OnAck);
        Self::of("xebia", Trigger::any(), backoff)
    }

    /// The kernel of SignalPy, which supervises only the activation of its components.
    ///
    /// A child that fails when it is active stays *errored*, and the other children run on. A supervisor
    /// fails together with a child that exceeds its limit, and is then restarted by its own supervisor.
    /// At the root, such a child stays *errored* and the tree runs on, until
    /// [`resume`](crate::SupervisorHandle::resume).
    ///
    /// The kernel has no reset: its window forgets restarts after 60 s. Here, the backoff resets after
    /// 60 s of being active.
    #[must_use]
    pub fn signalpy() -> Self {
        let trigger = Trigger::from(RestartType::Transient).activation_only();
        // A supervisor is active when it gives up, and its supervisor hears of it.
        let trigger = trigger.on(ExitKind::Escalated, OnExit::Restart);
        let backoff = Backoff::exponential(secs(1), secs(60)).jitter(Jitter::None);
        let backoff = backoff.reset_after(secs(60));
        Self {
            of_each: Some(Intensity::sliding(3, secs(60))),
            parks_at_root: true,
            ..Self::of("signalpy", trigger, backoff)
        }
    }

    /// elfo, which restarts nothing by default, with the delays of its documentation.
    ///
    /// With [`start_on_message`](crate::ChildSpec::start_on_message), a message starts a child that has
    /// ended, also soon after a failure: such a start doesn't wait for the backoff, and is charged to no
    /// limit. elfo's policies `on_failure` and `always` are [`RestartType::Transient`] and
    /// [`RestartType::Permanent`]; set one on the child, or in the defaults. A child that was active for
    /// at least the first delay is then restarted at once.
    #[must_use]
    pub fn elfo() -> Self {
        let backoff = Backoff::exponential(secs(5), secs(30)).jitter(Jitter::None);
        let backoff = backoff.reset_after(secs(5)).at_once_after_reset();
        Self {
            revival: Revival::AtOnce,
            ..Self::of("elfo", RestartType::Temporary.into(), backoff)
        }
    }

    /// Erlang/OTP: one restart in 5 s, at once, and giving up is a clean exit.
    ///
    /// A *transient* or *temporary* supervisor that gives up isn't restarted by its own supervisor, and
    /// nothing fails. Only a permanent one escalates. A failed first start fails the start, and restarts
    /// of a child that never became active are charged.
    #[must_use]
    pub fn otp() -> Self {
        Self::of_otp("otp", 1)
    }

    /// Elixir: three restarts in 5 s, and otherwise the same as [`otp`](Self::otp).
    #[must_use]
    pub fn elixir() -> Self {
        Self::of_otp("elixir", 3)
    }

    /// suture for Go: restarts at once until a score exceeds 5, then a pause of 15 s.
    ///
    /// The score halves every 30 s. The pause is extended by up to half, and no child is restarted during it.
    #[must_use]
    pub fn suture() -> Self {
        Self {
            intensity: Some(Intensity::decaying(5.0, secs(30))),
            on_exhausted: OnExhausted::Pause(secs(15)),
            count_failed_starts: true,
            ..Self::of("suture", Trigger::any(), Backoff::none().jitter(0.5))
        }
    }

    /// oversight for Go: one restart in 5 s, at once.
    #[must_use]
    pub fn oversight() -> Self {
        Self {
            intensity: Some(Intensity::sliding(1, secs(5))),
            count_failed_starts: true,
            ..Self::of("oversight", Trigger::any(), Backoff::none())
        }
    }

    /// systemd with `Restart=on-failure`: restarts after 100 ms (`RestartSec`), at most five starts
    /// (`StartLimitBurst`) within 10 s (`StartLimitIntervalSec`).
    ///
    /// A child that exceeds the limit stays *errored*, as a unit stays `failed`, until
    /// [`resume`](crate::SupervisorHandle::resume), which is `systemctl reset-failed` and `start` in one.
    ///
    /// systemd counts starts, also those by a call. Limits count restarts, and only those of the
    /// supervisor. The initial start is therefore always taken for one of the five: after a long run,
    /// too, there are four restarts within 10 s, where systemd has five.
    #[must_use]
    pub fn systemd() -> Self {
        Self {
            of_each: Some(Intensity::tumbling(4, secs(10))),
            on_exhausted: OnExhausted::Park,
            ..Self::of(
                "systemd",
                RestartType::Transient.into(),
                Backoff::constant(ms(100)).reset(Reset::Manual),
            )
        }
    }

    /// The kubelet's `CrashLoopBackOff` with `restartPolicy: Always`.
    ///
    /// Restarts at once, then after 10 s, doubling to 5 min. It resets after more than 10 min.
    #[must_use]
    pub fn kubelet() -> Self {
        let more_than_ten_minutes = secs(600) + Duration::from_nanos(1);
        let backoff = Backoff::exponential(secs(10), secs(300)).jitter(Jitter::None);
        let backoff = backoff.reset_after(more_than_ten_minutes);
        Self::of("kubelet", Trigger::any(), backoff.first_at_once().at_once_after_reset())
    }

    /// Canonical's Pebble, with the values of its documentation: `backoff-delay` 500 ms,
    /// `backoff-factor` 2.0, `backoff-limit` 30 s.
    ///
    /// A service that exits within its first second fails Pebble's `start`, and is restarted all the same.
    /// There is no such time here: a child with [`Readiness::Signal`](crate::Readiness::Signal) says when
    /// it is up. A call that starts it fails if it exits before, and the error names the
    /// [`NextStep`](crate::error::NextStep).
    #[must_use]
    pub fn pebble() -> Self {
        let backoff = Backoff::exponential(ms(500), secs(30)).reset_after(secs(30));
        Self::of("pebble", Trigger::any(), backoff.jitter(0.1).soft_cap())
    }

    /// Creates a preset without limits, in which the first start is retried.
    fn of(name: &'static str, trigger: Trigger, backoff: Backoff) -> Self {
        Self {
            name,
            intensity: None,
            of_each: None,
            on_exhausted: OnExhausted::Escalate,
            parks_at_root: false,
            backoff,
            trigger,
            first_start: FirstStart::Retry,
            count_failed_starts: false,
            gives_up_cleanly: false,
            revival: Revival::AfterBackoff,
        }
    }

    fn of_otp(name: &'static str, max_restarts: u32) -> Self {
        Self {
            intensity: Some(Intensity::sliding(max_restarts, secs(5))),
            first_start: FirstStart::Fail,
            count_failed_starts: true,
            gives_up_cleanly: true,
            revival: Revival::Never,
            ..Self::of(name, Trigger::any(), Backoff::none())
        }
    }

    /// Returns what follows when a limit is exceeded.
    pub(crate) const fn on_exhausted(&self, at_root: bool) -> OnExhausted {
        if at_root && self.parks_at_root { OnExhausted::Park } else { self.on_exhausted }
    }

    /// Returns the values of children.
    pub(crate) fn of_children(&self) -> ChildLayer {
        let mut policy =
            RestartPolicy::new().restart(self.trigger.clone()).backoff(self.backoff.clone());
        if let Some(intensity) = self.of_each {
            policy.limits.intensity(intensity);
        }
        ChildLayer { policy, ..ChildLayer::default() }
    }

    /// Returns the name of the preset, which is that of its constructor.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the backoff of children without their own.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// Returns the trigger of children without their own.
    pub const fn trigger(&self) -> &Trigger {
        &self.trigger
    }
}

/// The names of all presets, in the order of [`Preset::all`].
const NAMES: &[&str] = &[
    "actor_ts",
    "pekko_on_stop",
    "pekko_on_failure",
    "pekko_typed",
    "xebia",
    "signalpy",
    "elfo",
    "otp",
    "elixir",
    "suture",
    "oversight",
    "systemd",
    "kubelet",
    "pebble",
];

/// Parses the [`name`](Preset::name) of a preset.
impl FromStr for Preset {
    type Err = UnknownWord;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::all().into_iter().find(|preset| preset.name == name);
        known.ok_or_else(|| UnknownWord::new("preset", name, NAMES))
    }
}

fn pekko() -> Backoff {
    Backoff::exponential(secs(3), secs(30)).reset_after(secs(3)).jitter(0.2).soft_cap()
}

#[cfg(test)]
mod tests;
