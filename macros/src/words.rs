//! The words in quotes that stand for values, as in `restart = "transient"`.

use crate::paths::{self, Item};

/// The words for the variants of one type.
#[derive(Debug)]
pub(crate) struct WordTable {
    pub(crate) ty: Item,
    /// What one of them is called in an error.
    pub(crate) noun: Option<&'static str>,
    /// Each word with its variant. Synonyms come last.
    pub(crate) words: &'static [(&'static str, &'static str)],
    /// An expression for the values that have no word.
    pub(crate) expression: Option<&'static str>,
}

impl WordTable {
    /// Returns the variant that a word stands for.
    pub(crate) fn variant(&self, word: &str) -> Option<&'static str> {
        self.words.iter().find(|(known, _)| *known == word).map(|(_, variant)| *variant)
    }

    pub(crate) fn all(&self) -> Vec<&'static str> {
        self.words.iter().map(|(word, _)| *word).collect()
    }
}

const fn table(
    ty: Item,
    noun: Option<&'static str>,
    words: &'static [(&'static str, &'static str)],
) -> WordTable {
    WordTable { ty, noun, words, expression: None }
}

pub(crate) const STRATEGY: WordTable = table(
    paths::STRATEGY,
    Some("strategy"),
    &[("one_for_one", "OneForOne"), ("one_for_all", "OneForAll"), ("rest_for_one", "RestForOne")],
);

pub(crate) const AUTO_SHUTDOWN: WordTable = table(
    paths::AUTO_SHUTDOWN,
    Some("auto-shutdown"),
    &[
        ("never", "Never"),
        ("any_significant", "AnySignificant"),
        ("all_significant", "AllSignificant"),
    ],
);

pub(crate) const START: WordTable =
    table(paths::START, None, &[("sequential", "Sequential"), ("concurrent", "Concurrent")]);

pub(crate) const FIRST_START: WordTable =
    table(paths::FIRST_START, None, &[("retry", "Retry"), ("fail", "Fail")]);

pub(crate) const ON_EXHAUSTED: WordTable = WordTable {
    ty: paths::ON_EXHAUSTED,
    noun: None,
    words: &[("escalate", "Escalate"), ("park", "Park"), ("stop_child", "StopChild")],
    expression: Some("OnExhausted::Pause(Duration::from_secs(15))"),
};

pub(crate) const RESTART: WordTable = table(
    paths::RESTART_TYPE,
    Some("restart type"),
    &[
        ("permanent", "Permanent"),
        ("transient", "Transient"),
        ("temporary", "Temporary"),
        ("always", "Permanent"),
        ("on_failure", "Transient"),
        ("never", "Temporary"),
        ("no", "Temporary"),
        ("on_stop", "OnStop"),
        ("on_success", "OnSuccess"),
        ("on_abnormal", "OnAbnormal"),
        ("on_abort", "OnAbort"),
        ("on_watchdog", "OnWatchdog"),
    ],
);

pub(crate) const SHUTDOWN: WordTable = table(
    paths::SHUTDOWN,
    Some("shutdown"),
    &[("brutal_kill", "BrutalKill"), ("infinity", "Infinity")],
);

pub(crate) const READINESS: WordTable =
    table(paths::READINESS, Some("readiness"), &[("on_start", "OnStart"), ("signal", "Signal")]);

pub(crate) const ON_LEAK: WordTable =
    table(paths::ON_LEAK, None, &[("restart", "Restart"), ("park", "Park")]);
