//! Backoffs in files.

use proptest::prelude::*;
use serde_json::json;

use super::properties::{jitters, sensible};
use super::*;

fn read(text: &str) -> Result<Backoff, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
}

#[test]
fn a_backoff_is_read_from_a_table() {
    let table = [
        (r#"curve = "none""#, Backoff::none()),
        (
            r#"curve = "constant"
            delay = "5s""#,
            Backoff::constant(secs(5)),
        ),
        (
            r#"min = "200ms"
            max = "30s"
            jitter = 0.2"#,
            Backoff::default(),
        ),
        (
            r#"curve = "linear"
            min = "1s"
            max = "1m"
            reset_after = "2m"
            jitter = "full""#,
            Backoff::linear(secs(1), secs(1), secs(60)).jitter(Jitter::Full).reset_after(secs(120)),
        ),
        (
            r#"curve = "geometric"
            min = "2s"
            max = "16s"
            steps = 3
            jitter = { additive_abs = "1s" }
            soft_cap = true
            reset = ["on_ready", { half_life = "10s" }]"#,
            Backoff::geometric(secs(2), secs(16), 3)
                .jitter(Jitter::AdditiveAbs(secs(1)))
                .soft_cap()
                .reset(Reset::OnReady)
                .reset(Reset::Decay { half_life: secs(10) }),
        ),
        (
            r#"curve = "binary_slots"
            slot = "10ms"
            stay_at_ceiling = true"#,
            Backoff::binary_slots(BinarySlots::new(ms(10)).stay_at_ceiling()),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(read(text), Ok(expected), "{text}");
    }
}

#[test]
fn changing_one_bound_in_a_file_keeps_the_jitter() {
    assert_eq!(read("min = '200ms'\nmax = '1m'"), Ok(Backoff::exponential(ms(200), secs(60))));
    let jitter = |text: &str| read(&format!("min = '1s'\nmax = '9s'\n{text}")).unwrap().jitter;
    assert_eq!(jitter(""), Jitter::Additive(0.2));
    assert_eq!(jitter("curve = 'linear'"), Jitter::Additive(0.2));
    assert_eq!(jitter("curve = 'fibonacci'"), Jitter::Additive(0.2));
    assert_eq!(jitter("curve = 'geometric'\nsteps = 3"), Jitter::Additive(0.2));
    assert_eq!(read("curve = 'constant'\ndelay = '5s'").unwrap().jitter, Jitter::None);
}

#[test]
fn a_jitter_of_zero_in_a_file_removes_it() {
    for none in ["jitter = 0", "jitter = 0.0", "jitter = 'none'"] {
        let backoff = read(&format!("min = '1s'\nmax = '9s'\n{none}")).unwrap();
        assert_eq!(backoff, Backoff::exponential(secs(1), secs(9)).jitter(Jitter::None));
        let written = toml::to_string(&backoff).unwrap();
        assert_eq!(read(&written), Ok(backoff), "{written}");
    }
}

#[test]
fn errors_say_what_to_write() {
    let table = [
        (
            r#"curve = "quadratic""#,
            "unknown backoff curve `quadratic`; write `none`, `constant`, `linear`, \
             `exponential`, `geometric`, `fibonacci` or `binary_slots`",
        ),
        (
            r#"curve = "custom""#,
            "unknown backoff curve `custom`; write `none`, `constant`, `linear`, \
             `exponential`, `geometric`, `fibonacci` or `binary_slots`",
        ),
        (r#"min = "1s""#, "the curve `exponential` needs `max`; write max = \"5s\", for example"),
        (
            r#"curve = "linear"
            min = "1s"
            max = "9s"
            factor = 2.0"#,
            "the curve `linear` has no `factor`; it takes `min`, `step`, `max`",
        ),
        (
            r#"curve = "none"
            min = "1s""#,
            "the curve `none` has no `min`; it takes nothing",
        ),
        (
            r#"min = "9s"
            max = "1s""#,
            "`max` of the backoff is 1s; write at least `min`, which is 9s",
        ),
        (
            r#"min = 5
            max = "9s""#,
            "invalid type: integer `5`, expected a duration with a unit in quotes, such as \
             \"5s\" or \"1m 30s\"",
        ),
        (
            r#"curve = "none"
            jitter = "wide""#,
            "unknown jitter `wide`; write `symmetric`, `additive`, `additive_abs`, `none`, `full` \
             or `equal`",
        ),
        (
            r#"curve = "none"
            jitter = 2"#,
            "`jitter` of the backoff is 2; write a fraction from 0 to 1, such as 0.2",
        ),
        (
            r#"curve = "none"
            jitter = { additive = 0.1, symmetric = 0.1 }"#,
            "`additive` and `symmetric` exclude each other; remove one",
        ),
        (
            r#"curve = "none"
            reset = ["soon"]"#,
            "unknown reset `soon`; write `never`, `manual`, `on_ready`, `on_ack`, `active_for` \
             or `half_life`",
        ),
        (
            r#"curve = "none"
            reset = ["never", "on_ready"]"#,
            "`reset` of the backoff is `never` with other rules; remove `never`, or the other rules",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(read(text), Err(expected.to_owned()), "{text}");
    }
    let unknown = read("curv = \"none\"").unwrap_err();
    assert!(unknown.starts_with("unknown field `curv`, expected one of `curve`, "), "{unknown}");
}

/// A quoted number is not a number: the error names the position in the file and the type.
#[test]
fn seed4_26_numbers_are_numbers_and_not_strings() {
    let error = read("min = \"1s\"\nmax = \"9s\"\nfactor = \"2.0\"").unwrap_err();
    assert_eq!(error, "invalid type: string \"2.0\", expected f64");
}

#[test]
fn a_custom_curve_is_written_as_its_name_only() {
    let own = Backoff::iter(|| [ms(1)]);
    assert_eq!(serde_json::to_value(&own).unwrap(), json!({ "curve": "iterator" }));
}

#[test]
fn every_setting_of_a_backoff_is_written() {
    let slots = BinarySlots::new(ms(10));
    let table = [
        (Backoff::none(), json!({ "curve": "none" })),
        (Backoff::constant(secs(5)), json!({ "curve": "constant", "delay": "5s" })),
        (
            Backoff::linear(secs(1), secs(2), secs(9)),
            json!({
                "curve": "linear", "min": "1s", "step": "2s", "max": "9s",
                "jitter": { "additive": 0.2 },
            }),
        ),
        (
            Backoff::exponential(secs(1), secs(9)).jitter(Jitter::Equal).soft_cap(),
            json!({
                "curve": "exponential", "min": "1s", "max": "9s", "factor": 2.0,
                "jitter": "equal", "soft_cap": true,
            }),
        ),
        (
            Backoff::geometric(secs(1), secs(9), 4).jitter(Jitter::None).first_at_once(),
            json!({
                "curve": "geometric", "min": "1s", "max": "9s", "steps": 4, "jitter": "none",
                "first_at_once": true,
            }),
        ),
        (
            Backoff::fibonacci(secs(1), secs(9)).reset(Reset::OnAck),
            json!({
                "curve": "fibonacci", "min": "1s", "max": "9s", "jitter": { "additive": 0.2 },
                "reset": ["on_ack"],
            }),
        ),
        (
            Backoff::binary_slots(slots),
            json!({ "curve": "binary_slots", "slot": "10ms", "ceiling": 10 }),
        ),
        (
            Backoff::binary_slots(slots.ceiling(4).stay_at_ceiling()),
            json!({
                "curve": "binary_slots", "slot": "10ms", "ceiling": 4, "stay_at_ceiling": true,
            }),
        ),
    ];
    for (backoff, expected) in table {
        assert_eq!(serde_json::to_value(&backoff).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Backoff>(expected).unwrap(), backoff);
    }
}

#[test]
fn a_whole_number_can_be_a_fraction() {
    let jitter = |value| serde_json::from_value::<Jitter>(value).unwrap();
    assert_eq!([jitter(json!(0)), jitter(json!(1))], [Jitter::None, Jitter::Additive(1.0)]);
    assert_eq!(jitter(json!(-1)), Jitter::Additive(-1.0), "to be refused by its value");
    let read = |text| read(text).unwrap().jitter;
    assert_eq!([read("min = '1s'\nmax = '9s'\njitter = 1")], [Jitter::Additive(1.0)]);
}

#[test]
fn a_jitter_without_a_value_is_a_word() {
    for (jitter, word) in [(Jitter::None, "none"), (Jitter::Full, "full"), (Jitter::Equal, "equal")]
    {
        assert_eq!(serde_json::to_value(jitter).unwrap(), word);
        assert_eq!(serde_json::from_value::<Jitter>(word.into()).unwrap(), jitter);
    }
}

#[test]
fn an_error_about_the_type_of_a_value_lists_the_valid_forms() {
    let jitter = serde_json::from_value::<Jitter>(json!(true)).unwrap_err().to_string();
    let expected = "invalid type: boolean `true`, expected a jitter: a fraction such as 0.2, `full`, \
                    `equal`, `none`, or a table with `symmetric`, `additive` or `additive_abs`";
    assert_eq!(jitter, expected);
    let reset = serde_json::from_value::<Reset>(json!(true)).unwrap_err().to_string();
    let expected = "invalid type: boolean `true`, expected `never`, `manual`, `on_ready`, `on_ack`, \
                    or a table with `active_for` or `half_life`";
    assert_eq!(reset, expected);
}

fn resets() -> impl Strategy<Value = Vec<Reset>> {
    let rule = prop_oneof![
        Just(Reset::Manual),
        Just(Reset::OnReady),
        Just(Reset::OnAck),
        (0..9_000_u64).prop_map(|life| Reset::ActiveFor(ms(life))),
        (1..9_000_u64).prop_map(|half_life| Reset::Decay { half_life: ms(half_life) }),
    ];
    prop_oneof![Just(vec![Reset::Never]), proptest::collection::vec(rule, 0..3)]
}

proptest! {
    #![proptest_config(crate::random_cases::cases(64))]

    #[test]
    fn what_is_written_is_read_unchanged(
        shape in sensible(),
        jitter in jitters(0.0..=1.0),
        [first, soft, floor, at_once, after_reset]: [bool; 5],
        cap in proptest::option::of(200_000_u64..300_000),
        resets in resets(),
    ) {
        let mut backoff = Backoff::with(shape).jitter(jitter);
        (backoff.jitter_first, backoff.soft_cap, backoff.hard_floor) = (first, soft, floor);
        (backoff.first_at_once, backoff.at_once_after_reset) = (at_once, after_reset);
        backoff.cap = cap.map(ms);
        backoff.resets = resets;
        let text = toml::to_string(&backoff).unwrap();
        prop_assert_eq!(read(&text).unwrap(), backoff, "{}", text);
    }
}
