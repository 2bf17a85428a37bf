//! What a peer can't do: shut other peers out, take the memory, or use a name that isn't its own.

use std::fs::OpenOptions;
use std::io::Write;

use crate::feed::{Peer, Place, wait_until};

#[test]
fn a_health_answer_costs_storage_nothing() {
    let place = Place::new(b"");
    let feed = place.start("--follow");
    assert_eq!(feed.get("/healthz").0, "HTTP/1.1 200 OK");
    let lock = place.lock();
    let mut peer = feed.connect();
    peer.send(b"mill/1 x\n");

    wait_until(|| feed.get("/healthz").0 != "HTTP/1.1 200 OK");
    for _ in 0..1_100 {
        let (status, reason) = feed.get("/healthz");
        assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
        assert!(reason.contains("lines are waiting"), "{reason}");
    }

    drop(lock);
    assert_eq!(peer.answer(), "ok mill/1");
    wait_until(|| feed.get("/healthz").0 == "HTTP/1.1 200 OK");
    feed.signal("TERM");
    let end = feed.end();
    end.assert_kept(1);
    assert_eq!(end.get("dead_letters"), 0);
}

#[test]
fn the_names_of_the_built_in_clients_are_reserved() {
    let place = Place::new(b"");
    let feed = place.start("--follow --clients 1 --rate 0");
    let mut peer = feed.connect();

    peer.send(b"builtin-1/1 forged\nbuiltin-9/1 forged\nbuiltin-1/1001 forged\n");

    for _ in 0..3 {
        assert!(peer.answer().contains("names that begin with `builtin-` are reserved"));
    }
    feed.stored(1_000);
    feed.signal("TERM");
    feed.end().assert_kept(1_000);
}

#[test]
fn unfinished_lines_of_all_connections_together_are_bounded() {
    let place = Place::new(b"");
    let feed = place.start("--follow");
    let line = vec![b'x'; 1_900_000];

    let peers: Vec<Peer> = (0..60)
        .map(|_| {
            let mut peer = feed.connect();
            peer.try_send(&line);
            peer
        })
        .collect();
    // 64 MiB are enough for 37 such lines.
    wait_until(|| peers.iter().filter(|peer| peer.was_answered()).count() >= 20);

    let mut honest = feed.connect();
    honest.send(b"mill/1 x\n");
    assert_eq!(honest.answer(), "ok mill/1");
    if let Some(most) = feed.most_memory() {
        assert!(most < 160 << 20, "{most} bytes");
    }
    feed.signal("TERM");
    feed.end().assert_kept(1);
}

#[test]
fn silent_connections_make_room_for_one_that_has_lines() {
    let place = Place::new(b"");
    let feed = place.start("--follow --connections 4");
    let _silent: Vec<Peer> = (0..12).map(|_| feed.connect()).collect();

    let mut honest = feed.connect();
    honest.send(b"mill/1 x\n");
    assert_eq!(honest.answer(), "ok mill/1");
    let _more: Vec<Peer> = (0..3).map(|_| feed.connect()).collect();
    honest.send(b"mill/2 y\n");
    assert_eq!(honest.answer(), "ok mill/2");

    feed.signal("TERM");
    feed.end().assert_kept(2);
}

#[test]
fn silent_connections_leave_files_open_for_http_and_lines() {
    let place = Place::new(b"");
    let feed = place.start_with_files(160, "--follow --connections 32");
    let _silent: Vec<_> = (0..100).map(|_| feed.connect()).collect();
    let _mute: Vec<_> = (0..200).map(|_| feed.connect_http()).collect();

    assert_eq!(feed.get("/healthz").0, "HTTP/1.1 200 OK");
    let mut peer = feed.connect();
    peer.send(b"mill/1 x\n");
    assert_eq!(peer.answer(), "ok mill/1");

    feed.signal("TERM");
    feed.end().assert_kept(1);
}

#[test]
fn a_limit_of_open_files_that_is_too_low_is_refused() {
    let place = Place::new(b"");
    let mut command = place.command_with_files(160, "");

    let output = command.output().unwrap();

    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("608 files may be open at once, but the limit is 160"), "{error}");
}

#[test]
fn a_rotated_file_is_read_to_its_end_and_then_its_successor() {
    let place = Place::new(b"a\nb\n");
    let rotated = place.dir().join("input.1");
    let feed = place.start("--follow --rate 0");
    feed.stored(2);
    std::fs::rename(place.file(), &rotated).unwrap();
    OpenOptions::new().append(true).open(&rotated).unwrap().write_all(b"c\nd").unwrap();
    feed.stored(3);
    std::fs::write(place.file(), "e\nf\n").unwrap();
    feed.stored(6);

    feed.signal("TERM");

    feed.end().assert_kept(6);
    assert_eq!(place.texts("file"), [b"a", b"b", b"c", b"d", b"e", b"f"]);
}

#[test]
fn a_file_that_was_rotated_between_two_starts_is_followed_from_its_beginning() {
    let place = Place::new(b"a\nb\n");
    place.run("--rate 0").assert_kept(2);
    for (n, text) in [(3, "c\n"), (5, "d and\nsomething longer\n")] {
        std::fs::remove_file(place.file()).unwrap();
        std::fs::write(place.file(), text).unwrap();
        let refused = place.command("").output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "without --follow: {refused:?}");

        let feed = place.start("--follow --rate 0");
        feed.stored(text.lines().count() as u64);
        feed.signal("TERM");

        feed.end().assert_kept(n);
    }
}
