//! The keys of a file: which part of the program reads each of them, and an example of its value.
//!
//! An error about a value ends with its example, so that it says what to write instead.

/// A key, and an example of what is written for it.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) example: &'static str,
}

const fn key(name: &'static str, example: &'static str) -> Key {
    Key { name, example }
}

/// Keys of `[run]`.
pub(crate) const RUN: [Key; 4] = [
    key("console", r#"console = "127.0.0.1:7007""#),
    key("console_actions", "console_actions = true"),
    key("probes", r#"probes = "127.0.0.1:8080""#),
    key("shutdown", r#"shutdown = "20s""#),
];

/// Keys of a process that say what it is.
pub(crate) const PROCESS: [Key; 8] = [
    key("command", r#"command = ["sleep", "10"]"#),
    key("directory", r#"directory = "/srv/web""#),
    key("environment", r#"environment = { PORT = "8080" }"#),
    key("health", r#"health = { command = ["pg_isready"], interval = "10s" }"#),
    key("ready", r#"ready = { line = "listening" } or ready = { port = 8080 }"#),
    key("requires", r#"requires = ["db"]"#),
    key("stop_signal", r#"stop_signal = "SIGINT""#),
    key("success_exit_codes", "success_exit_codes = [2]"),
];

/// Keys of a process that verger's own configuration reads: when it is restarted, and how it is stopped.
#[rustfmt::skip]
pub(crate) const POLICY: [&str; 7] =
    ["activation_timeout", "enabled", "on_leak", "restart", "run_time_limit", "shutdown", "watchdog"];

/// Keys of the table `restart`, which are often written one level too high.
pub(crate) const RESTART: [&str; 7] =
    ["backoff", "intensity", "max_backoff", "min_backoff", "on_exhausted", "own_restarts", "when"];

/// Returns an example for the value at a path, such as `process.web.health.interval`.
pub(crate) fn example(path: &str) -> &'static str {
    let mut parts = path.split('.');
    let (keys, name) = match parts.next() {
        Some("run") => (&RUN[..], parts.next()),
        _ => (&PROCESS[..], parts.nth(1)),
    };
    let found = keys.iter().find(|key| Some(key.name) == name);
    found.unwrap_or(&keys[0]).example
}

/// Returns the names of the keys of a process.
pub(crate) fn of_process() -> impl Iterator<Item = &'static str> {
    PROCESS.iter().map(|key| key.name).chain(POLICY)
}
