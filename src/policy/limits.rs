//! Answers to an exceeded limit, the limits of one child, and the built-in limit that a child has unless one is written.
//!
//! An [`Intensity`] limits the restarts of a supervisor or of one child. The other [`Limits`] are limits of a child
//! only. Whether a limit is written is for [`ChildRules`](super::ChildRules) to say.
//!
//! # Invariants
//!
//! 1. The period of the built-in limit is at least [`PERIOD`], and long enough for a child to exceed the limit that keeps
//!    failing, each restart with its longest delay, graces and timeouts. Parts without a bound are left out.
//! 2. This period is the same at each failure. Only a change of options or rules changes it.

use std::fmt;
use std::time::Duration;

use super::{Backoff, Intensity};
use crate::human_duration::HumanDuration;
use crate::string_enum::string_enum;

/// What a supervisor does when a child exceeds a restart limit.
///
/// Every answer but [`Escalate`](Self::Escalate) first stops the *range*: the children that the strategy
/// would have restarted. Displayed as a word with its value: `escalate`, `park`, `stop_child`, `remove`,
/// `pause 15s`, `exit 3`. In a file, an answer with a value is a table with one key: `"park"`,
/// `{ pause = "15s" }`, `{ exit = 3 }`.
///
/// ```
/// use std::time::Duration;
///
/// use verger::policy::OnExhausted;
/// use verger::{Context, Supervisor, worker};
///
/// async fn idle(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// // `db` keeps the program down no longer than 15 s at a time; `mails` may stay down.
/// let pause = OnExhausted::Pause(Duration::from_secs(15));
/// let app = Supervisor::builder("app")
///     .child(worker("db", idle).on_exhausted(pause))
///     .child(worker("mails", idle).on_exhausted(OnExhausted::Park));
/// assert_eq!(pause.to_string(), "pause 15s");
/// # drop(app);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnExhausted {
    /// Stops all children in reverse order and fails, so that the parent decides. The default, except
    /// for a [`DynamicSupervisor`](crate::DynamicSupervisor).
    ///
    /// At the root, it ends the run with an error.
    #[default]
    Escalate,
    /// Leaves the child [`Errored`](crate::Lifecycle::Errored), and the rest of its range stopped.
    ///
    /// The other children keep running. [`resume`](crate::SupervisorHandle::resume) starts the range
    /// again.
    Park,
    /// Leaves the child [`Stopped`](crate::Lifecycle::Stopped) as *given up*, and the rest of its range
    /// stopped.
    ///
    /// Unlike [`Park`](Self::Park), the child doesn't count as failed in the status.
    /// [`resume`](crate::SupervisorHandle::resume) starts the range again.
    StopChild,
    /// Removes the child. The default of a [`DynamicSupervisor`](crate::DynamicSupervisor), whose other
    /// children keep running.
    ///
    /// This is the answer to a limit of the child itself. If the child exceeds the limit that its
    /// supervisor has for all children together, the supervisor escalates, because the removal of one
    /// child mends nothing. In a [`Supervisor`](struct@crate::Supervisor) every child has its place, so it is kept
    /// there as with [`StopChild`](Self::StopChild).
    Remove,
    /// Starts the range again after this time, and resets the limit that was exceeded.
    ///
    /// If it was the supervisor's limit, other children that fail meanwhile also wait until the pause
    /// is over, uncharged. Running children keep running. If it was a limit of the child, only its
    /// range pauses.
    ///
    /// The child is [`Restarting`](crate::Lifecycle::Restarting) meanwhile, with its next attempt in
    /// the status. The pause counts from the failure, and the [jitter](crate::policy::Jitter) of the child's
    /// backoff extends it. It must be longer than zero. The behaviour is that of suture.
    Pause(Duration),
    /// Ends the program with this exit code.
    ///
    /// The supervisor stops its children in order and ends, and so does each supervisor above it,
    /// regardless of their policies. [`run_to_exit_code`](crate::Supervisor::run_to_exit_code) returns
    /// the code. [`run`](crate::Supervisor::run) returns `Ok` for code 0, and
    /// [`RunError::Exited`](crate::RunError::Exited) otherwise.
    Exit(u8),
}

impl fmt::Display for OnExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Escalate => f.pad("escalate"),
            Self::Park => f.pad("park"),
            Self::StopChild => f.pad("stop_child"),
            Self::Remove => f.pad("remove"),
            Self::Pause(length) => f.pad(&format!("pause {}", HumanDuration(*length))),
            Self::Exit(code) => f.pad(&format!("exit {code}")),
        }
    }
}

/// The restart limits of one child, besides that of its supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    pub(crate) intensity: Option<Intensity>,
    /// Restarts since the backoff was last reset.
    pub(crate) consecutive: Option<u32>,
    /// Time from the first failure since the last reset to the latest failure.
    pub(crate) failing_for: Option<Duration>,
    /// Whether no limit of a lower precedence applies, the built-in one included.
    pub(crate) unlimited: bool,
    /// Whether the intensity is the built-in one. It is charged what the intensity of a supervisor is charged,
    /// and so spares children that can't start.
    pub(crate) is_default: bool,
}

impl Limits {
    /// Returns the limits that count a failure; `charged`: whether the intensity of a supervisor counts it.
    pub(crate) fn counting(self, charged: bool) -> Self {
        Self { intensity: self.intensity.filter(|_| charged || !self.is_default), ..self }
    }

    /// Returns these limits, with those of `below` where one isn't set.
    pub(crate) fn or(self, below: Self) -> Self {
        if self.unlimited {
            return self;
        }
        Self {
            intensity: self.intensity.or(below.intensity),
            consecutive: self.consecutive.or(below.consecutive),
            failing_for: self.failing_for.or(below.failing_for),
            unlimited: below.unlimited,
            is_default: if self.intensity.is_some() { self.is_default } else { below.is_default },
        }
    }

    /// Whether nothing is written: neither a limit, nor that there is none.
    pub(crate) fn is_unwritten(&self) -> bool {
        *self == Self::default()
    }

    /// Whether some restart may be refused.
    pub(crate) fn is_limited(&self) -> bool {
        self.intensity.is_some() || self.consecutive.is_some() || self.failing_for.is_some()
    }
}

impl Limits {
    /// Returns the call that sets the window.
    pub(crate) fn window_text(&self) -> Option<String> {
        self.intensity.as_ref().map(own_text)
    }

    /// Lists the calls that set the limits on consecutive failures.
    pub(crate) fn in_a_row(&self) -> impl Iterator<Item = String> {
        let consecutive = self.consecutive.as_ref().map(consecutive_text);
        consecutive.into_iter().chain(self.failing_for.as_ref().map(failing_for_text))
    }
}

/// The call that sets the limit of a child.
fn own_text(intensity: &Intensity) -> String {
    if intensity.slides() { format!("own_{intensity}") } else { intensity.to_string() }
}

fn consecutive_text(max: &u32) -> String {
    format!("consecutive_restarts({max})")
}

fn failing_for_text(max: &Duration) -> String {
    format!("failing_for({})", HumanDuration(*max))
}

/// Limits while they are set, one call at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WrittenLimits {
    limits: Limits,
    /// Limits with a lower precedence, which the type of the child has set.
    beneath: Limits,
    pub(crate) twice: Option<SetTwice>,
}

const UNLIMITED: &str = "unlimited_restarts()";

impl WrittenLimits {
    pub(crate) fn intensity(&mut self, intensity: Intensity) {
        if self.limits.unlimited {
            self.contradict(UNLIMITED.to_owned(), own_text(&intensity));
        }
        set(&mut self.limits.intensity, intensity, &mut self.twice, own_text);
    }

    /// Makes every limit of a lower precedence void.
    pub(crate) fn unlimited(&mut self) {
        if let Some(intensity) = &self.limits.intensity {
            self.contradict(own_text(intensity), UNLIMITED.to_owned());
        }
        self.limits.unlimited = true;
    }

    fn contradict(&mut self, first: String, second: String) {
        self.twice.get_or_insert(SetTwice { first, second });
    }

    pub(crate) fn consecutive(&mut self, max: u32) {
        set(&mut self.limits.consecutive, max, &mut self.twice, consecutive_text);
    }

    pub(crate) fn failing_for(&mut self, max: Duration) {
        set(&mut self.limits.failing_for, max, &mut self.twice, failing_for_text);
    }

    /// Creates a value without limits.
    pub(crate) const fn none() -> Self {
        const NONE: Limits = Limits {
            intensity: None,
            consecutive: None,
            failing_for: None,
            unlimited: false,
            is_default: false,
        };
        Self { limits: NONE, beneath: NONE, twice: None }
    }

    /// Sets the limits of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.twice.is_none() {
            self.twice.clone_from(&other.twice);
        }
        let Limits { intensity, consecutive, failing_for, unlimited, is_default: _ } = other.get();
        if unlimited {
            self.unlimited();
        }
        intensity.into_iter().for_each(|it| self.intensity(it));
        consecutive.into_iter().for_each(|max| self.consecutive(max));
        failing_for.into_iter().for_each(|max| self.failing_for(max));
    }

    /// Gives the limits so far a lower precedence than those that are set from now on.
    pub(crate) fn layer(&mut self) {
        self.beneath = std::mem::take(&mut self.limits).or(self.beneath);
    }

    pub(crate) fn get(&self) -> Limits {
        self.limits.or(self.beneath)
    }
}

/// Two values for one limit with the same precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetTwice {
    /// The calls that set them.
    pub(crate) first: String,
    pub(crate) second: String,
}

/// Sets a limit, and records an error if it is set already. The first error is kept.
pub(crate) fn set<T>(
    slot: &mut Option<T>,
    value: T,
    twice: &mut Option<SetTwice>,
    text: impl Fn(&T) -> String,
) {
    if let Some(first) = &*slot {
        twice.get_or_insert_with(|| SetTwice { first: text(first), second: text(&value) });
    }
    *slot = Some(value);
}

/// What a supervisor does with a child that is *leaked*: aborted, but still running.
///
/// A task can be aborted only at an await point; code that blocks its thread continues to run. A
/// leaked incarnation is always reported. OTP has no such case, because it can kill every process.
///
/// ```
/// use verger::policy::OnLeak;
/// use verger::{Context, worker};
///
/// // A second incarnation must not open the device while the first one still blocks in its driver.
/// let device = worker("device", async |ctx: Context| ctx.cancelled().await).on_leak(OnLeak::Park);
/// # drop(device);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnLeak {
    /// Starts the next incarnation as after any failure. The default.
    ///
    /// The leaked incarnation may run in parallel, so the child must not own anything exclusively.
    #[default]
    Restart,
    /// Leaves the child down until `retry`. Use it for a child that must never run twice.
    Park,
}

string_enum!(
    OnLeak, "answer to a leak":
    Restart = "restart",
    Park = "park",
);

/// The shortest period. A worker that fails immediately with the default backoff needs 171 to 205 s for its
/// restarts, and up to 72 s for graces and leak timeouts.
const PERIOD: Duration = Duration::from_secs(5 * 60);

/// The number of restarts that each child of a supervisor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DefaultLimit {
    pub(crate) of_workers: u32,
    /// A supervisor has used up the restarts of a child before it fails itself.
    pub(crate) of_supervisors: u32,
    /// The shortest period.
    pub(crate) period: Duration,
}

impl DefaultLimit {
    pub(crate) const BUILT_IN: Self = Self { of_workers: 12, of_supervisors: 3, period: PERIOD };

    /// Returns the limit of a child with this backoff. `cycle`: the longest time from a start of the child to the
    /// next, without its delay.
    pub(crate) fn of(self, is_supervisor: bool, backoff: &Backoff, cycle: Duration) -> Intensity {
        let max = if is_supervisor { self.of_supervisors } else { self.of_workers };
        let needed = cycle.saturating_mul(max).saturating_add(backoff.longest_waits(max));
        Intensity::sliding(max, whole_minutes(needed).max(self.period))
    }
}

/// Rounds up to whole minutes, which are easier to read.
fn whole_minutes(time: Duration) -> Duration {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    let minutes = seconds.div_ceil(60);
    minutes.checked_mul(60).map_or(Duration::MAX, Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_escalate_and_restart() {
        assert_eq!(OnExhausted::default(), OnExhausted::Escalate);
        assert_eq!(OnLeak::default(), OnLeak::Restart);
    }

    #[test]
    fn on_exhausted_is_displayed_as_a_word_with_its_value() {
        let table = [
            (OnExhausted::Escalate, "escalate"),
            (OnExhausted::Park, "park"),
            (OnExhausted::StopChild, "stop_child"),
            (OnExhausted::Remove, "remove"),
            (OnExhausted::Pause(Duration::from_secs(15)), "pause 15s"),
            (OnExhausted::Exit(3), "exit 3"),
        ];
        for (choice, word) in table {
            assert_eq!(choice.to_string(), word);
        }
    }

    #[test]
    fn limits_on_consecutive_failures_are_displayed_as_calls() {
        let shown = |limits: Limits| limits.in_a_row().collect::<Vec<_>>().join(", ");
        let intensity = Some(Intensity::sliding(1, Duration::from_secs(1)));
        let limits = Limits { intensity, ..Limits::default() };
        assert_eq!(shown(limits), "");
        let limits = Limits { consecutive: Some(3), ..limits };
        assert_eq!(shown(limits), "consecutive_restarts(3)");
        let limits = Limits { failing_for: Some(Duration::from_secs(90)), ..limits };
        assert_eq!(shown(limits), "consecutive_restarts(3), failing_for(1m 30s)");
    }

    #[test]
    fn a_limit_that_is_set_twice_is_an_error_unless_a_layer_is_between() {
        let second = Duration::from_secs(1);
        let mut limits = WrittenLimits::default();
        limits.consecutive(3);
        limits.failing_for(second);
        limits.layer();
        limits.consecutive(4);
        limits.intensity(Intensity::sliding(1, second));
        assert_eq!(limits.twice, None);
        let expected = Limits {
            intensity: Some(Intensity::sliding(1, second)),
            consecutive: Some(4),
            failing_for: Some(second),
            unlimited: false,
            is_default: false,
        };
        assert_eq!(limits.get(), expected);

        limits.intensity(Intensity::tumbling(2, second));
        limits.consecutive(5);
        let (first, second) = ("own_restarts(1, 1s)".to_owned(), "tumbling(2, 1s)".to_owned());
        assert_eq!(limits.twice, Some(SetTwice { first, second }), "the first mistake");
    }

    #[test]
    fn unlimited_restarts_void_every_limit_of_a_lower_precedence() {
        let second = Duration::from_secs(1);
        let mut limits = WrittenLimits::default();
        limits.intensity(Intensity::sliding(1, second));
        limits.failing_for(second);
        limits.layer();
        limits.unlimited();
        limits.consecutive(4);
        assert_eq!(limits.twice, None, "they have another precedence");
        let expected = Limits { consecutive: Some(4), unlimited: true, ..Limits::default() };
        assert_eq!(limits.get(), expected);
        let below = Limits { failing_for: Some(second), ..Limits::default() };
        assert_eq!(limits.get().or(below), expected);
        limits.layer();
        limits.intensity(Intensity::sliding(2, second));
        let intensity = Some(Intensity::sliding(2, second));
        assert_eq!(limits.get(), Limits { intensity, ..expected }, "limits above it apply");
    }

    #[test]
    fn unlimited_restarts_contradict_a_window_of_the_same_precedence() {
        let five = Intensity::sliding(5, Duration::from_secs(60));
        let (first, second) = ("own_restarts(5, 1m)".to_owned(), UNLIMITED.to_owned());
        let mut limits = WrittenLimits::default();
        limits.intensity(five);
        limits.unlimited();
        assert_eq!(limits.twice, Some(SetTwice { first: first.clone(), second: second.clone() }));

        let mut limits = WrittenLimits::default();
        limits.unlimited();
        limits.intensity(five);
        assert_eq!(limits.twice, Some(SetTwice { first: second, second: first }));
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn of(is_supervisor: bool, backoff: &Backoff, cycle: Duration) -> Intensity {
        DefaultLimit::BUILT_IN.of(is_supervisor, backoff, cycle)
    }

    #[test]
    fn a_worker_with_defaults_has_twelve_restarts_in_five_minutes() {
        let default = Backoff::default();
        assert_eq!(of(false, &default, secs(5 + 1)), Intensity::sliding(12, secs(300)));
        assert_eq!(of(false, &Backoff::none(), Duration::ZERO), Intensity::sliding(12, secs(300)));
    }

    #[test]
    fn the_period_contains_twelve_of_the_longest_cycles_in_whole_minutes() {
        // 12 * 25 s is five minutes exactly, and a nanosecond more is another minute.
        let (none, minutes) =
            (Backoff::none(), |minutes: u64| Intensity::sliding(12, secs(minutes * 60)));
        assert_eq!(of(false, &none, secs(25)), minutes(5));
        assert_eq!(of(false, &none, secs(25) + Duration::from_nanos(1)), minutes(6));
        assert_eq!(of(false, &Backoff::constant(secs(60)), secs(5)), minutes(13));
        let jittery = Backoff::constant(secs(60)).jitter(0.5).soft_cap();
        assert_eq!(of(false, &jittery, Duration::ZERO), minutes(18));
    }

    #[test]
    fn the_period_of_a_curve_that_falls_contains_the_delays_that_it_has() {
        struct Falling;
        impl crate::policy::Curve for Falling {
            fn delay(&self, index: u32) -> Duration {
                secs(if index == 0 { 600 } else { 1 })
            }
        }
        // 300 s, and 11 times one second.
        let falling = Backoff::custom(Falling).cap(secs(300));
        assert_eq!(of(false, &falling, Duration::ZERO), Intensity::sliding(12, secs(6 * 60)));
    }

    #[test]
    fn a_supervisor_has_three_restarts_in_the_time_that_it_takes_to_fail_three_times() {
        let backoff = Backoff::default();
        assert_eq!(of(true, &backoff, secs(1)), Intensity::sliding(3, secs(300)));
        assert_eq!(of(true, &backoff, secs(333)), Intensity::sliding(3, secs(17 * 60)));
        assert_eq!(of(true, &backoff, Duration::MAX), Intensity::sliding(3, Duration::MAX));
    }
}
