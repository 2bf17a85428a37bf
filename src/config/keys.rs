//! The names of the keys that sections have.

use std::sync::LazyLock;

use crate::policy::OPTIONS;

/// The keys that only supervisors have.
static OF_SUPERVISORS: LazyLock<Vec<&str>> = LazyLock::new(|| of(true));
/// The keys of children, which supervisors are as well.
static OF_CHILDREN: LazyLock<Vec<&str>> = LazyLock::new(|| of(false));

/// The keys below `restart`.
pub(super) const OF_RESTART: [&str; 19] = [
    "when",
    "restart",
    "min_backoff",
    "max_backoff",
    "factor",
    "auto_reset",
    "max_retries",
    "backoff",
    "own_restarts",
    "consecutive_restarts",
    "failing_for",
    "failure_log",
    "curve",
    "min",
    "max",
    "delay",
    "jitter",
    "reset_after",
    "attempts",
];

/// Returns the keys of supervisors, and those of children.
pub(crate) fn keys() -> (&'static [&'static str], &'static [&'static str]) {
    (&OF_SUPERVISORS, &OF_CHILDREN)
}

fn of(supervisors: bool) -> Vec<&'static str> {
    let options = OPTIONS.iter().filter(|it| it.of.is_of_supervisor() == supervisors);
    options.map(|option| option.key).collect()
}
