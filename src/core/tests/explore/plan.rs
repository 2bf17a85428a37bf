//! What is explored: supervisors and children, each a value that can be written down.
//!
//! A [`Plan`] is one supervisor with up to three children who do nothing by themselves. All times
//! are a few beats, so that they meet, and different enough to come in any order: a grace and a leak
//! take one, a backoff one and then two, a restart counts for two.

use super::super::super::simulator::{Kid, kid, rules};
use super::step::{BEAT, name, time};
use crate::exit::ExitKind;
use crate::policy::{
    AutoShutdown, Backoff, FirstStart, Intensity, OnExhausted, OnExit, OnLeak, Reset, RestartType,
    Rules, Shutdown, Start, Strategy,
};

const TYPES: [RestartType; 3] =
    [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];

/// All that is varied.
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

/// The rest of what can be set, in combinations that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// All as it is by default. Children are active at once. One fails if it is unhealthy.
    Plain,
    /// Children say when they are ready, have no time for it, and require the first one.
    Slow,
    /// What gives up is parked, and so is what leaks. Some are aborted without being asked.
    Parked,
    /// As in OTP: every failure counts, a failed first start is the end. Some are waited for.
    Strict,
    /// The first significant child that ends is the end.
    AnyEnds,
    /// The last one is.
    AllEnd,
    /// There are exceptions to the restart types: one is left, ends all, fails all, or comes back
    /// where its type says otherwise.
    Excepted,
    /// Who gives up is stopped. Children have limits of their own; that of all tumbles.
    Stopped,
    /// What fails too often pauses. The limit of all is a score.
    Paused,
    /// What fails too often ends the program, and so does who says so.
    Exits,
    /// Children have others who take their place, and who are parked.
    Replaced,
    /// Somebody is asked about each failure, and children say themselves what they are.
    Asked,
    /// Failures cost nothing as long as there is a wait, and errors may ask for one.
    Told,
    /// Messages start the last child, or all but the first. One is left when it has failed. What
    /// gives up is parked.
    Called,
    /// Messages wait in place of the children, and acknowledging one is being well.
    Held,
}

impl Flavour {
    const ALL: [Self; 15] = [
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
        Self::Asked,
        Self::Told,
        Self::Called,
        Self::Held,
    ];
}

/// All plans with so many children.
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
    // What it says makes no difference here.
    plans.retain(|plan| !(plan.dynamic && plan.flavour.concerns_siblings()));
    plans
}

/// Supervisors that differ with so many children.
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

/// Every list of so many restart types.
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
            Flavour::Plain | Flavour::Slow | Flavour::Excepted | Flavour::Told => base,
            Flavour::Parked | Flavour::Called => Rules { on_exhausted: OnExhausted::Park, ..base },
            Flavour::Strict => {
                Rules { first_start: FirstStart::Fail, charge_everything: true, ..base }
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
            Flavour::Asked => Rules { asks: true, ..base },
            Flavour::Held => {
                let backoff = self.backoff().reset(Reset::OnAck);
                Rules { backoff, ..base }
            }
        }
    }

    fn backoff(&self) -> Backoff {
        if self.waits {
            Backoff::exponential(BEAT, 2 * BEAT).reset_after(BEAT)
        } else {
            Backoff::none()
        }
    }

    pub(super) fn kids(&self) -> Vec<Kid> {
        (0..self.types.len()).map(|number| self.kid(number)).collect()
    }

    fn kid(&self, number: usize) -> Kid {
        let mut kid = kid_of(number).restart(self.types[number]);
        match self.flavour {
            Flavour::Plain => {
                if number == 0 {
                    kid = kid.fails_unhealthy();
                }
            }
            Flavour::Slow => {
                kid = kid.signals(None).activation_timeout(2 * BEAT);
                if number > 0 && !self.dynamic {
                    kid = kid.requires("a");
                }
            }
            Flavour::Parked => {
                kid = kid.on_leak(OnLeak::Park);
                if number == 1 {
                    kid = kid.shutdown(Shutdown::BrutalKill);
                }
            }
            Flavour::Strict => {
                kid = kid.signals(None);
                if number == 1 {
                    kid = kid.shutdown(Shutdown::Infinity);
                }
            }
            Flavour::Excepted => {
                kid = match self.types[number] {
                    RestartType::Transient => kid.on_exit(ExitKind::Normal, OnExit::EndSupervisor),
                    RestartType::Temporary => kid
                        .on_exit(ExitKind::Normal, OnExit::Restart)
                        .on_exit(ExitKind::Failed, OnExit::FailSupervisor),
                    _ => kid.on_exit(ExitKind::Failed, OnExit::Leave),
                };
                if number == 0 {
                    kid = kid.signals(None);
                }
            }
            Flavour::Stopped => {
                kid = kid.consecutive(2);
                if number == 0 {
                    kid = kid.failing_for(BEAT);
                }
            }
            Flavour::Paused => {
                if number == 1 {
                    kid = kid.intensity(Intensity::sliding(1, 2 * BEAT));
                }
            }
            Flavour::Exits => {}
            Flavour::Replaced => {
                let restart = self.types[self.types.len() - 1];
                let fallback = kid_of(number).restart(restart).consecutive(0);
                let fallback = fallback.on_exhausted(OnExhausted::Park);
                kid = kid.intensity(Intensity::tumbling(self.budget, 2 * BEAT)).fallback(fallback);
            }
            Flavour::AnyEnds | Flavour::AllEnd => {
                if self.types[number] != RestartType::Permanent {
                    kid = kid.significant();
                }
            }
            Flavour::Asked => {
                kid = kid.silent();
                if self.types[number] == RestartType::Transient {
                    kid = kid.on_exit(ExitKind::Failed, OnExit::RestartUncharged);
                }
            }
            Flavour::Called => {
                if number > 0 || self.types.len() == 1 {
                    kid = kid.on_message();
                }
                if number == 1 {
                    kid = kid.on_exit(ExitKind::Failed, OnExit::Leave);
                }
                if number == 2 && !self.dynamic {
                    kid = kid.requires("b");
                }
            }
            Flavour::Held => {
                kid = kid.delays_traffic();
                if number == 0 {
                    kid = kid.told(3 * BEAT);
                }
            }
            Flavour::Told => {
                kid = kid.on_exit(ExitKind::Failed, OnExit::RestartUncharged);
                if number == 0 {
                    kid = kid.told(3 * BEAT).consecutive(2);
                }
            }
        }
        kid
    }

    /// The rules and the children in the words of the simulator.
    pub(super) fn script(&self) -> (String, Vec<String>) {
        let rules = self.rules();
        let mut backoff = match self.waits {
            true => "Backoff::exponential(ms(100), ms(200)).reset_after(ms(100))".to_owned(),
            false => "Backoff::none()".to_owned(),
        };
        if self.flavour == Flavour::Held {
            backoff += ".reset(Reset::OnAck)";
        }
        let text = format!(
            "let rules = Rules {{\n    strategy: Strategy::{:?},\n    start: Start::{:?},\n    \
             intensity: {},\n    backoff: {backoff},\n    leak_timeout: {},\n    \
             on_exhausted: {},\n    first_start: FirstStart::{:?},\n    \
             charge_everything: {:?},\n    asks: {:?},\n    auto_shutdown: AutoShutdown::{:?},\n    \
             ..rules()\n}};",
            rules.strategy,
            rules.start,
            rules.intensity.map_or("None".to_owned(), |it| format!("Some({})", intensity(it))),
            time(rules.leak_timeout),
            exhausted(rules.on_exhausted),
            rules.first_start,
            rules.charge_everything,
            rules.asks,
            rules.auto_shutdown,
        );
        (text, self.kids().iter().map(script).collect())
    }
}

fn kid_of(number: usize) -> Kid {
    kid(name(number as u8)).leaks().shutdown(BEAT)
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

fn script(kid: &Kid) -> String {
    let options = &kid.options;
    let mut text = format!("kid({:?}).leaks()", kid.name());
    if let Some(trigger) = &options.restart {
        text += &format!(".restart(RestartType::{:?})", trigger.restart_type());
    }
    for (kind, then) in &kid.on_exit {
        text += &format!(".on_exit(ExitKind::{kind:?}, OnExit::{then:?})");
    }
    if let Some(wait) = kid.told {
        text += &format!(".told({})", time(wait));
    }
    match options.shutdown {
        Some(Shutdown::Timeout(grace)) => text += &format!(".shutdown({})", time(grace)),
        Some(shutdown) => text += &format!(".shutdown(Shutdown::{shutdown:?})"),
        None => {}
    }
    if options.signals {
        text += ".signals(None)";
    }
    if let Some(timeout) = options.activation_timeout {
        text += &format!(".activation_timeout({})", time(timeout));
    }
    if let Some(on_leak) = options.on_leak {
        text += &format!(".on_leak(OnLeak::{on_leak:?})");
    }
    let limits = options.limits.get();
    if let Some(it) = limits.intensity {
        text += &format!(".intensity({})", intensity(it));
    }
    if let Some(max) = limits.consecutive {
        text += &format!(".consecutive({max})");
    }
    if let Some(max) = limits.failing_for {
        text += &format!(".failing_for({})", time(max));
    }
    if let Some(what) = options.on_exhausted {
        text += &format!(".on_exhausted({})", exhausted(what));
    }
    if let Some(fallback) = kid.replacement() {
        text += &format!(".fallback({})", script(fallback));
    }
    if options.on_message {
        text += ".on_message()";
    }
    if options.delays_traffic {
        text += ".delays_traffic()";
    }
    if options.fails_unhealthy {
        text += ".fails_unhealthy()";
    }
    if kid.silent {
        text += ".silent()";
    }
    if options.significant {
        text += ".significant()";
    }
    for required in &kid.requires {
        text += &format!(".requires({required:?})");
    }
    text
}
