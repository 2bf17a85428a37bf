//! What is explored: supervisors and children, each as a value that can be printed.
//!
//! A [`Plan`] is one supervisor with up to three children that do nothing by themselves. All times are
//! a few beats, so that they coincide, and differ enough to come in any order: a grace and a leak
//! timeout take one beat, a backoff one and then two, and a restart counts for two.

use super::step::{BEAT, name, time};
use crate::core::verify::simulation::{FakeChild, Heart, fake, rules};
use crate::exit::ExitKind;
use crate::policy::{
    AutoShutdown, Backoff, FirstStart, Intensity, Jitter, OnExhausted, OnExit, OnLeak, Reset,
    RestartType, Rules, Shutdown, Start, Strategy,
};

const TYPES: [RestartType; 3] =
    [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];

/// All settings that vary.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) dynamic: bool,
    pub(super) strategy: Strategy,
    pub(super) budget: u32,
    /// Whether there is a backoff.
    pub(super) waits: bool,
    pub(super) start: Start,
    pub(super) flavour: Flavour,
    pub(super) types: Vec<RestartType>,
}

/// The remaining settings, in combinations that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// The defaults. Children are active at once. One fails if it is unhealthy.
    Plain,
    /// Children signal when they are ready, with a timeout, and require the first child.
    Slow,
    /// Children are parked when they exceed a limit or leak. Some have a brutal kill.
    Parked,
    /// As in OTP: every failure counts, and a failed first start is the end. Some have no shutdown timeout.
    Strict,
    /// The end of the first significant child ends the supervisor.
    AnyEnds,
    /// The end of the last significant child ends the supervisor.
    AllEnd,
    /// Exceptions to the restart types: an end is not restarted, ends or fails the supervisor, or is
    /// restarted against the type.
    Excepted,
    /// A child that exceeds a limit is stopped. Children have own limits; the intensity tumbles.
    Stopped,
    /// A child that exceeds a limit pauses. The intensity decays.
    Paused,
    /// A child that exceeds a limit ends the program, and so can an exit.
    Exits,
    /// Children have fallbacks, which are parked when they exceed a limit.
    Replaced,
    /// The failure callback decides, and children set their own policies.
    Callback,
    /// Failures with a delay are not charged, and errors may set the delay.
    RetryAfter,
    /// Messages start the last child, or all but the first. A failure of one is not restarted. A child
    /// that exceeds a limit is parked.
    OnMessage,
    /// Delivery is delayed instead of restarts, and an acknowledgement resets the backoff.
    DelayedDelivery,
    /// Children have to send heartbeats, as soon as they are active or ready.
    Watched,
    /// Children may be active for a limited time, from when they are active or ready.
    Limited,
    /// Children need leases, one signals when it is ready, and one requires another.
    Leased,
}

impl Flavour {
    const ALL: [Self; 18] = [
        Self::Plain,
        Self::Slow,
        Self::Parked,
        Self::Strict,
        Self::AnyEnds,
        Self::AllEnd,
        Self::Excepted,
        Self::Stopped,
        Self::Paused,
        Self::Exits,
        Self::Replaced,
        Self::Callback,
        Self::RetryAfter,
        Self::OnMessage,
        Self::DelayedDelivery,
        Self::Watched,
        Self::Limited,
        Self::Leased,
    ];
}

/// All plans with this many children.
pub(super) fn plans(children: usize) -> Vec<Plan> {
    let mut plans = Vec::new();
    for types in lists(children) {
        for flavour in Flavour::ALL {
            for budget in 0..=2 {
                for waits in [false, true] {
                    for (dynamic, strategy, start) in kinds(children) {
                        let types = types.clone();
                        plans.push(Plan {
                            dynamic,
                            strategy,
                            budget,
                            waits,
                            start,
                            flavour,
                            types,
                        });
                    }
                }
            }
        }
    }
    // This makes no difference here.
    plans.retain(|plan| !(plan.dynamic && plan.flavour.concerns_siblings()));
    plans
}

/// Supervisors that differ with this many children.
fn kinds(children: usize) -> Vec<(bool, Strategy, Start)> {
    let (one, all, rest) = (Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne);
    let strategies = if children == 1 { vec![one, all] } else { vec![one, all, rest] };
    let starts = if children == 1 {
        vec![Start::Sequential]
    } else {
        vec![Start::Sequential, Start::Concurrent]
    };
    let mut kinds = vec![(true, one, Start::Sequential)];
    for &strategy in &strategies {
        kinds.extend(starts.iter().map(|&start| (false, strategy, start)));
    }
    kinds
}

/// Every list of this many restart types.
fn lists(len: usize) -> Vec<Vec<RestartType>> {
    let mut lists = vec![Vec::new()];
    for _ in 0..len {
        let longer = lists.iter().flat_map(|list| {
            TYPES.map(|restart| list.iter().copied().chain([restart]).collect::<Vec<_>>())
        });
        lists = longer.collect();
    }
    lists
}

impl Flavour {
    fn concerns_siblings(self) -> bool {
        matches!(self, Self::AnyEnds | Self::AllEnd | Self::Strict)
    }
}

impl Plan {
    pub(super) fn rules(&self) -> Rules {
        let base = Rules {
            strategy: self.strategy,
            start: self.start,
            intensity: Some(Intensity::sliding(self.budget, 2 * BEAT)),
            backoff: self.backoff(),
            leak_timeout: BEAT,
            ..rules()
        };
        match self.flavour {
            Flavour::Plain
            | Flavour::Slow
            | Flavour::Excepted
            | Flavour::RetryAfter
            | Flavour::Watched
            | Flavour::Limited
            | Flavour::Leased => base,
            Flavour::Parked | Flavour::OnMessage => {
                Rules { on_exhausted: OnExhausted::Park, ..base }
            }
            Flavour::Strict => {
                Rules { first_start: FirstStart::Fail, count_failed_starts: true, ..base }
            }
            Flavour::Stopped => Rules {
                on_exhausted: OnExhausted::StopChild,
                intensity: Some(Intensity::tumbling(self.budget, 2 * BEAT)),
                ..base
            },
            Flavour::Paused => Rules {
                on_exhausted: OnExhausted::Pause(2 * BEAT),
                intensity: Some(Intensity::decaying(f64::from(self.budget) + 0.25, 2 * BEAT)),
                ..base
            },
            Flavour::Exits => Rules { on_exhausted: OnExhausted::Exit(3), ..base },
            Flavour::Replaced => Rules { intensity: None, ..base },
            Flavour::AnyEnds => Rules { auto_shutdown: AutoShutdown::AnySignificant, ..base },
            Flavour::AllEnd => Rules { auto_shutdown: AutoShutdown::AllSignificant, ..base },
            Flavour::Callback => Rules { has_failure_callback: true, ..base },
            Flavour::DelayedDelivery => {
                let backoff = self.backoff().reset(Reset::OnAck);
                Rules { backoff, ..base }
            }
        }
    }

    fn backoff(&self) -> Backoff {
        if self.waits {
            Backoff::exponential(BEAT, 2 * BEAT).jitter(Jitter::None).reset_after(BEAT)
        } else {
            Backoff::none()
        }
    }

    pub(super) fn fakes(&self) -> Vec<FakeChild> {
        (0..self.types.len()).map(|number| self.fake(number)).collect()
    }

    fn fake(&self, number: usize) -> FakeChild {
        let mut fake = fake_of(number).restart(self.types[number]);
        match self.flavour {
            Flavour::Plain => {
                if number == 0 {
                    fake = fake.fails_unhealthy();
                }
            }
            Flavour::Slow => {
                fake = fake.signals(None).activation_timeout(2 * BEAT);
                if number > 0 && !self.dynamic {
                    fake = fake.requires("a");
                }
            }
            Flavour::Parked => {
                fake = fake.on_leak(OnLeak::Park);
                if number == 1 {
                    fake = fake.shutdown(Shutdown::BrutalKill);
                }
            }
            Flavour::Strict => {
                fake = fake.signals(None);
                if number == 1 {
                    fake = fake.shutdown(Shutdown::Infinity);
                }
            }
            Flavour::Excepted => {
                fake = match self.types[number] {
                    RestartType::Transient => fake.on_exit(ExitKind::Normal, OnExit::EndSupervisor),
                    RestartType::Temporary => fake
                        .on_exit(ExitKind::Normal, OnExit::Restart)
                        .on_exit(ExitKind::Failed, OnExit::FailSupervisor),
                    _ => fake.on_exit(ExitKind::Failed, OnExit::Leave),
                };
                if number == 0 {
                    fake = fake.signals(None);
                }
            }
            Flavour::Stopped => {
                fake = fake.consecutive(2);
                if number == 0 {
                    fake = fake.failing_for(BEAT);
                }
            }
            Flavour::Paused => {
                if number == 1 {
                    fake = fake.intensity(Intensity::sliding(1, 2 * BEAT));
                }
            }
            Flavour::Exits => {}
            Flavour::Replaced => {
                let restart = self.types[self.types.len() - 1];
                let fallback = fake_of(number).restart(restart).consecutive(0);
                let fallback = fallback.on_exhausted(OnExhausted::Park);
                fake =
                    fake.intensity(Intensity::tumbling(self.budget, 2 * BEAT)).fallback(fallback);
            }
            Flavour::AnyEnds | Flavour::AllEnd => {
                if self.types[number] != RestartType::Permanent {
                    fake = fake.significant();
                }
            }
            Flavour::Callback => {
                fake = fake.silent();
                if self.types[number] == RestartType::Transient {
                    fake = fake.on_exit(ExitKind::Failed, OnExit::RestartUncharged);
                }
            }
            Flavour::OnMessage => {
                if number > 0 || self.types.len() == 1 {
                    fake = fake.on_message();
                }
                if number == 1 {
                    fake = fake.on_exit(ExitKind::Failed, OnExit::Leave);
                }
                if number == 2 && !self.dynamic {
                    fake = fake.requires("b");
                }
            }
            Flavour::DelayedDelivery => {
                fake = fake.delays_delivery();
                if number == 0 {
                    fake = fake.retry_after(3 * BEAT);
                }
            }
            Flavour::Watched => {
                fake = fake.heart(Heart::Unanswered).watchdog(BEAT * (1 + number as u32));
                if number == 0 {
                    fake = fake.signals(None);
                }
            }
            Flavour::Limited => {
                fake = fake.run_time_limit(BEAT * (1 + number as u32));
                if number == 0 {
                    fake = fake.signals(None);
                }
            }
            Flavour::Leased => {
                if number != 1 {
                    fake = fake.leased(2 * BEAT);
                }
                if number == 0 {
                    fake = fake.signals(None);
                }
                if number > 0 && !self.dynamic {
                    fake = fake.requires("a");
                }
            }
            Flavour::RetryAfter => {
                fake = fake.on_exit(ExitKind::Failed, OnExit::RestartUncharged);
                if number == 0 {
                    fake = fake.retry_after(3 * BEAT).consecutive(2);
                }
            }
        }
        fake
    }

    /// The rules and the children as source code of the simulation.
    pub(super) fn script(&self) -> (String, Vec<String>) {
        let rules = self.rules();
        let mut backoff = match self.waits {
            true => {
                "Backoff::exponential(ms(100), ms(200)).jitter(Jitter::None).reset_after(ms(100))"
                    .to_owned()
            }
            false => "Backoff::none()".to_owned(),
        };
        if self.flavour == Flavour::DelayedDelivery {
            backoff += ".reset(Reset::OnAck)";
        }
        let text = format!(
            "let rules = Rules {{\n    strategy: Strategy::{:?},\n    start: Start::{:?},\n    \
             intensity: {},\n    backoff: {backoff},\n    leak_timeout: {},\n    \
             on_exhausted: {},\n    first_start: FirstStart::{:?},\n    \
             count_failed_starts: {:?},\n    has_failure_callback: {:?},\n    auto_shutdown: AutoShutdown::{:?},\n    \
             ..rules()\n}};",
            rules.strategy,
            rules.start,
            rules.intensity.map_or("None".to_owned(), |it| format!("Some({})", intensity(it))),
            time(rules.leak_timeout),
            exhausted(rules.on_exhausted),
            rules.first_start,
            rules.count_failed_starts,
            rules.has_failure_callback,
            rules.auto_shutdown,
        );
        (text, self.fakes().iter().map(script).collect())
    }
}

fn fake_of(number: usize) -> FakeChild {
    fake(name(number as u8)).leaks().shutdown(BEAT)
}

fn exhausted(what: OnExhausted) -> String {
    match what {
        OnExhausted::Pause(length) => format!("OnExhausted::Pause({})", time(length)),
        other => format!("OnExhausted::{other:?}"),
    }
}

fn intensity(intensity: Intensity) -> String {
    let period = time(intensity.period());
    match intensity.decay() {
        Some((max, _)) => format!("Intensity::decaying({max:?}, {period})"),
        None if intensity.tumbles() => {
            format!("Intensity::tumbling({}, {period})", intensity.max())
        }
        None => format!("Intensity::sliding({}, {period})", intensity.max()),
    }
}

fn script(fake: &FakeChild) -> String {
    let options = &fake.options;
    let mut text = format!("fake({:?}).leaks()", fake.name());
    if let Some(trigger) = &options.values.policy.restart {
        text += &format!(".restart(RestartType::{:?})", trigger.restart_type());
    }
    for (kind, then) in &fake.on_exit {
        text += &format!(".on_exit(ExitKind::{kind:?}, OnExit::{then:?})");
    }
    if let Some(wait) = fake.retry_after {
        text += &format!(".retry_after({})", time(wait));
    }
    match options.values.shutdown {
        Some(Shutdown::Timeout(grace)) => text += &format!(".shutdown({})", time(grace)),
        Some(shutdown) => text += &format!(".shutdown(Shutdown::{shutdown:?})"),
        None => {}
    }
    if options.facts.signals {
        text += ".signals(None)";
    }
    if let Some(timeout) = options.values.activation_timeout {
        text += &format!(".activation_timeout({})", time(timeout));
    }
    if let Some(interval) = options.values.watchdog {
        text += &format!(".watchdog({}).heart(Heart::{:?})", time(interval), fake.heart);
    }
    if let Some(limit) = options.values.run_time_limit {
        text += &format!(".run_time_limit({})", time(limit));
    }
    if let Some(on_leak) = options.values.on_leak {
        text += &format!(".on_leak(OnLeak::{on_leak:?})");
    }
    let limits = options.values.policy.limits.get();
    if let Some(it) = limits.intensity {
        text += &format!(".intensity({})", intensity(it));
    }
    if let Some(max) = limits.consecutive {
        text += &format!(".consecutive({max})");
    }
    if let Some(max) = limits.failing_for {
        text += &format!(".failing_for({})", time(max));
    }
    if let Some(what) = options.values.policy.on_exhausted {
        text += &format!(".on_exhausted({})", exhausted(what));
    }
    if let Some(fallback) = fake.replacement() {
        text += &format!(".fallback({})", script(fallback));
    }
    if options.on_message {
        text += ".on_message()";
    }
    if let Some(grace) = options.lease_grace {
        text += &format!(".leased({})", time(grace));
    }
    if options.delays_delivery {
        text += ".delays_delivery()";
    }
    if options.fails_unhealthy {
        text += ".fails_unhealthy()";
    }
    if fake.silent {
        text += ".silent()";
    }
    if options.significant {
        text += ".significant()";
    }
    for required in &fake.requires {
        text += &format!(".requires({required:?})");
    }
    text
}
