//! Reloads of the configuration file.

use crate::program::{Service, changed, request};

#[test]
fn a_policy_and_an_own_setting_change_while_the_service_runs() {
    let mut service = Service::start();
    let old = r#"backoff = { curve = "exponential", min = "200ms", max = "30s" }"#;
    let new = r#"backoff = { curve = "constant", delay = "50ms", jitter = "none" }"#;
    service.configure(&[(old, new), ("max_note = 4096", "max_note = 3")]);

    service.signal("HUP");

    let reloaded = service.line("reloaded");
    assert_eq!(reloaded["fields"]["changes"], 6, "{reloaded}");
    service.line("~ web/http/listener  config.max_note  4096 → 3  live  web.toml:8");
    service.line(
        r#"~ web/storage/database  restart.backoff.curve  "exponential" → "constant"  at the next failure  web.toml:22"#,
    );
    assert_eq!(request(&service.http, "POST /notes", "four").0, 413);
    assert_eq!(request(&service.http, "POST /notes", "one").0, 201);
    std::fs::remove_file(service.file("web.db")).unwrap();
    let restarting = service.line("restarting");
    let fields = &restarting["fields"];
    assert_eq!(
        (&fields["child"], &fields["delay"]),
        (&"web/storage/database".into(), &"50ms".into())
    );
}

#[test]
fn a_file_with_a_mistake_changes_nothing() {
    let mut service = Service::start();
    service.configure(&[("max_note = 4096", "max_note = 3"), (r#""30days""#, r#""0s""#)]);

    service.signal("HUP");

    let refused = service.line("refused");
    assert_eq!(refused["fields"]["child"], "web/storage/cleanup");
    assert_eq!(
        refused["fields"]["problem"],
        r#"`keep` is "0s", which deletes every note; write keep = "30days", for example"#
    );
    service.line("configuration not changed");
    assert_eq!(request(&service.http, "POST /notes", "four").0, 201);
    assert!(changed(&[]).contains("max_note = 4096"));
}
