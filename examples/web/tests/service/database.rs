//! What happens to the service when something happens to its database.

use std::fs;

use rusqlite::Connection;

use crate::program::{Service, directory, free_ports, request};

/// Locks the database until the connection is dropped.
fn lock(service: &Service) -> Connection {
    let connection = Connection::open(service.file("web.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

#[test]
fn a_locked_database_is_503_and_not_ready_until_it_is_unlocked_and_restarts_nothing() {
    let mut service = Service::start();
    let locked = lock(&service);

    let (status, answer) = request(&service.http, "POST /notes", "one");
    assert_eq!(status, 503);
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(answer.ends_with("the database is busy: database is locked\n"), "{answer}");
    let unhealthy = service.line("unhealthy");
    assert_eq!(unhealthy["fields"]["child"], "web/storage/database");
    let (status, reason) = request(&service.probes, "GET /readyz", "");
    assert_eq!(status, 503);
    assert!(reason.contains("web/storage/database: active, unhealthy: "), "{reason}");
    assert_eq!(request(&service.probes, "GET /livez", "").0, 200);
    // Readers don't need the lock.
    assert_eq!(request(&service.http, "GET /notes", "").0, 200);

    drop(locked);

    service.line("healthy again");
    assert_eq!(request(&service.probes, "GET /readyz", "").0, 200);
    assert_eq!(request(&service.http, "POST /notes", "one").0, 201);
    assert!(!service.read.iter().any(|line| line["fields"]["message"] == "restarting"));
}

#[test]
fn a_deleted_database_is_created_anew_and_the_listener_goes_on() {
    let mut service = Service::start();
    assert_eq!(request(&service.http, "POST /notes", "lost").0, 201);

    fs::remove_file(service.file("web.db")).unwrap();

    let restarting = service.line("restarting");
    assert_eq!(restarting["fields"]["child"], "web/storage/database");
    assert_eq!(restarting["fields"]["cause"], "failed: web.db was deleted or replaced");
    service.line_where("active", |line| {
        line["child"] == "web/storage/cleanup" && line["incarnation"] == 2
    });
    let (status, answer) = request(&service.http, "POST /notes", "kept");
    assert_eq!(status, 201);
    assert!(answer.ends_with(r#"{"id":1,"text":"kept"}"#), "{answer}");
    let stored = Connection::open(service.file("web.db")).unwrap();
    let text: String = stored.query_row("SELECT text FROM notes", [], |row| row.get(0)).unwrap();
    assert_eq!(text, "kept");
    let (_, metrics) = request(&service.metrics, "GET /metrics", "");
    assert!(metrics.contains("verger_starts_total{path=\"web/http/listener\"} 1\n"), "{metrics}");
}

/// Runs with `WEB_OUTAGE=1`, because it waits for delays that add up to a minute.
#[test]
fn a_database_whose_directory_is_away_for_twenty_seconds_ends_nothing() {
    if std::env::var_os("WEB_OUTAGE").is_none() {
        return;
    }
    let dir = directory();
    // No value but those of the code.
    fs::write(dir.path().join("web.toml"), "").unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    let mut service = Service::start_in(dir, &["--database", "data/web.db"]);
    assert_eq!(request(&service.http, "POST /notes", "kept").0, 201);

    fs::rename(service.file("data"), service.file("away")).unwrap();

    // The seven delays before it are 25.4 s at least.
    service.line_where("restarting", |line| {
        line["child"] == "web/storage/database" && line["attempt"] == 8
    });
    assert_eq!(request(&service.probes, "GET /readyz", "").0, 503);
    assert_eq!(request(&service.probes, "GET /livez", "").0, 200);
    fs::rename(service.file("away"), service.file("data")).unwrap();

    // The eighth is 30 s at most.
    service.line_where("active", |line| {
        line["child"] == "web/storage/cleanup" && line["incarnation"] == 2
    });
    let (status, notes) = request(&service.http, "GET /notes", "");
    assert_eq!(status, 200);
    assert!(notes.contains("kept"), "{notes}");
    assert_eq!(request(&service.probes, "GET /readyz", "").0, 200);
    let (_, metrics) = request(&service.metrics, "GET /metrics", "");
    assert!(metrics.contains("verger_starts_total{path=\"web/http/listener\"} 1\n"), "{metrics}");
    assert!(!service.read.iter().any(|line| line["fields"]["message"] == "giving up"));
}

#[test]
fn a_file_that_is_no_database_ends_the_service_and_is_left_alone() {
    let dir = directory();
    let notes = "these are my notes, and not a database, whatever the flag says";
    fs::write(dir.path().join("notes.txt"), notes).unwrap();
    let path = dir.path().join("notes.txt");

    let service = Service::spawn(dir, &[&free_ports()[..], &["--database", "notes.txt"]].concat());

    let kept = fs::read_to_string(&path);
    let end = service.end();
    assert_eq!(end.code, Some(1), "{end:#?}");
    assert!(end.errors.contains("web/storage/database"), "{}", end.errors);
    assert!(end.errors.contains("file is not a database"), "{}", end.errors);
    assert_eq!(kept.unwrap(), notes);
}
