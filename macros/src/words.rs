//! The words in quotes that stand for values, as in `restart = "transient"`.

/// The words for the variants of one type.
#[derive(Debug)]
pub(crate) struct WordTable {
    /// The type's path in verger.
    pub(crate) ty: &'static str,
    /// What one of them is called in an error.
    pub(crate) noun: Option<&'static str>,
    pub(crate) words: &'static [&'static str],
    /// Those of the words that aren't named like their variant, each with the word that is.
    synonyms: &'static [(&'static str, &'static str)],
    /// An expression for the values that have no word.
    pub(crate) expression: Option<&'static str>,
}

impl WordTable {
    /// Returns the variant that a word stands for.
    pub(crate) fn variant(&self, word: &str) -> Option<String> {
        let word = self.words.iter().find(|known| **known == word)?;
        let synonym = self.synonyms.iter().find(|(synonym, _)| synonym == word);
        let name = synonym.map_or(word, |(_, name)| name);
        Some(name.split('_').map(|part| part[..1].to_uppercase() + &part[1..]).collect())
    }
}

const fn table(
    ty: &'static str,
    noun: Option<&'static str>,
    words: &'static [&'static str],
) -> WordTable {
    WordTable { ty, noun, words, synonyms: &[], expression: None }
}

pub(crate) const STRATEGY: WordTable =
    table("Strategy", Some("strategy"), &["one_for_one", "one_for_all", "rest_for_one"]);

#[rustfmt::skip]
pub(crate) const AUTO_SHUTDOWN: WordTable =
    table("policy::AutoShutdown", Some("auto-shutdown"), &["never", "any_significant", "all_significant"]);

pub(crate) const START: WordTable = table("policy::Start", None, &["sequential", "concurrent"]);

pub(crate) const FIRST_START: WordTable = table("policy::FirstStart", None, &["retry", "fail"]);

pub(crate) const ON_EXHAUSTED: WordTable = WordTable {
    expression: Some("OnExhausted::Pause(Duration::from_secs(15))"),
    ..table("policy::OnExhausted", None, &["escalate", "park", "stop_child"])
};

#[rustfmt::skip]
pub(crate) const RESTART: WordTable = WordTable {
    synonyms: &[("always", "permanent"), ("on_failure", "transient"), ("never", "temporary"), ("no", "temporary")],
    ..table("RestartType", Some("restart type"), &[
        "permanent", "transient", "temporary", "always", "on_failure", "never", "no",
        "on_stop", "on_success", "on_abnormal", "on_abort", "on_watchdog",
    ])
};

pub(crate) const SHUTDOWN: WordTable =
    table("Shutdown", Some("shutdown"), &["brutal_kill", "infinity"]);

pub(crate) const READINESS: WordTable =
    table("Readiness", Some("readiness"), &["on_start", "signal"]);

pub(crate) const ON_LEAK: WordTable = table("policy::OnLeak", None, &["restart", "park"]);
