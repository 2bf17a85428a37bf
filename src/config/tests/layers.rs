//! Sections in TOML: the layers that they become.

use std::time::Duration;

use super::merged;
use crate::config::{Config, Section};
use crate::policy::{
    AutoShutdown, Backoff, FailureLog, Intensity, Jitter, LogLevel, OnExhausted, OnLeak, Preset,
    RestartPolicy, RestartType, Shutdown, Start, Strategy,
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Returns the section of a path in a valid file.
fn section(text: &str, path: &str) -> Section {
    let config = Config::from_toml(text, "feed.toml");
    config.check().expect(text);
    Section::read(&merged(&config, path), path).expect(text)
}

/// Returns the policy of a table `restart`.
fn policy(restart: &str) -> RestartPolicy {
    section(&format!("[a.restart]\n{restart}"), "a").child.policy
}

#[test]
fn the_configuration_of_elfo_loads_literally() {
    let text = r#"
[group_a.system.restart_policy]
when = "Never"
[group_b.system.restart_policy]
when = "Always"
min_backoff = "5s"
max_backoff = "30s"
factor = "2.0"
max_retries = "20"
auto_reset = "5s"
[group_c]
"#;
    let never = RestartPolicy::new().restart(RestartType::Temporary);
    assert_eq!(section(text, "group_a").child.policy, never);
    let always = RestartPolicy::new()
        .restart(RestartType::Permanent)
        .backoff(Preset::elfo().backoff().clone())
        .consecutive_restarts(20)
        .on_exhausted(OnExhausted::StopChild);
    let section_b = section(text, "group_b");
    assert_eq!(section_b.child.policy, always);
    let places: Vec<_> =
        section_b.child.places.0.iter().map(|(key, at)| format!("{key} {at}")).collect();
    let expected = [
        "backoff feed.toml:6",
        "consecutive_restarts feed.toml:9",
        "on_exhausted feed.toml:9",
        "restart feed.toml:5",
    ];
    assert_eq!(places, expected);
    let section = section(text, "group_c");
    assert_eq!(section.child.policy, RestartPolicy::new());
    assert!(section.child.places.0.is_empty() && section.supervisor.places.0.is_empty());
}

#[test]
fn the_keys_of_elfo_have_their_meaning() {
    let elfo = |min, max| Backoff::exponential(min, max).jitter(Jitter::None).at_once_after_reset();
    let table = [
        ("when = \"OnFailure\"", RestartPolicy::new().restart(RestartType::Transient)),
        ("restart = \"on_failure\"", RestartPolicy::new().restart(RestartType::Transient)),
        (
            "min_backoff = \"1s\"\nmax_backoff = \"8s\"",
            RestartPolicy::new().backoff(elfo(secs(1), secs(8)).reset_after(secs(1))),
        ),
        (
            "min_backoff = \"1s\"\nmax_backoff = \"8s\"\nfactor = 3\nauto_reset = \"1m\"",
            RestartPolicy::new().backoff(elfo(secs(1), secs(8)).factor(3.0).reset_after(secs(60))),
        ),
        (
            "max_retries = 3",
            RestartPolicy::new().consecutive_restarts(3).on_exhausted(OnExhausted::StopChild),
        ),
        (
            "max_retries = 3\non_exhausted = \"park\"",
            RestartPolicy::new().consecutive_restarts(3).on_exhausted(OnExhausted::Park),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(policy(text), expected, "{text}");
    }
}

#[test]
fn restart_has_all_keys_of_a_policy() {
    let text = "when = { type = \"transient\", activation_only = \"true\" }\n\
                backoff = { min = \"200ms\", max = \"30s\", jitter = \"0.2\" }\n\
                intensity = { max = \"5\", half_life = \"30s\" }\n\
                consecutive_restarts = \"10\"\nfailing_for = \"1h\"\n\
                on_exhausted = { exit = \"3\" }\n\
                failure_log = { level = \"info\", critical = { level = \"error\", after = \"3\" } }";
    let trigger = crate::policy::Trigger::from(RestartType::Transient).activation_only();
    let expected = RestartPolicy::new()
        .restart(trigger)
        .backoff(Backoff::default())
        .intensity(Intensity::decaying(5.0, secs(30)))
        .consecutive_restarts(10)
        .failing_for(secs(3_600))
        .on_exhausted(OnExhausted::Exit(3))
        .failure_log(FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3));
    assert_eq!(policy(text), expected);
    let unlimited = RestartPolicy::new().unlimited_restarts().consecutive_restarts(3);
    assert_eq!(
        policy("unlimited_restarts = true\nmax_retries = 3\non_exhausted = \"park\""),
        unlimited.on_exhausted(OnExhausted::Park)
    );
    let forever = RestartPolicy::new().own_restarts(5, Duration::MAX);
    assert_eq!(policy("own_restarts = { max = 5, period = \"infinity\" }"), forever);
}

#[test]
fn all_values_of_a_section_are_read_with_their_places() {
    let text = "[a]\nstrategy = \"rest_for_one\"\nauto_shutdown = \"any_significant\"\n\
                start = \"concurrent\"\nmax_restarts = \"5\"\nperiod = \"60s\"\n\
                on_exhausted = \"park\"\nleak_timeout = \"1s\"\nstop_deadline = \"0s\"\n\
                max_children = \"7\"\nenabled = \"false\"\nrestart = \"never\"\n\
                shutdown = \"brutal_kill\"\nactivation_timeout = \"2s\"\nwatchdog = \"3s\"\n\
                on_leak = \"park\"\n[a.config]\nx = 1\n";
    let Section { child, supervisor } = section(text, "a");
    assert_eq!(child.enabled, Some(false));
    assert_eq!(child.policy, RestartPolicy::new().restart(RestartType::Temporary));
    assert_eq!(child.shutdown, Some(Shutdown::BrutalKill));
    assert_eq!(child.activation_timeout, Some(secs(2)));
    assert_eq!(child.watchdog, Some(secs(3)));
    assert_eq!(child.on_leak, Some(OnLeak::Park));
    assert_eq!(supervisor.strategy, Some(Strategy::RestForOne));
    assert_eq!(supervisor.auto_shutdown, Some(AutoShutdown::AnySignificant));
    assert_eq!(supervisor.start, Some(Start::Concurrent));
    assert_eq!(supervisor.intensity, Some(Some(Intensity::sliding(5, secs(60)))));
    assert_eq!(supervisor.on_exhausted, Some(OnExhausted::Park));
    assert_eq!(supervisor.leak_timeout, Some(secs(1)));
    assert_eq!(supervisor.stop_deadline, Some(Duration::ZERO));
    assert_eq!(supervisor.max_children, Some(7));
    let lines = |places: &crate::policy::Places| -> Vec<String> {
        let lines = places.iter();
        lines.map(|(key, at)| format!("{key}{}", at.trim_start_matches("feed.toml"))).collect()
    };
    let expected = [
        "activation_timeout:14",
        "enabled:11",
        "on_leak:16",
        "restart:12",
        "shutdown:13",
        "watchdog:15",
    ];
    assert_eq!(lines(&child.places.0), expected);
    let expected = [
        "auto_shutdown:3",
        "intensity:5",
        "leak_timeout:8",
        "max_children:10",
        "on_exhausted:7",
        "start:4",
        "stop_deadline:9",
        "strategy:2",
    ];
    assert_eq!(lines(&supervisor.places.0), expected);
}

#[test]
fn a_limit_replaces_one_beneath_that_is_written_differently() {
    let text = "[common]\nmax_restarts = 1\nperiod = \"1s\"\n[common.restart]\nwhen = \"never\"\n\
                min_backoff = \"1s\"\nmax_backoff = \"2s\"\nmax_retries = 3\n\
                [\"app/a\"]\nunlimited_restarts = true\n[\"app/a\".restart]\nrestart = \"always\"\n\
                backoff = { curve = \"none\" }\nconsecutive_restarts = 4\n[\"app/b\"]\n\
                system.restart_policy.when = \"Always\"\n[\"app/c\"]\nrestart = \"always\"\n";
    let a = section(text, "a");
    assert_eq!(a.supervisor.intensity, Some(None));
    let always = RestartPolicy::new().restart(RestartType::Permanent);
    let expected = always.clone().backoff(Backoff::none()).consecutive_restarts(4);
    assert_eq!(a.child.policy, expected);
    let b = section(text, "b");
    assert_eq!(b.supervisor.intensity, Some(Some(Intensity::sliding(1, secs(1)))));
    let backoff = Backoff::exponential(secs(1), secs(2))
        .jitter(Jitter::None)
        .reset_after(secs(1))
        .at_once_after_reset();
    let expected = always.clone().backoff(backoff);
    let expected = expected.consecutive_restarts(3).on_exhausted(OnExhausted::StopChild);
    assert_eq!(b.child.policy, expected);
    assert_eq!(section(text, "c").child.policy, always, "a word replaces the table beneath");
}

#[test]
fn a_word_in_the_middle_also_replaces_the_table_beneath_it() {
    let text = "[common.restart]\nwhen = \"always\"\nfailing_for = \"1h\"\n[\"app/*\"]\n\
                restart = \"never\"\n[\"app/a\"]\nrestart = { consecutive_restarts = 1 }\n";
    let expected = RestartPolicy::new().consecutive_restarts(1);
    assert_eq!(section(text, "a").child.policy, expected, "nothing of the common table");
}

#[test]
fn a_date_is_a_text() {
    let config = Config::from_toml("[a.config]\nday = 1979-05-27\n", "feed.toml");
    let config = merged(&config, "a");
    assert_eq!(config.get("config").unwrap().to_string(), "{ day = \"1979-05-27\" }");
}
