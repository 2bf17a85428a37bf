//! The stop: readiness falls first, an open stream doesn't delay it, and it ends within its bound.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::program::{Service, request, send};

/// `at_most` of the line `time for a stop`, and the exit grace.
const BOUND: Duration = Duration::from_secs(26 + 2);

#[test]
fn a_stop_with_an_open_stream_ends_in_its_bound_and_readiness_falls_first() {
    let mut service = Service::start();
    assert_eq!(service.line("time for a stop")["fields"]["at_most"], "26s");
    let mut stream = BufReader::new(send(&service.http, "GET /events", ""));
    let mut read_to = |text: &str| {
        let mut line = String::new();
        while line != text {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "no {text:?}");
        }
    };
    read_to("\r\n");
    assert_eq!(request(&service.http, "POST /notes", "one").0, 201);
    read_to("event: note\n");
    read_to("data: one\n");

    let began = Instant::now();
    service.signal("TERM");
    service.line_where("stage begins", |line| line["stage"] == "drain");

    let (status, reason) = request(&service.probes, "GET /readyz", "");
    assert_eq!(status, 503);
    assert!(reason.ends_with("web: active, about to stop\n"), "{reason}");
    assert_eq!(request(&service.probes, "GET /livez", "").0, 200);
    // The listener is still open, for requests that the load balancer has sent already.
    assert_eq!(request(&service.http, "POST /notes", "two").0, 201);
    read_to("data: two\n");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("\r\n0\r\n\r\n"), "the stream ends in order: {rest:?}");
    let end = service.end();
    assert_eq!((end.code, end.errors.as_str()), (Some(0), ""));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    let stages = end.lines.iter().filter(|line| line["fields"]["message"] == "stage begins");
    let stages: Vec<_> = stages.map(|line| line["fields"]["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["drain", "polite"]);
    let warnings = end.lines.iter().filter(|line| line["level"] != "INFO").count();
    assert_eq!(warnings, 0, "{:#?}", end.lines);
}

#[test]
fn a_client_that_never_ends_its_request_does_not_keep_the_service_from_ending() {
    let mut service = Service::start();
    let mut slow = TcpStream::connect(&service.http).unwrap();
    slow.write_all(b"POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhal").unwrap();
    let mut silent = TcpStream::connect(&service.http).unwrap();
    // Both are accepted before this one.
    assert_eq!(request(&service.http, "GET /", "").0, 200);

    service.signal("TERM");

    let closed = "connection closed, because its request was still open";
    service.line(closed);
    assert_eq!((slow.read(&mut [0]).unwrap(), silent.read(&mut [0]).unwrap()), (0, 0));
    let end = service.end();
    assert_eq!(end.code, Some(0), "{end:#?}");
}
