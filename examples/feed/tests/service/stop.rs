//! A signal stops the service in order, and the audit covers what was accepted.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::feed::{Place, awkward, wait_until};

#[test]
fn a_signal_during_work_ends_the_service_in_order() {
    for signal in ["INT", "TERM"] {
        let place = Place::new(&awkward(50_000));
        let feed = place.start("--chaos --rate 2000 --clients 2");
        feed.stored(500);

        feed.signal(signal);

        let end = feed.end();
        let lines = end.get("lines") as usize;
        assert!((500..50_000).contains(&lines), "{lines}");
        end.assert_kept(lines);
        let stored: usize =
            ["file", "builtin-1", "builtin-2"].map(|s| place.texts(s).len()).iter().sum();
        assert_eq!(stored, lines);
    }
}

#[test]
fn a_followed_file_is_read_as_it_grows_line_by_line() {
    let place = Place::new(b"a\nb");
    let feed = place.start("--follow --rate 0");
    feed.stored(1);
    let mut file = OpenOptions::new().append(true).open(place.file()).unwrap();
    file.write_all(b"b\nc\nd").unwrap();
    feed.stored(3);

    feed.signal("INT");

    feed.end().assert_kept(3);
    assert_eq!(place.texts("file"), [&b"a"[..], b"bb", b"c"]);
}

#[test]
fn a_followed_file_that_shrinks_ends_it_with_the_reason() {
    let place = Place::new(b"a\nb\n");
    let feed = place.start("--follow --rate 0");
    feed.stored(2);
    OpenOptions::new().write(true).open(place.file()).unwrap().set_len(2).unwrap();

    let end = feed.end();

    assert_eq!((end.code, end.get("stored")), (Some(1), 2));
    let error = std::fs::read_to_string(place.errors()).unwrap();
    assert!(error.contains("4 bytes of the file are stored, but it has only 2"), "{error}");
}

#[test]
fn the_tree_is_shown_and_the_verdict_comes_last() {
    let end = Place::new(b"a\nb").run("--rate 0");

    for name in ["storage", "database", "writer", "ingest", "connections", "listener", "http"] {
        assert!(end.out.iter().any(|line| line.contains(name)), "{name}: {:#?}", end.out);
    }
    assert!(end.out.last().unwrap().starts_with("lines=2 stored=2 lost=0 duplicated=0 restarts=0"));
}

#[test]
fn behind_a_load_balancer_readiness_falls_before_the_first_connection_is_refused() {
    let place = Place::new(b"a\n");
    let feed = place.start("--follow --rate 0 --drain 2");
    wait_until(|| feed.probe("/readyz") == Some(200));
    assert_eq!([feed.probe("/startupz"), feed.probe("/livez")], [Some(200); 2]);

    feed.signal("TERM");

    wait_until(|| feed.probe("/readyz") == Some(503));
    let mut peer = feed.connect();
    peer.send(b"x/1 still taken\n");
    assert_eq!(peer.answer(), "ok x/1");
    assert_eq!(feed.probe("/livez"), Some(200), "it isn't restarted while it stops");
    let end = feed.end();
    end.assert_kept(2);
}

#[test]
fn seed4_49_the_second_signal_ends_the_service_at_once_and_the_next_start_keeps_everything() {
    for (first, second, code) in [("INT", "TERM", 143), ("TERM", "INT", 130)] {
        let place = Place::new(&awkward(5_000));
        let feed = place.start("--rate 2000 --drain 60");
        feed.stored(500);
        feed.signal(first);
        wait_until(|| feed.probe("/readyz") == Some(503));
        // A different signal within 100 ms of the first is its echo.
        let stopping = Instant::now();
        wait_until(|| stopping.elapsed() > Duration::from_millis(200));

        feed.signal(second);

        assert_eq!(feed.end().code, Some(code));
        place.run("--rate 0").assert_kept(5_000);
    }
}

#[test]
fn a_signal_during_the_start_ends_the_service_in_order() {
    let place = Place::new(&awkward(5_000));
    let feed = place.start("--rate 2000");

    feed.signal("TERM");

    let end = feed.end();
    end.assert_kept(usize::try_from(end.get("lines")).unwrap());
}

#[test]
fn a_service_that_is_stopped_for_a_while_by_the_system_goes_on_without_a_failure() {
    let place = Place::new(&awkward(5_000));
    let feed = place.start("--rate 2000");
    feed.stored(500);

    feed.signal("STOP");
    // The one thing that can't be waited for: that nothing happens.
    std::thread::sleep(Duration::from_secs(3));
    feed.signal("CONT");

    let end = feed.end();
    end.assert_kept(5_000);
    assert_eq!(end.get("restarts"), 0);
}
