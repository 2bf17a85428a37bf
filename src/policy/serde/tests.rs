//! Policies in files: how they are read and written, and the errors about mistakes.

use std::fmt::Debug;
use std::time::Duration;

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exit::ExitKind;
use crate::policy::{
    Backoff, FailureLog, Intensity, LogLevel, OnExhausted, OnExit, RestartPolicy, RestartType,
    Trigger,
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A value behind a key, since a file is a table.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct ValueFile<T> {
    it: T,
}

fn read<T: DeserializeOwned>(value: &str) -> Result<T, String> {
    let file = toml::from_str::<ValueFile<T>>(&format!("it = {value}"));
    file.map(|file| file.it).map_err(|error| error.message().to_owned())
}

fn error_of<T: DeserializeOwned + Debug>(value: &str) -> String {
    read::<T>(value).expect_err(value)
}

/// Asserts that the value can be read from what is written, in each format.
fn round<T: Clone + Debug + DeserializeOwned + PartialEq + Serialize>(it: &T) {
    let json = serde_json::to_string(it).unwrap();
    assert_eq!(serde_json::from_str::<T>(&json).as_ref().ok(), Some(it), "{json}");
    let text = toml::to_string(&ValueFile { it: it.clone() }).unwrap();
    assert_eq!(toml::from_str::<ValueFile<T>>(&text).unwrap().it, *it, "{text}");
}

#[test]
fn a_trigger_is_a_word_or_a_table() {
    let transient = || Trigger::from(RestartType::Transient);
    let table = [
        (r#""transient""#, transient()),
        (r#""on_failure""#, transient()),
        (r#"{ type = "transient" }"#, transient()),
        (r#"{}"#, Trigger::any()),
        (r#"{ activation_only = true }"#, Trigger::any().activation_only()),
        (
            r#"{ type = "transient", on_exit = { panicked = "fail_supervisor", hung = "leave" } }"#,
            transient()
                .on(ExitKind::Panicked, OnExit::FailSupervisor)
                .on(ExitKind::Hung, OnExit::Leave),
        ),
    ];
    for (text, trigger) in table {
        assert_eq!(read(text), Ok(trigger), "{text}");
    }
}

#[test]
fn a_trigger_is_written_in_its_shortest_form() {
    let json = |trigger: Trigger| serde_json::to_value(trigger).unwrap();
    assert_eq!(json(Trigger::any()), "permanent");
    assert_eq!(
        json(Trigger::stop().activation_only()),
        serde_json::json!({ "type": "on_stop", "activation_only": true }),
    );
    assert_eq!(
        json(Trigger::any().leave_down_if(|_: &std::io::Error| true)),
        serde_json::json!({
            "type": "permanent",
            "on_error": [{ "error": "std::io::error::Error", "then": "leave" }],
        }),
    );
}

#[test]
fn errors_about_a_trigger_say_what_to_write() {
    let known = "write `permanent`, `always`, `transient`";
    let error = error_of::<Trigger>(r#""Never""#);
    assert!(error.starts_with(&format!("unknown restart type `Never`; {known}")), "{error}");
    let error = error_of::<Trigger>(r#"{ type = "x" }"#);
    assert!(error.starts_with(&format!("unknown restart type `x`; {known}")), "{error}");
    let error = error_of::<Trigger>(r#"{ on_exit = { panic = "leave" } }"#);
    let expected = "unknown kind of exit `panic`; write `normal`, `shutdown`, `failed`";
    assert!(error.starts_with(expected), "{error}");
    let table = [
        (
            r#"{ on_exit = { panicked = "ignore" } }"#,
            "unknown answer to an exit `ignore`; write `restart`, `restart_uncharged`, `leave`",
        ),
        (
            r#"{ on_error = [{ error = "std::io::Error", then = "leave" }] }"#,
            "`on_error` can't be read from a file, because a predicate about errors is code; \
             remove it, and call `Trigger::on_error` where the child is described",
        ),
        (
            r#"{ activation = true }"#,
            "unknown field `activation`, expected one of `type`, `activation_only`, `on_exit`, \
             `on_error`",
        ),
        (
            "5",
            "invalid type: integer `5`, expected a restart type such as \"transient\", or a table \
             such as { type = \"transient\", on_exit = { panicked = \"fail_supervisor\" } }",
        ),
    ];
    for (text, expected) in table {
        let error = error_of::<Trigger>(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn an_intensity_is_a_table() {
    let table = [
        (r#"{ max = 5, period = "60s" }"#, Intensity::sliding(5, secs(60))),
        (r#"{ max = 5, period = "60s", window = "sliding" }"#, Intensity::sliding(5, secs(60))),
        (r#"{ max = 5, period = "60s", window = "tumbling" }"#, Intensity::tumbling(5, secs(60))),
        (r#"{ max = 5, half_life = "30s" }"#, Intensity::decaying(5.0, secs(30))),
        (r#"{ max = 2.5, half_life = "30s" }"#, Intensity::decaying(2.5, secs(30))),
        (r#"{ max = 3.0, period = "60s" }"#, Intensity::sliding(3, secs(60))),
        (r#"{ max = 0, period = "infinity" }"#, Intensity::sliding(0, Duration::MAX)),
    ];
    for (text, intensity) in table {
        assert_eq!(read(text), Ok(intensity), "{text}");
    }
    let json = |intensity: Intensity| serde_json::to_value(intensity).unwrap();
    assert_eq!(
        json(Intensity::sliding(5, Duration::MAX)),
        serde_json::json!({ "max": 5, "period": "infinity" }),
    );
    assert_eq!(
        json(Intensity::tumbling(5, secs(60))),
        serde_json::json!({ "max": 5, "period": "1m", "window": "tumbling" }),
    );
    assert_eq!(
        json(Intensity::decaying(5.0, secs(30))),
        serde_json::json!({ "max": 5.0, "half_life": "30s" }),
    );
}

#[test]
fn errors_about_an_intensity_say_what_to_write() {
    let table = [
        ("{ max = 5 }", "an intensity needs a `period` or a `half_life`; write { max = 5, period"),
        (r#"{ period = "60s" }"#, "missing field `max`"),
        (
            r#"{ max = 5, period = "60s", half_life = "30s" }"#,
            "an intensity has a `period` or a `half_life`; remove one of them",
        ),
        (
            r#"{ max = 5, half_life = "30s", window = "tumbling" }"#,
            "an intensity with a `half_life` has no `window`; remove it",
        ),
        (
            r#"{ max = 5, period = "60s", window = "fixed" }"#,
            "unknown window `fixed`; write `sliding` or `tumbling`",
        ),
        (
            r#"{ max = 2.5, period = "60s" }"#,
            "a `period` counts whole restarts, and `max` is 2.5; write max = 2, or a `half_life` \
             instead of the `period`",
        ),
        (
            r#"{ max = -1, period = "60s" }"#,
            "a `period` counts whole restarts, and `max` is -1; write max = 1, or",
        ),
        (
            r#"{ max = -1, half_life = "60s" }"#,
            "`max` is -1, which isn't a valid score; write max = 5.0",
        ),
        (
            r#"{ max = "5", period = "60s" }"#,
            "invalid type: string \"5\", expected a number without quotes, such as 5",
        ),
        (
            r#"{ max = 5, period = "0s" }"#,
            "`period` is zero, so no restart would count; write period = \"60s\"",
        ),
        (
            r#"{ max = 5, half_life = "0s" }"#,
            "`half_life` is zero, so no restart would count; write half_life = \"60s\"",
        ),
        (
            r#"{ max = 5, period = "60" }"#,
            "`60` isn't a duration; write it with a unit, such as \"60s\"",
        ),
        (r#"{ max = 5, within = "60s" }"#, "unknown field `within`, expected one of `max`,"),
    ];
    for (text, expected) in table {
        let error = error_of::<Intensity>(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn on_exhausted_is_a_word_or_a_table_with_one_key() {
    let table = [
        (r#""escalate""#, OnExhausted::Escalate),
        (r#""park""#, OnExhausted::Park),
        (r#""stop_child""#, OnExhausted::StopChild),
        (r#"{ pause = "15s" }"#, OnExhausted::Pause(secs(15))),
        ("{ exit = 3 }", OnExhausted::Exit(3)),
    ];
    for (text, what) in table {
        assert_eq!(read(text), Ok(what), "{text}");
        round(&what);
    }
}

#[test]
fn errors_about_on_exhausted_say_what_to_write() {
    let table = [
        (
            r#""Park""#,
            "unknown answer to a limit `Park`; write `escalate`, `park`, `stop_child`, `remove`, `pause` or \
             `exit`",
        ),
        (r#""pause""#, "`pause` needs a value; write { pause = \"15s\" }, for example"),
        (r#""exit""#, "`exit` needs a value; write { exit = 3 }, for example"),
        ("{ park = true }", "`park` has no value; write \"park\" instead"),
        ("{}", "the table is empty; write { pause = \"15s\" }, for example"),
        (r#"{ pause = "0s" }"#, "the `pause` is zero; write { pause = \"15s\" }, for example"),
        (r#"{ exit = 3, pause = "15s" }"#, "`exit` and `pause` exclude each other; remove one"),
        ("{ exit = 300 }", "invalid value: integer `300`, expected u8"),
        ("{ wait = 3 }", "unknown answer to a limit `wait`; write `escalate`,"),
        (
            "3",
            "invalid type: integer `3`, expected \"escalate\", \"park\", \"stop_child\", \
             \"remove\", { pause = \"15s\" } or { exit = 3 }",
        ),
    ];
    for (text, expected) in table {
        let error = error_of::<OnExhausted>(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

fn policy(text: &str) -> Result<RestartPolicy, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
}

#[test]
fn a_policy_is_a_table_with_a_key_for_each_part() {
    let table = [
        ("", RestartPolicy::new()),
        (r#"restart = "never""#, RestartPolicy::new().restart(RestartType::Temporary)),
        (r#"backoff = { curve = "none" }"#, RestartPolicy::new().backoff(Backoff::none())),
        (
            r#"own_restarts = { max = 5, period = "60s" }"#,
            RestartPolicy::new().own_restarts(5, secs(60)),
        ),
        (
            r#"intensity = { max = 5, half_life = "30s" }"#,
            RestartPolicy::new().intensity(Intensity::decaying(5.0, secs(30))),
        ),
        ("consecutive_restarts = 3", RestartPolicy::new().consecutive_restarts(3)),
        (r#"failing_for = "1h""#, RestartPolicy::new().failing_for(secs(3600))),
        (r#"on_exhausted = "park""#, RestartPolicy::new().on_exhausted(OnExhausted::Park)),
        (
            r#"failure_log = { level = "info" }"#,
            RestartPolicy::new().failure_log(FailureLog::at(LogLevel::Info)),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(policy(text), Ok(expected), "{text}");
    }
}

#[test]
fn errors_about_a_policy_say_what_to_write() {
    let table = [
        (
            "max_retries = 5",
            "unknown field `max_retries`, expected one of `restart`, `backoff`, `own_restarts`, \
             `intensity`, `unlimited_restarts`, `consecutive_restarts`, `failing_for`, `on_exhausted`, \
             `failure_log`",
        ),
        ("own_restarts = { max = 5 }", "missing field `period`"),
        (
            "own_restarts = { max = 5, period = \"60s\" }\nintensity = { max = 5, period = \"60s\" }",
            "`own_restarts` and `intensity` set the same limit; remove one of them",
        ),
        (
            "own_restarts = { max = 5, period = \"60s\" }\nunlimited_restarts = true",
            "`unlimited_restarts` excludes `own_restarts` and `intensity`; remove one of them",
        ),
        (
            "own_restarts = { max = 5, period = \"0s\" }",
            "`period` is zero, so no restart would count; write period = \"60s\"",
        ),
        (
            "failing_for = \"0s\"",
            "`failing_for` is zero, so no failure would be followed by a restart; write failing_for = \
             \"60s\", or consecutive_restarts = 0",
        ),
        ("backoff = { curve = \"constant\" }", "the curve `constant` needs `delay`; write delay"),
        ("failure_log = { level = \"loud\" }", "unknown log level `loud`; write `trace`, `debug`"),
    ];
    for (text, expected) in table {
        let error = policy(text).expect_err(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

fn durations() -> impl Strategy<Value = Duration> {
    any::<Duration>().prop_filter("zero means nothing", |duration| !duration.is_zero())
}

fn triggers() -> impl Strategy<Value = Trigger> {
    let types = proptest::sample::select(RestartType::ALL);
    let kinds = proptest::sample::select(ExitKind::ALL);
    let exceptions = (kinds, proptest::sample::select(OnExit::ALL));
    let exceptions = proptest::collection::vec(exceptions, 0..4);
    (types, any::<bool>(), exceptions).prop_map(|(restart, activation_only, exceptions)| {
        let trigger = Trigger::from(restart);
        let trigger = if activation_only { trigger.activation_only() } else { trigger };
        exceptions.into_iter().fold(trigger, |trigger, (kind, then)| trigger.on(kind, then))
    })
}

fn intensities() -> impl Strategy<Value = Intensity> {
    let periods = prop_oneof![9 => durations(), 1 => Just(Duration::MAX)];
    prop_oneof![
        (any::<u32>(), periods.clone()).prop_map(|(max, period)| Intensity::sliding(max, period)),
        (any::<u32>(), periods).prop_map(|(max, period)| Intensity::tumbling(max, period)),
        // Quarters, because JSON rounds the last digit of most other fractions.
        (any::<u32>(), durations())
            .prop_map(|(max, half)| Intensity::decaying(f64::from(max) / 4.0, half)),
    ]
}

fn answers() -> impl Strategy<Value = OnExhausted> {
    prop_oneof![
        Just(OnExhausted::Escalate),
        Just(OnExhausted::Park),
        Just(OnExhausted::StopChild),
        durations().prop_map(OnExhausted::Pause),
        any::<u8>().prop_map(OnExhausted::Exit),
    ]
}

fn policies() -> impl Strategy<Value = RestartPolicy> {
    let log = FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3);
    (
        proptest::option::of(triggers()),
        proptest::option::of(Just(Backoff::default())),
        (proptest::option::of(intensities()), any::<bool>()),
        proptest::option::of(any::<u32>()),
        proptest::option::of(durations()),
        proptest::option::of(answers()),
        proptest::option::of(Just(log)),
    )
        .prop_map(|(restart, backoff, window, consecutive, failing, on_exhausted, log)| {
            let (intensity, unlimited) = window;
            let mut policy = RestartPolicy::new();
            (policy.restart, policy.backoff) = (restart, backoff);
            (policy.on_exhausted, policy.failure_log) = (on_exhausted, log);
            match intensity {
                Some(intensity) => policy.limits.intensity(intensity),
                None if unlimited => policy.limits.unlimited(),
                None => {}
            }
            consecutive.into_iter().for_each(|max| policy.limits.consecutive(max));
            failing.into_iter().for_each(|max| policy.limits.failing_for(max));
            policy
        })
}

proptest! {
    #![proptest_config(crate::random_cases::cases(64))]

    #[test]
    fn what_is_written_can_be_read(
        trigger in triggers(),
        intensity in intensities(),
        what in answers(),
        policy in policies(),
    ) {
        round(&trigger);
        round(&intensity);
        round(&what);
        round(&policy);
    }
}

#[test]
fn no_error_names_a_type_of_this_crate() {
    #[derive(Debug, Deserialize)]
    struct Policies {
        #[serde(rename = "backoff")]
        _backoff: Option<Backoff>,
        #[serde(rename = "intensity")]
        _intensity: Option<Intensity>,
        #[serde(rename = "policy")]
        _policy: Option<RestartPolicy>,
        #[serde(rename = "failure_log")]
        _failure_log: Option<FailureLog>,
    }

    let table = [
        ("backoff = 5", "expected a backoff such as { min = \"200ms\", max = \"30s\" }"),
        ("intensity = 5", "expected an intensity such as { max = 5, period = \"60s\" }"),
        ("policy = 5", "expected a table with a restart policy"),
        ("failure_log = 5", "expected a failure log such as { level = \"info\" }"),
        (
            "failure_log = { level = \"info\", critical = 5 }",
            "expected a level such as { level = \"error\", after = 3 }",
        ),
    ];
    for (text, expected) in table {
        let error = toml::from_str::<Policies>(text).expect_err(text).to_string();
        assert!(error.contains(&format!("invalid type: integer `5`, {expected}")), "{error}");
    }
}
