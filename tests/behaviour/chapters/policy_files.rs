//! The table of mistakes in the chapter *Policies in files of your own*.

mod mistakes {
    use verger::policy::RestartPolicy;

    fn told(text: &str) -> String {
        let error = toml::from_str::<RestartPolicy>(text).unwrap_err();
        error.message().to_owned()
    }

    #[test]
    fn a_mistake_is_answered_with_what_to_write() {
        let mistakes = [
            (
                r#"backoff = { min = "9s", max = "1s" }"#,
                "`max` of the backoff is 1s; write at least `min`, which is 9s",
            ),
            (
                r#"backoff = { min = 5, max = "9s" }"#,
                "invalid type: integer `5`, expected a duration with a unit in quotes, such as \
         \"5s\" or \"1m 30s\"",
            ),
            (
                r#"backoff = { curve = "linear", min = "1s", max = "9s", factor = 2.0 }"#,
                "the curve `linear` has no `factor`; it takes `min`, `step`, `max`",
            ),
            ("own_restarts = { max = 5 }", "missing field `period`"),
            (
                r#"intensity = { max = -1, period = "60s" }"#,
                "a `period` counts whole restarts, and `max` is -1; write max = 1, or a `half_life` \
         instead of the `period`",
            ),
            (
                r#"on_exhausted = "pause""#,
                "`pause` needs a value; write { pause = \"15s\" }, for example",
            ),
            (
                r#"restart = { on_error = [{ error = "std::io::Error", then = "leave" }] }"#,
                "`on_error` can't be read from a file, because a predicate about errors is code; \
         remove it, and call `Trigger::on_error` where the child is described",
            ),
            (
                r#"restart = "sometimes""#,
                "unknown restart type `sometimes`; write `permanent`, `always`, `transient`, \
         `on_failure`, `temporary`, `never`, `no`, `on_stop`, `on_success`, `on_abnormal`, \
         `on_abort` or `on_watchdog`",
            ),
        ];
        for (text, answer) in mistakes {
            assert_eq!(told(text), answer);
        }
    }
}
