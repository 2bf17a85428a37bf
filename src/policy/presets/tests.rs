use super::*;
use crate::policy::RestartPolicy;

#[test]
fn all_and_the_list_of_names_agree() {
    assert_eq!(Preset::all().map(|preset| preset.name), NAMES);
}

#[test]
fn a_preset_is_parsed_from_its_name() {
    for name in NAMES {
        let preset: Preset = name.parse().expect("a preset");
        assert_eq!(preset.name(), *name);
    }
    let unknown = "erlang".parse::<Preset>().unwrap_err().to_string();
    assert!(unknown.contains("erlang") && unknown.contains("otp"), "{unknown}");
}

/// The first four delays and a late one, if this is drawn for the jitter, and the time after which the backoff resets.
fn waits(preset: &Preset, drawn: f64) -> String {
    let mut waits = preset.backoff().delays().random(move || drawn);
    let mut next = |skipped| waits.nth(skipped).map_or("none".to_owned(), |it| format!("{it:?}"));
    let shown = [next(0), next(0), next(0), next(0), next(24)].join(" ");
    match preset.backoff().resets_after() {
        Some(life) => format!("{shown}, {life:?}"),
        None => shown,
    }
}

/// Whether the delays are these, if this is drawn for the jitter.
#[track_caller]
fn assert_waits(drawn: f64, expected: [(&str, &str); 14]) {
    let table = Preset::all().map(|preset| (preset.name(), waits(&preset, drawn)));
    assert_eq!(table.each_ref().map(|(name, waits)| (*name, waits.as_str())), expected);
}

#[test]
fn a_low_draw_gives_these_delays_of_each_preset() {
    let pekko = "3.15s 6.3s 12.6s 25.2s 31.5s, 3s";
    let none = "0ns 0ns 0ns 0ns 0ns, 10s";
    let expected = [
        ("actor_ts", "180ms 360ms 720ms 1.44s 9s, 200ms"),
        ("pekko_on_stop", pekko),
        ("pekko_on_failure", pekko),
        ("pekko_typed", "205ms 410ms 820ms 1.64s 10.25s, 5.1s"),
        ("xebia", "0ns 0ns 10ms 10ms 30ms"),
        ("signalpy", "1s 2s 4s 8s 60s, 60s"),
        ("elfo", "5s 10s 20s 30s 30s, 5s"),
        ("otp", none),
        ("elixir", none),
        ("suture", none),
        ("oversight", none),
        ("systemd", "100ms 100ms 100ms 100ms 100ms"),
        ("kubelet", "10s 20s 40s 80s 300s, 600.000000001s"),
        ("pebble", "512.5ms 1.025s 2.05s 4.1s 30.75s, 30s"),
    ];
    assert_waits(0.25, expected);
}

/// Only a high draw shows whether jitter that goes to both sides may exceed the maximum.
#[test]
fn a_high_draw_gives_these_delays_of_each_preset() {
    let pekko = "3.45s 6.9s 13.8s 27.6s 34.5s, 3s";
    let none = "0ns 0ns 0ns 0ns 0ns, 10s";
    let expected = [
        ("actor_ts", "220ms 440ms 880ms 1.76s 11s, 200ms"),
        ("pekko_on_stop", pekko),
        ("pekko_on_failure", pekko),
        ("pekko_typed", "215ms 430ms 860ms 1.72s 10.75s, 5.1s"),
        ("xebia", "10ms 30ms 70ms 70ms 1.27s"),
        ("signalpy", "1s 2s 4s 8s 60s, 60s"),
        ("elfo", "5s 10s 20s 30s 30s, 5s"),
        ("otp", none),
        ("elixir", none),
        ("suture", none),
        ("oversight", none),
        ("systemd", "100ms 100ms 100ms 100ms 100ms"),
        ("kubelet", "10s 20s 40s 80s 300s, 600.000000001s"),
        ("pebble", "537.5ms 1.075s 2.15s 4.3s 32.25s, 30s"),
    ];
    assert_waits(0.75, expected);
}

/// The limit for all children, the limit for each child, and what happens at a limit.
fn limits(preset: &Preset) -> String {
    let shown =
        |limit: Option<Intensity>| limit.map_or("any".to_owned(), |limit| limit.to_string());
    let of_each = preset.of_children().policy.limits.get();
    assert_eq!((of_each.consecutive, of_each.failing_for), (None, None));
    let (all, each) = (shown(preset.intensity), shown(of_each.intensity));
    let [below, at_root] = [false, true].map(|at_root| preset.on_exhausted(at_root).to_string());
    let at_root = if at_root == below { String::new() } else { format!(", {at_root} at the root") };
    format!("{all}, {each}, {below}{at_root}")
}

#[test]
fn each_preset_has_the_limits_of_its_system() {
    let unlimited = "any, any, escalate";
    for preset in Preset::all() {
        let expected = match preset.name() {
            "signalpy" => "any, restarts(3, 1m), escalate, park at the root",
            "otp" | "oversight" => "restarts(1, 5s), any, escalate",
            "elixir" => "restarts(3, 5s), any, escalate",
            "suture" => "decaying(5, 30s), any, pause 15s",
            "systemd" => "any, tumbling(4, 10s), park",
            _ => unlimited,
        };
        assert_eq!(limits(&preset), expected, "{}", preset.name());
    }
}

#[test]
fn each_preset_restarts_after_the_same_exits_as_its_system() {
    for preset in Preset::all() {
        let trigger = match preset.name() {
            "pekko_on_failure" => Trigger::failure()
                .on(ExitKind::ActivationFailed, OnExit::EndSupervisor)
                .on(ExitKind::Aborted, OnExit::EndSupervisor),
            "pekko_typed" | "systemd" => RestartType::Transient.into(),
            "elfo" => RestartType::Temporary.into(),
            "signalpy" => Trigger::from(RestartType::Transient)
                .activation_only()
                .on(ExitKind::Escalated, OnExit::Restart),
            _ => RestartType::Permanent.into(),
        };
        assert_eq!(*preset.trigger(), trigger, "{}", preset.name());
    }
}

#[test]
fn the_options_for_children_are_the_trigger_and_the_backoff() {
    for preset in Preset::all() {
        let RestartPolicy { restart, backoff, .. } = preset.of_children().policy;
        assert_eq!(restart.as_ref(), Some(preset.trigger()), "{}", preset.name());
        assert_eq!(backoff.as_ref(), Some(preset.backoff()), "{}", preset.name());
    }
}

/// Whether a failed first start fails the start, failures before a child is active are always charged,
/// giving up is a clean exit, and how a message starts a temporary child again.
#[test]
fn first_start_charges_and_giving_up_of_each_preset() {
    for preset in Preset::all() {
        let (fails, counts, cleanly) = match preset.name() {
            "otp" | "elixir" => (true, true, true),
            "suture" | "oversight" => (false, true, false),
            _ => (false, false, false),
        };
        let first = if fails { FirstStart::Fail } else { FirstStart::Retry };
        let found = (preset.first_start, preset.count_failed_starts, preset.gives_up_cleanly);
        assert_eq!(found, (first, counts, cleanly), "{}", preset.name());
        let revival = match preset.name() {
            "otp" | "elixir" => Revival::Never,
            "elfo" => Revival::AtOnce,
            _ => Revival::AfterBackoff,
        };
        assert_eq!(preset.revival, revival, "{}", preset.name());
    }
}

/// Whether the first restart is at once, and the first one after a reset.
#[test]
fn each_preset_restarts_at_once_when_its_system_does() {
    for preset in Preset::all() {
        let expected = match preset.name() {
            "kubelet" => (true, true),
            "elfo" => (false, true),
            _ => (false, false),
        };
        let backoff = preset.backoff();
        let found = (backoff.is_at_once(false), backoff.is_at_once(true));
        assert_eq!(found, expected, "{}", preset.name());
    }
}

/// Whether the backoff resets by calls or acknowledgements, and not by time.
#[test]
fn the_presets_that_reset_by_a_call_or_an_acknowledgement() {
    for preset in Preset::all() {
        let rules = [Reset::Manual, Reset::OnAck].map(|rule| preset.backoff().resets_on(rule));
        let expected = [preset.name() == "systemd", preset.name() == "xebia"];
        assert_eq!(rules, expected, "{}", preset.name());
    }
}
