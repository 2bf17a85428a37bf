//! Lines over TCP, and the views over HTTP.

use crate::feed::{Place, awkward};

#[test]
fn a_line_is_answered_when_it_is_stored() {
    let place = Place::new(b"");
    let feed = place.start("--follow");
    let mut peer = feed.connect();

    for (n, text) in [&b"plain"[..], b"", b" ", b"\xff\0", b"cr\r", b"plain"].iter().enumerate() {
        let n = n + 1;
        peer.send(&[format!("eu/mill/{n} ").as_bytes(), text, b"\n"].concat());
        assert_eq!(peer.answer(), format!("ok eu/mill/{n}"));
        assert_eq!(place.texts("eu/mill").last().unwrap(), text);
    }

    feed.signal("INT");
    feed.end().assert_kept(6);
}

#[test]
fn a_megabyte_and_a_thousand_lines_at_once_are_answered_in_order() {
    let place = Place::new(b"");
    let feed = place.start("--follow");
    let mut peer = feed.connect();
    let large = vec![b'x'; 1 << 20];

    let mut lines = [b"mill/1 ", &large[..], b"\n"].concat();
    for n in 2..=1_000 {
        lines.extend_from_slice(format!("mill/{n} {n}\n").as_bytes());
    }
    peer.send(&lines);

    for n in 1..=1_000 {
        assert_eq!(peer.answer(), format!("ok mill/{n}"));
    }
    assert_eq!(place.texts("mill")[0], large);
}

#[test]
fn a_repeated_identity_is_answered_and_stores_nothing() {
    let place = Place::new(b"");
    let feed = place.start("--follow");
    let (mut one, mut other) = (feed.connect(), feed.connect());

    one.send(b"mill/1 x\nmill/1 y\n");
    assert_eq!([one.answer(), one.answer()], ["ok mill/1", "ok mill/1"]);
    other.send(b"mill/1 z\n");
    assert_eq!(other.answer(), "ok mill/1");

    feed.signal("INT");
    feed.end().assert_kept(1);
    assert_eq!(place.texts("mill"), [b"x"]);
}

#[test]
fn an_invalid_line_is_refused_and_the_next_one_is_stored() {
    let place = Place::new(b"");
    let feed = place.start("--follow");
    let mut peer = feed.connect();

    for line in [&b"\n"[..], b"mill/1\n", b"mill/0 x\n", b"mill x\n", b"file/1 x\n", b"\xff/1 x\n"]
    {
        peer.send(line);
        assert!(peer.answer().starts_with("error "), "{line:?}");
    }
    peer.send(b"mill/1 x\nmill/2 cut off");
    peer.finish();

    assert_eq!(peer.answer(), "ok mill/1");
    assert_eq!(peer.answer(), "error the last line has no newline and was not stored");
    assert_eq!(peer.answer(), "", "closed");
    feed.signal("INT");
    feed.end().assert_kept(1);
}

#[test]
fn the_views_show_tree_and_counters() {
    let place = Place::new(&awkward(100));
    let feed = place.start("--follow --chaos --seed 9");
    feed.stored(99);

    let (status, tree) = feed.get("/tree");
    assert_eq!(status, "HTTP/1.1 200 OK");
    let tree: serde_json::Value = serde_json::from_str(&tree).unwrap();
    assert!(tree.to_string().contains("\"feed/ingest/tcp/listener\""), "{tree}");
    assert!(feed.get("/tree.txt").1.contains("listener"));
    let stats: serde_json::Value = serde_json::from_str(&feed.get("/stats").1).unwrap();
    assert_eq!((&stats["seed"], &stats["lines"]["stored"]), (&9.into(), &99.into()));
    assert_eq!(feed.get("/healthz").0, "HTTP/1.1 200 OK");
    assert_eq!(feed.get("/nothing").0, "HTTP/1.1 404 Not Found");
}
