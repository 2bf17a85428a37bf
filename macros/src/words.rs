//! The words that stand for values, in quotes.

/// The words for the variants of a type.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) ty: &'static str,
    /// What a word stands for, if there is a word for that.
    pub(crate) what: Option<&'static str>,
    /// Each with its variant. Synonyms come last.
    pub(crate) words: &'static [(&'static str, &'static str)],
}

impl Words {
    /// The variant that a word stands for.
    pub(crate) fn variant(&self, word: &str) -> Option<&'static str> {
        self.words.iter().find(|(known, _)| *known == word).map(|(_, variant)| *variant)
    }

    /// The words alone.
    pub(crate) fn known(&self) -> Vec<&'static str> {
        self.words.iter().map(|(word, _)| *word).collect()
    }
}

pub(crate) const STRATEGY: Words = Words {
    ty: "Strategy",
    what: Some("strategy"),
    words: &[
        ("one_for_one", "OneForOne"),
        ("one_for_all", "OneForAll"),
        ("rest_for_one", "RestForOne"),
    ],
};

pub(crate) const AUTO_SHUTDOWN: Words = Words {
    ty: "AutoShutdown",
    what: Some("auto-shutdown"),
    words: &[
        ("never", "Never"),
        ("any_significant", "AnySignificant"),
        ("all_significant", "AllSignificant"),
    ],
};

pub(crate) const START: Words = Words {
    ty: "Start",
    what: None,
    words: &[("sequential", "Sequential"), ("concurrent", "Concurrent")],
};

pub(crate) const FIRST_START: Words =
    Words { ty: "FirstStart", what: None, words: &[("retry", "Retry"), ("fail", "Fail")] };

/// Those that are one word; see [`limits`](crate::limits) for the others.
pub(crate) const ON_EXHAUSTED: Words = Words {
    ty: "OnExhausted",
    what: None,
    words: &[("escalate", "Escalate"), ("park", "Park"), ("stop_child", "StopChild")],
};

/// Each is called like the function that makes it.
pub(crate) const PRESET: Words = Words {
    ty: "Preset",
    what: Some("preset"),
    words: &[
        ("otp", "otp"),
        ("elixir", "elixir"),
        ("actor_ts", "actor_ts"),
        ("pekko_on_stop", "pekko_on_stop"),
        ("pekko_on_failure", "pekko_on_failure"),
        ("pekko_typed", "pekko_typed"),
        ("xebia", "xebia"),
        ("signalpy", "signalpy"),
        ("elfo", "elfo"),
        ("suture", "suture"),
        ("oversight", "oversight"),
        ("systemd", "systemd"),
        ("kubelet", "kubelet"),
        ("pebble", "pebble"),
    ],
};

pub(crate) const RESTART: Words = Words {
    ty: "RestartType",
    what: Some("restart type"),
    words: &[
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
};

pub(crate) const SHUTDOWN: Words = Words {
    ty: "Shutdown",
    what: Some("shutdown"),
    words: &[("brutal_kill", "BrutalKill"), ("infinity", "Infinity")],
};

pub(crate) const READINESS: Words = Words {
    ty: "Readiness",
    what: Some("readiness"),
    words: &[("on_start", "OnStart"), ("signal", "Signal")],
};

pub(crate) const ON_LEAK: Words =
    Words { ty: "OnLeak", what: None, words: &[("restart", "Restart"), ("park", "Park")] };

pub(crate) const LOG_LEVEL: Words = Words {
    ty: "LogLevel",
    what: Some("log level"),
    words: &[
        ("trace", "Trace"),
        ("debug", "Debug"),
        ("info", "Info"),
        ("warn", "Warn"),
        ("error", "Error"),
    ],
};

/// The kinds that need nothing; see [`backoff`](crate::backoff) for the others.
pub(crate) const JITTER: Words = Words {
    ty: "Jitter",
    what: Some("jitter"),
    words: &[("none", "None"), ("full", "Full"), ("equal", "Equal")],
};

/// The rules that need nothing.
pub(crate) const RESET: Words = Words {
    ty: "Reset",
    what: Some("reset"),
    words: &[
        ("never", "Never"),
        ("by_hand", "ByHand"),
        ("on_ready", "OnReady"),
        ("on_ack", "OnAck"),
    ],
};
