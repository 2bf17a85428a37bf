//! The options that can be written without the code, in a file or by a call: each is declared once, here.
//!
//! The keys of a section, where each is refused, the texts of a plan and when a value takes effect follow from this
//! table. Setters, fields and the types that read a file are written by hand, and one test holds them to the table
//! (`config::tests::options`). To add an option, add its row and follow the failures.
//!
//! # Invariants
//!
//! 1. The order is that of the fields of the type that reads a section: options of supervisors, then options of children.
//! 2. `text` returns a value in the words of a file, so that what a plan shows can be written.

use std::time::Duration;

use super::{ChildRules, Intensity, OnExhausted, Rules, Shutdown};
use crate::human_duration::HumanDuration;

/// One option.
#[derive(Clone, Copy)]
pub(crate) struct OptionInfo {
    /// The key in a section.
    pub(crate) key: &'static str,
    pub(crate) of: OptionOf,
    pub(crate) takes_effect: TakesEffect,
    pub(crate) text: OptionText,
}

/// What an option belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionOf {
    Supervisor,
    /// A supervisor whose children have an order.
    OrderedSupervisor,
    DynamicSupervisor,
    /// A child, which may be a supervisor.
    Child,
    /// A child that isn't a supervisor.
    Worker,
}

impl OptionOf {
    pub(crate) fn is_of_supervisor(self) -> bool {
        matches!(self, Self::Supervisor | Self::OrderedSupervisor | Self::DynamicSupervisor)
    }
}

/// When a new value decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakesEffect {
    /// Immediately, or from the next event on.
    Live,
    /// When the child fails, or is started for another reason.
    AtNextFailure,
}

/// How the value that applies is shown, in the words of a file. `None`: it isn't set, or has no short form.
#[derive(Clone, Copy)]
pub(crate) enum OptionText {
    OfSupervisor(fn(&Rules) -> Option<String>),
    OfChild(fn(&ChildRules) -> Option<String>),
}

use OptionOf::{Child, DynamicSupervisor, OrderedSupervisor, Supervisor, Worker};
use OptionText::{OfChild, OfSupervisor};
use TakesEffect::{AtNextFailure, Live};

/// See the [module](self).
pub(crate) const OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        key: "strategy",
        of: OrderedSupervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| word(rules.strategy)),
    },
    OptionInfo {
        key: "auto_shutdown",
        of: OrderedSupervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| word(rules.auto_shutdown)),
    },
    OptionInfo {
        key: "start",
        of: OrderedSupervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| word(rules.start)),
    },
    OptionInfo {
        key: "max_restarts",
        of: Supervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| Some(rules.intensity?.max().to_string())),
    },
    OptionInfo {
        key: "period",
        of: Supervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| period(rules.intensity?.period())),
    },
    OptionInfo {
        key: "intensity",
        of: Supervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| limit(rules.intensity?)),
    },
    OptionInfo {
        key: "unlimited_restarts",
        of: Supervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| {
            Some((rules.intensity.is_none() && rules.of_each.is_none()).to_string())
        }),
    },
    OptionInfo {
        key: "count_failed_starts",
        of: Supervisor,
        takes_effect: AtNextFailure,
        text: OfSupervisor(|rules| Some(rules.count_failed_starts.to_string())),
    },
    OptionInfo {
        key: "on_exhausted",
        of: Supervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| on_exhausted(rules.on_exhausted)),
    },
    OptionInfo {
        key: "leak_timeout",
        of: Supervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| duration(rules.leak_timeout)),
    },
    OptionInfo {
        key: "stop_deadline",
        of: Supervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| duration(rules.stop_deadline?)),
    },
    OptionInfo {
        key: "max_children",
        of: DynamicSupervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| Some(rules.max_children?.to_string())),
    },
    OptionInfo {
        key: "min_ready",
        of: DynamicSupervisor,
        takes_effect: Live,
        text: OfSupervisor(|rules| Some(rules.min_ready.to_string())),
    },
    OptionInfo {
        key: "enabled",
        of: Child,
        takes_effect: Live,
        text: OfChild(|_| Some("true".to_owned())),
    },
    OptionInfo {
        key: "restart",
        of: Child,
        takes_effect: AtNextFailure,
        text: OfChild(|rules| word(rules.restart_type())),
    },
    OptionInfo {
        key: "shutdown",
        of: Child,
        takes_effect: Live,
        text: OfChild(|rules| word(rules.shutdown)),
    },
    OptionInfo {
        key: "drain",
        of: Child,
        takes_effect: Live,
        text: OfChild(|rules| match rules.shutdown {
            Shutdown::Drain(grace) => duration(grace),
            _ => None,
        }),
    },
    OptionInfo {
        key: "activation_timeout",
        of: Child,
        takes_effect: AtNextFailure,
        text: OfChild(|rules| duration(rules.activation_timeout?)),
    },
    OptionInfo {
        key: "watchdog",
        of: Worker,
        takes_effect: Live,
        text: OfChild(|rules| duration(rules.watchdog?)),
    },
    OptionInfo {
        key: "run_time_limit",
        of: Child,
        takes_effect: Live,
        text: OfChild(|rules| duration(rules.run_time_limit?)),
    },
    OptionInfo {
        key: "on_leak",
        of: Child,
        takes_effect: AtNextFailure,
        text: OfChild(|rules| word(rules.on_leak)),
    },
    OptionInfo {
        key: "mailbox",
        of: Worker,
        takes_effect: Live,
        text: OfChild(|rules| Some(format!("{{ capacity = {} }}", rules.mailbox_capacity?))),
    },
    OptionInfo { key: "config", of: Child, takes_effect: Live, text: OfChild(|_| None) },
];

/// Returns the option with this key in a section.
pub(crate) fn option(key: &str) -> Option<&'static OptionInfo> {
    OPTIONS.iter().find(|option| option.key == key)
}

fn word(value: impl ToString) -> Option<String> {
    Some(format!("\"{}\"", value.to_string()))
}

fn duration(duration: Duration) -> Option<String> {
    word(HumanDuration(duration))
}

fn period(period: Duration) -> Option<String> {
    if period == Duration::MAX { word("infinity") } else { duration(period) }
}

fn limit(intensity: Intensity) -> Option<String> {
    let time = period(intensity.period())?;
    Some(match (intensity.decay(), intensity.slides()) {
        (Some((max, _)), _) => format!("{{ max = {max:?}, half_life = {time} }}"),
        (None, true) => format!("{{ max = {}, period = {time} }}", intensity.max()),
        (None, false) => {
            format!("{{ max = {}, period = {time}, window = \"tumbling\" }}", intensity.max())
        }
    })
}

fn on_exhausted(value: OnExhausted) -> Option<String> {
    match value {
        OnExhausted::Pause(length) => Some(format!("{{ pause = {} }}", duration(length)?)),
        OnExhausted::Exit(code) => Some(format!("{{ exit = {code} }}")),
        value => word(value),
    }
}
