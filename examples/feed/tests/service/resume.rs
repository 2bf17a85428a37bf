//! A second start continues where the first one ended, however it ended.

use std::fs::OpenOptions;
use std::io::Write;

use crate::feed::{Place, awkward};

#[test]
fn after_a_kill_the_next_start_goes_on() {
    let place = Place::new(&awkward(4_000));
    for _ in 0..3 {
        let feed = place.start("--rate 4000 --clients 2");
        feed.stored(500);
        feed.kill();
    }

    place.run("--chaos --seed 5 --rate 0 --clients 2").assert_kept(6_000);
}

#[test]
fn a_second_start_on_a_finished_database_stores_nothing_more() {
    let place = Place::new(&awkward(1_000));
    place.run("--rate 0 --clients 1").assert_kept(2_000);

    place.run("--rate 0 --clients 1").assert_kept(2_000);
    place.run("--rate 0").assert_kept(2_000);
}

#[test]
fn a_file_that_has_grown_is_read_on_and_its_last_line_again() {
    let place = Place::new(b"a\nb");
    place.run("--rate 0").assert_kept(2);

    for (more, texts) in [
        ("b", &["a", "bb"][..]),
        ("\n", &["a", "bb"]),
        ("c\n\n", &["a", "bb", "c", ""]),
        ("d", &["a", "bb", "c", "", "d"]),
    ] {
        OpenOptions::new()
            .append(true)
            .open(place.file())
            .unwrap()
            .write_all(more.as_bytes())
            .unwrap();

        place.run("--rate 0").assert_kept(texts.len());

        assert!(
            place.texts("file").iter().eq(texts.iter().map(|text| text.as_bytes())),
            "{more:?}"
        );
    }
}

#[test]
fn an_external_sender_may_repeat_lines_across_starts() {
    let place = Place::new(b"");
    let feed = place.start("--follow");
    let mut peer = feed.connect();
    peer.send(b"mill/1 first\n");
    assert_eq!(peer.answer(), "ok mill/1");
    feed.kill();

    let feed = place.start("--follow");
    let mut peer = feed.connect();
    peer.send(b"mill/1 another\nmill/2 second\n");
    assert_eq!([peer.answer(), peer.answer()], ["ok mill/1", "ok mill/2"]);
    feed.signal("TERM");

    feed.end().assert_kept(2);
    assert_eq!(place.texts("mill"), [&b"first"[..], b"second"]);
}
