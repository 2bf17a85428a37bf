//! Presets: the settings of a supervisor that behaves as elsewhere.
//!
//! A [`Preset`] is a bundle of values. How a builder applies it, and what comes before it or after
//! it, isn't known here.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::policy::{
    Backoff, BinarySlots, ChildOptions, FirstStart, Intensity, Jitter, OnExhausted, Reset,
    RestartType, Trigger, UnknownWord,
};

/// A bundle of settings under which a supervisor behaves as it does elsewhere.
///
/// Our own defaults differ from those of other systems where a service gains by it. A preset takes
/// the differences back, for a tree that is ported and has to behave as before, or for who likes
/// those rules better. It is a starting point: what is set by hand wins, and what the other system
/// asks its users for (a first wait, a cap) has here the value of its own documentation.
///
/// | | waits | begins again after | restarts, then | which ends |
/// | --- | --- | --- | --- | --- |
/// | none | 200 ms to 30 s, doubled | 30 s | 5 in 60 s, escalates | any |
/// | [`actor_ts`](Self::actor_ts) | 200 ms to 10 s, doubled, ±20 % | 200 ms | any number | any |
/// | [`pekko_on_stop`](Self::pekko_on_stop) | 3 s to 30 s, doubled, +20 % | 3 s | any number | any |
/// | [`pekko_on_failure`](Self::pekko_on_failure) | the same | 3 s | any number | failures; a clean one ends the supervisor |
/// | [`pekko_typed`](Self::pekko_typed) | 200 ms to 10 s, doubled, +10 % | 5.1 s | any number | failures |
/// | [`xebia`](Self::xebia) | up to 511 slots of 10 ms | a message is acknowledged | any number | any |
/// | [`signalpy`](Self::signalpy) | 1 s to 60 s, doubled | 60 s | 3 in 60 s for each child, escalates | failures before active |
/// | [`elfo`](Self::elfo) | 5 s to 30 s, doubled; none after a life of 5 s | 5 s | any number | failures |
/// | [`otp`](Self::otp) | none | | 1 in 5 s, ends cleanly | any |
/// | [`elixir`](Self::elixir) | none | | 3 in 5 s, ends cleanly | any |
/// | [`suture`](Self::suture) | none, then a pause of 15 s, +50 % | | 5, halved every 30 s | any |
/// | [`oversight`](Self::oversight) | none | | 1 in 5 s, escalates | any |
/// | [`systemd`](Self::systemd) | 100 ms | by hand | 4 in 10 s for each child, which stays down | failures |
/// | [`kubelet`](Self::kubelet) | none, then 10 s to 300 s, doubled | more than 600 s | any number | any |
/// | [`pebble`](Self::pebble) | 500 ms to 30 s, doubled, +10 % | 30 s | any number | any |
///
/// What is not an option there is none here either: a preset says nothing of strategies, of the
/// order of starts, or of how children are stopped.
#[derive(Clone, Debug)]
pub struct Preset {
    name: &'static str,
    /// How often all children together may be restarted; `None`: any number of times.
    pub(crate) intensity: Option<Intensity>,
    /// How often each child may be.
    of_each: Option<Intensity>,
    pub(crate) on_exhausted: OnExhausted,
    /// The backoff of children that have none of their own.
    backoff: Backoff,
    /// The trigger of children that have none of their own.
    trigger: Trigger,
    /// What happens when a child fails its very first start.
    pub(crate) first_start: FirstStart,
    /// Whether failures before a child is active count although they are delayed.
    pub(crate) charge_everything: bool,
    /// Whether giving up ends the supervisor as `Shutdown`, a clean end, and not as `Escalated`.
    pub(crate) gives_up_cleanly: bool,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

impl Preset {
    /// All of them, in the order of the table.
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

    /// As the backoff supervisor of actor-ts, with the values of its documentation.
    ///
    /// Jitter may make a wait shorter than the first and longer than the last. A child that lived
    /// for as long as the first wait begins again, so one that dies a little later never backs off.
    #[must_use]
    pub fn actor_ts() -> Self {
        let backoff = Backoff::exponential(ms(200), secs(10)).reset_after(ms(200));
        let backoff = backoff.jitter(Jitter::Symmetric(0.2)).soft_cap();
        Self::of("actor_ts", Trigger::any(), backoff)
    }

    /// As Akka's and Pekko's `BackoffOpts.onStop`, with the values of their documentation: any end
    /// is followed by a restart.
    #[must_use]
    pub fn pekko_on_stop() -> Self {
        Self::of("pekko_on_stop", Trigger::any(), pekko())
    }

    /// As Akka's and Pekko's `BackoffOpts.onFailure`: a failure is followed by a restart, a clean
    /// end by the end of the supervisor.
    #[must_use]
    pub fn pekko_on_failure() -> Self {
        Self::of("pekko_on_failure", Trigger::failure(), pekko())
    }

    /// As `restartWithBackoff` of Akka's and Pekko's typed actors, which begin again after the mean
    /// of the first and the last wait.
    #[must_use]
    pub fn pekko_typed() -> Self {
        let (min, max) = (ms(200), secs(10));
        let backoff = Backoff::exponential(min, max).reset_after((min + max) / 2);
        let backoff = backoff.jitter(0.1).soft_cap();
        Self::of("pekko_typed", RestartType::Transient.into(), backoff)
    }

    /// As the backoff that Raymond Roestenburg described for Akka in 2012: slots of 10 ms, from the
    /// first again after the tenth, and whenever a message has been acknowledged. There the messages
    /// wait, and not the child: as with [`Delay::Delivery`](crate::Delay::Delivery), which is said of
    /// the mailbox.
    #[must_use]
    pub fn xebia() -> Self {
        let backoff = Backoff::binary_slots(BinarySlots::new(ms(10))).reset(Reset::OnAck);
        Self::of("xebia", Trigger::any(), backoff)
    }

    /// As the kernel of SignalPy: it supervises the activation of its components, and no more.
    #[must_use]
    pub fn signalpy() -> Self {
        let trigger = Trigger::from(RestartType::Transient).activation_only();
        let backoff = Backoff::exponential(secs(1), secs(60)).reset_after(secs(60));
        let of_each = Some(Intensity::sliding(3, secs(60)));
        Self { of_each, ..Self::of("signalpy", trigger, backoff) }
    }

    /// As elfo with `when = "OnFailure"` and the waits of its tests. An actor that lived for as
    /// long as the first wait is restarted at once.
    ///
    /// elfo restarts nothing unless it is told to.
    #[must_use]
    pub fn elfo() -> Self {
        let backoff = Backoff::exponential(secs(5), secs(30)).reset_after(secs(5));
        Self::of("elfo", RestartType::Transient.into(), backoff.at_once_after_reset())
    }

    /// As in Erlang/OTP: one restart in 5 s, at once, and giving up is a clean end.
    ///
    /// That means that a *transient* or *temporary* supervisor that gives up isn't restarted by its
    /// own supervisor, and nothing fails; only a permanent one passes the trouble on. A first start
    /// that fails, fails the start, and a restart of a child that never became active counts.
    #[must_use]
    pub fn otp() -> Self {
        Self::of_the_beam("otp", 1)
    }

    /// As in Elixir: three restarts in 5 s, otherwise the same as [`otp`](Self::otp).
    #[must_use]
    pub fn elixir() -> Self {
        Self::of_the_beam("elixir", 3)
    }

    /// As Go's suture: restarts at once until there have been more than five failures, of which
    /// half are forgotten every 30 s; then a pause of 15 s, and up to half as much more, in which
    /// nothing is restarted.
    #[must_use]
    pub fn suture() -> Self {
        Self {
            intensity: Some(Intensity::decaying(5.0, secs(30))),
            on_exhausted: OnExhausted::Pause(secs(15)),
            charge_everything: true,
            ..Self::of("suture", Trigger::any(), Backoff::none().jitter(0.5))
        }
    }

    /// As Go's oversight: one restart in 5 s, at once.
    #[must_use]
    pub fn oversight() -> Self {
        Self {
            intensity: Some(Intensity::sliding(1, secs(5))),
            charge_everything: true,
            ..Self::of("oversight", Trigger::any(), Backoff::none())
        }
    }

    /// As systemd with `Restart=on-failure`: after 100 ms, and no more when five starts, the first
    /// included, were made within 10 s. The child then stays down until it is started by hand.
    #[must_use]
    pub fn systemd() -> Self {
        Self {
            of_each: Some(Intensity::tumbling(4, secs(10))),
            on_exhausted: OnExhausted::StopChild,
            ..Self::of(
                "systemd",
                RestartType::Transient.into(),
                Backoff::constant(ms(100)).reset(Reset::ByHand),
            )
        }
    }

    /// As the kubelet's `CrashLoopBackOff` with `restartPolicy: Always`: at once, then after 10 s,
    /// doubled up to 5 min, forgiven after more than 10 min.
    #[must_use]
    pub fn kubelet() -> Self {
        let more_than_ten_minutes = secs(600) + Duration::from_nanos(1);
        let backoff = Backoff::exponential(secs(10), secs(300)).reset_after(more_than_ten_minutes);
        Self::of("kubelet", Trigger::any(), backoff.first_at_once().at_once_after_reset())
    }

    /// As Canonical's Pebble.
    #[must_use]
    pub fn pebble() -> Self {
        let backoff = Backoff::exponential(ms(500), secs(30)).reset_after(secs(30));
        Self::of("pebble", Trigger::any(), backoff.jitter(0.1).soft_cap())
    }

    /// No limits, and failures are retried from the first start on.
    fn of(name: &'static str, trigger: Trigger, backoff: Backoff) -> Self {
        Self {
            name,
            intensity: None,
            of_each: None,
            on_exhausted: OnExhausted::Escalate,
            backoff,
            trigger,
            first_start: FirstStart::Retry,
            charge_everything: false,
            gives_up_cleanly: false,
        }
    }

    fn of_the_beam(name: &'static str, max_restarts: u32) -> Self {
        Self {
            intensity: Some(Intensity::sliding(max_restarts, secs(5))),
            first_start: FirstStart::Fail,
            charge_everything: true,
            gives_up_cleanly: true,
            ..Self::of(name, Trigger::any(), Backoff::none())
        }
    }

    /// What it says of children.
    pub(crate) fn of_children(&self) -> ChildOptions {
        let mut children = ChildOptions {
            restart: Some(self.trigger.clone()),
            backoff: Some(self.backoff.clone()),
            ..ChildOptions::default()
        };
        if let Some(intensity) = self.of_each {
            children.limits.intensity(intensity);
        }
        children
    }

    /// What it is called, as its constructor is.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The backoff of children that have none of their own.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// The trigger of children that have none of their own.
    pub const fn trigger(&self) -> &Trigger {
        &self.trigger
    }
}

/// The names of all, in the order of [`Preset::all`].
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

/// By its [`name`](Preset::name), as in a file.
impl FromStr for Preset {
    type Err = UnknownWord;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::all().into_iter().find(|preset| preset.name == name);
        known.ok_or_else(|| UnknownWord::new("preset", name, NAMES))
    }
}

impl Serialize for Preset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Preset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

fn pekko() -> Backoff {
    Backoff::exponential(secs(3), secs(30)).reset_after(secs(3)).jitter(0.2).soft_cap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_preset_has_its_name_in_the_list() {
        assert_eq!(Preset::all().map(|preset| preset.name), NAMES);
    }

    #[test]
    fn a_preset_is_read_by_its_name_and_no_other() {
        for name in NAMES {
            let preset: Preset = name.parse().expect("a preset");
            assert_eq!(preset.name(), *name);
        }
        let unknown = "erlang".parse::<Preset>().unwrap_err().to_string();
        assert!(unknown.contains("erlang") && unknown.contains("otp"), "{unknown}");
    }

    /// Its first four waits and a late one, with a jitter of a quarter of what there may be, and
    /// how long a child has to be well to begin again.
    fn waits(preset: &Preset) -> String {
        let mut waits = preset.backoff().delays().random(|| 0.25);
        let mut next =
            |skipped| waits.nth(skipped).map_or("none".to_owned(), |it| format!("{it:?}"));
        let shown = [next(0), next(0), next(0), next(0), next(24)].join(" ");
        match preset.backoff().resets_after() {
            Some(life) => format!("{shown}, {life:?}"),
            None => shown,
        }
    }

    #[test]
    fn each_preset_waits_as_the_other_system_does() {
        let table = Preset::all().map(|preset| (preset.name(), waits(&preset)));
        let table = table.each_ref().map(|(name, waits)| (*name, waits.as_str()));
        let pekko = "3.15s 6.3s 12.6s 25.2s 31.5s, 3s";
        let none = "0ns 0ns 0ns 0ns 0ns, 10s";
        let expected = [
            ("actor_ts", "180ms 360ms 720ms 1.44s 9s, 200ms"),
            ("pekko_on_stop", pekko),
            ("pekko_on_failure", pekko),
            ("pekko_typed", "205ms 410ms 820ms 1.64s 10.25s, 5.1s"),
            ("xebia", "0ns 0ns 10ms 10ms 30ms"),
            ("signalpy", "1s 2s 4s 8s 60s, 60s"),
            ("elfo", "5s 10s 20s 30s 30s, 5s"),
            ("otp", none),
            ("elixir", none),
            ("suture", none),
            ("oversight", none),
            ("systemd", "100ms 100ms 100ms 100ms 100ms"),
            ("kubelet", "10s 20s 40s 80s 300s, 600.000000001s"),
            ("pebble", "512.5ms 1.025s 2.05s 4.1s 30.75s, 30s"),
        ];
        assert_eq!(table, expected);
    }

    /// All children together, each child, and what follows.
    fn limits(preset: &Preset) -> String {
        let shown =
            |limit: Option<Intensity>| limit.map_or("any".to_owned(), |limit| limit.to_string());
        let of_each = preset.of_children().limits.get();
        assert_eq!((of_each.consecutive, of_each.failing_for), (None, None));
        let (all, each) = (shown(preset.intensity), shown(of_each.intensity));
        format!("{all}, {each}, {}", preset.on_exhausted)
    }

    #[test]
    fn each_preset_has_the_limits_of_the_other_system() {
        let unlimited = "any, any, escalate";
        for preset in Preset::all() {
            let expected = match preset.name() {
                "signalpy" => "any, restarts(3, 1m), escalate",
                "otp" | "oversight" => "restarts(1, 5s), any, escalate",
                "elixir" => "restarts(3, 5s), any, escalate",
                "suture" => "decaying(5, 30s), any, pause 15s",
                "systemd" => "any, tumbling(4, 10s), stop_child",
                _ => unlimited,
            };
            assert_eq!(limits(&preset), expected, "{}", preset.name());
        }
    }

    #[test]
    fn each_preset_restarts_after_what_the_other_system_does() {
        for preset in Preset::all() {
            let trigger = match preset.name() {
                "pekko_on_failure" => Trigger::failure(),
                "pekko_typed" | "elfo" | "systemd" => RestartType::Transient.into(),
                "signalpy" => Trigger::from(RestartType::Transient).activation_only(),
                _ => RestartType::Permanent.into(),
            };
            assert_eq!(*preset.trigger(), trigger, "{}", preset.name());
        }
    }

    #[test]
    fn what_a_preset_says_of_children_is_its_trigger_and_its_backoff() {
        for preset in Preset::all() {
            let ChildOptions { restart, backoff, .. } = preset.of_children();
            assert_eq!(restart.as_ref(), Some(preset.trigger()), "{}", preset.name());
            assert_eq!(backoff.as_ref(), Some(preset.backoff()), "{}", preset.name());
        }
    }

    /// Whether a first start that fails, fails the start; failures before a child is active always
    /// count; giving up is a clean end.
    #[test]
    fn each_preset_starts_counts_and_gives_up_as_the_other_system_does() {
        for preset in Preset::all() {
            let (fails, counts, cleanly) = match preset.name() {
                "otp" | "elixir" => (true, true, true),
                "suture" | "oversight" => (false, true, false),
                _ => (false, false, false),
            };
            let first = if fails { FirstStart::Fail } else { FirstStart::Retry };
            let found = (preset.first_start, preset.charge_everything, preset.gives_up_cleanly);
            assert_eq!(found, (first, counts, cleanly), "{}", preset.name());
        }
    }

    /// At once the first time, and after having been well.
    #[test]
    fn each_preset_restarts_at_once_when_the_other_system_does() {
        for preset in Preset::all() {
            let expected = match preset.name() {
                "kubelet" => (true, true),
                "elfo" => (false, true),
                _ => (false, false),
            };
            let backoff = preset.backoff();
            let found = (backoff.is_at_once(false), backoff.is_at_once(true));
            assert_eq!(found, expected, "{}", preset.name());
        }
    }

    /// Not by time, but by hand or by what the child does.
    #[test]
    fn who_begins_again_by_hand_or_by_an_acknowledgement() {
        for preset in Preset::all() {
            let rules = [Reset::ByHand, Reset::OnAck].map(|rule| preset.backoff().resets_on(rule));
            let expected = [preset.name() == "systemd", preset.name() == "xebia"];
            assert_eq!(rules, expected, "{}", preset.name());
        }
    }
}
