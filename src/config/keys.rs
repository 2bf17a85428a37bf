//! The names of the keys that sections have.

/// The keys that only supervisors have.
pub(super) const SUPERVISOR_KEYS: [&str; 12] = [
    "strategy",
    "auto_shutdown",
    "start",
    "max_restarts",
    "period",
    "intensity",
    "unlimited_restarts",
    "count_failed_starts",
    "on_exhausted",
    "leak_timeout",
    "stop_deadline",
    "max_children",
];

/// The keys of children, which supervisors are as well.
pub(super) const CHILD_KEYS: [&str; 8] = [
    "enabled",
    "restart",
    "shutdown",
    "activation_timeout",
    "watchdog",
    "run_time_limit",
    "on_leak",
    "config",
];

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
    (&SUPERVISOR_KEYS, &CHILD_KEYS)
}
