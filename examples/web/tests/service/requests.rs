//! A failing request, and what the other parts notice of it.

use crate::program::{Service, request};

#[test]
fn a_panic_in_a_handler_is_answered_with_500_and_the_service_goes_on() {
    let mut service = Service::start();
    assert_eq!(request(&service.http, "POST /panic", "").0, 404);
    service.configure(&[("break_it = false", "break_it = true")]);
    service.signal("HUP");
    service.line("reloaded");

    assert_eq!(request(&service.http, "POST /panic", "").0, 500);

    let panicked = service.line("panicked");
    let fields = &panicked["fields"];
    let child = fields["child"].as_str().unwrap();
    assert!(child.starts_with("web/http/connections/connection#"), "{child}");
    assert_eq!(fields["panic"], "broken on purpose");
    assert!(fields["location"].as_str().unwrap().contains("src/http/routes.rs:"), "{fields}");
    let (status, note) = request(&service.http, "POST /notes", "after the panic");
    assert_eq!(status, 201);
    assert!(note.ends_with(r#"{"id":1,"text":"after the panic"}"#), "{note}");
    let (_, metrics) = request(&service.metrics, "GET /metrics", "");
    assert!(metrics.contains("web_requests_total{status=\"500\"} 1\n"), "{metrics}");
    assert!(metrics.contains("verger_starts_total{path=\"web/http/listener\"} 1\n"), "{metrics}");
    let mut restarts = metrics.lines().filter(|line| line.starts_with("verger_restarts_total{"));
    assert!(restarts.all(|line| line.ends_with(" 0")), "{metrics}");
}

#[test]
fn the_page_of_the_service_and_its_limits() {
    let service = Service::start();

    assert_eq!(request(&service.http, "GET /", "").0, 200);
    assert_eq!(request(&service.http, "GET /nothing", "").0, 404);
    assert_eq!(request(&service.http, "POST /notes", &"x".repeat(4096)).0, 201);
    assert_eq!(request(&service.http, "POST /notes", &"x".repeat(4097)).0, 413);
    let (status, notes) = request(&service.http, "GET /notes", "");
    assert_eq!((status, notes.matches("\"id\"").count()), (200, 1));
}
