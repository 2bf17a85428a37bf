//! Configurations in formats other than TOML.

use super::merged;
use crate::config::{Config, Section};

#[test]
fn a_configuration_is_read_from_json() {
    let json = r#"{
        "common": { "shutdown": "1s", "watchdog": null },
        "app/a": { "restart": "sometimes", "config": { "x": 1 } },
        "app/b": { "enabled": "no" },
        "strategy": "x"
    }"#;
    let config: Config = serde_json::from_str(json).unwrap();
    let error = config.check().unwrap_err();
    let expected = "unknown restart type `sometimes`; write `permanent`, `always`, `transient`, \
                    `on_failure`, `temporary`, `never`, `no`, `on_stop`, `on_success`, `on_abnormal`, \
                    `on_abort` or `on_watchdog`
   key: \"app/a\".restart

invalid type: string \"no\", expected `true` or `false`
   key: \"app/b\".enabled

`strategy` is a value outside of a section; write it below the path of a child, such as \
                    [\"app/ingest\"], or below [common]
   key: strategy";
    assert_eq!(error.to_string(), expected);
    assert_eq!(format!("{error:?}"), expected);
    let mistake = &error.mistakes()[0];
    assert_eq!((mistake.file(), mistake.line(), mistake.column()), (None, None, None));
    assert_eq!(mistake.key(), "\"app/a\".restart");
    let shown = format!("{config:?}");
    assert_eq!(shown, "Config { common: true, sections: [\"app/a\", \"app/b\"], mistakes: 1 }");
    assert!(serde_json::from_str::<Config>("[]").is_err());
    assert!(Config::new().check().is_ok());
}

#[test]
fn a_mistake_of_the_common_values_is_reported_once() {
    let json = r#"{ "common": { "restart": "x", "foo": 1 }, "a": {}, "b": { "restart": "y" } }"#;
    let config: Config = serde_json::from_str(json).unwrap();
    let error = config.check().unwrap_err();
    let keys: Vec<_> = error.mistakes().iter().map(|mistake| mistake.key()).collect();
    assert_eq!(keys, ["b.restart", "common.foo", "common.restart"]);
}

#[test]
fn sections_are_found_with_the_roots_name_and_without_it() {
    let json = r#"{
        "common": { "shutdown": "1s", "max_restarts": 1, "period": "1s" },
        "app": { "strategy": "one_for_all", "unlimited_restarts": true },
        "*": { "shutdown": "2s", "enabled": false },
        "app/a": { "shutdown": "3s" },
        "b/c": {},
        "apple": {}
    }"#;
    let config: Config = serde_json::from_str(json).unwrap();
    config.check().unwrap();
    let sections = config.sections("app").0;
    assert_eq!(sections.keys().copied().collect::<Vec<_>>(), ["", "*", "a", "apple", "b/c"]);
    assert_eq!(sections["a"].key, "app/a");
    assert!(sections["a"].location.is_none() && sections["a"].node.table().is_some());
    let merged = |path: &str| {
        let node = merged(&config, path);
        let section = Section::read(&node, path).unwrap();
        let intensity = section.supervisor.intensity.map(|it| it.map(|it| it.max()));
        (section.child.shutdown.unwrap().to_string(), section.child.enabled, intensity)
    };
    assert_eq!(merged(""), ("1s".into(), None, Some(None)), "the root has no pattern above it");
    assert_eq!(merged("a"), ("3s".into(), Some(false), Some(Some(1))));
    assert_eq!(merged("new"), ("2s".into(), Some(false), Some(Some(1))));
    assert_eq!(merged("b/c"), ("1s".into(), None, Some(Some(1))));
    assert_eq!(config.common.at("shutdown").unwrap().to_string(), "\"1s\"");
}

#[test]
fn a_path_that_is_written_twice_is_a_mistake() {
    let config: Config = serde_json::from_str(r#"{ "app/a": {}, "a": {} }"#).unwrap();
    let mistakes = config.sections("app").1;
    let expected = "`app/a` and `a` are the same path, because the root is `app`; write one section with \
                    the values of both\n   key: \"app/a\"";
    assert_eq!(mistakes[0].to_string(), expected);
    assert_eq!(mistakes.len(), 1);
    assert!(config.sections("other").1.is_empty());
}

#[test]
fn a_drain_replaces_a_grace_of_a_lower_section_and_a_grace_a_drain() {
    let json = r#"{
        "common": { "shutdown": "1s" },
        "a/*": { "drain": "2s" },
        "a/b": { "shutdown": "3s" }
    }"#;
    let config: Config = serde_json::from_str(json).unwrap();
    config.check().unwrap();
    let shutdown = |path: &str| {
        let section = Section::read(&merged(&config, path), path).unwrap();
        section.child.shutdown.unwrap().to_string()
    };
    assert_eq!([shutdown("c"), shutdown("a/new"), shutdown("a/b")], ["1s", "drain 2s", "3s"]);
}
