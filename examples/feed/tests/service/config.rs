//! `--config`: what a file sets, and what a reload changes while lines are stored.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use serde_json::{Value, json};

use crate::feed::{Feed, Peer, Place, awkward, wait_until};

const RELOADED: &str = "reloaded trigger=";
const REFUSED: &str = "configuration not changed";

/// The example's own file, with a different batch size and shortest delay.
fn text(batch: u32, delay: &str) -> String {
    let example = include_str!("../../feed.toml");
    let (from, to) = ("min = \"10ms\"", format!("min = \"{delay}\""));
    assert!(example.contains("\nbatch = 512\n") && example.contains(from), "{example}");
    example.replace("\nbatch = 512\n", &format!("\nbatch = {batch}\n")).replace(from, &to)
}

/// Returns lines of which each has its newline, so that a followed file has no unfinished one.
fn lines(lines: usize) -> Vec<u8> {
    [awkward(lines), b"\n".to_vec()].concat()
}

/// Returns where the example's file has a line that begins like this.
fn place_of(start: &str) -> String {
    let mut lines = include_str!("../../feed.toml").lines();
    format!("feed.toml:{}", lines.position(|line| line.starts_with(start)).unwrap() + 1)
}

/// Returns every child at and below this one. Those of single connections come and go.
fn all(node: &Value) -> Vec<&Value> {
    let children = node["children"].as_array().unwrap().iter();
    let lasting = children.filter(|child| !child["path"].as_str().unwrap().contains("/peer#"));
    std::iter::once(node).chain(lasting.flat_map(all)).collect()
}

fn child<'a>(tree: &'a Value, path: &str) -> &'a Value {
    all(tree).into_iter().find(|child| child["path"] == path).unwrap()
}

/// Returns what a reload may change, and must not change if it is refused.
fn values(tree: &Value) -> Vec<Value> {
    let keys = ["path", "policy", "configured", "incarnation", "restarts"];
    let values = |child: &&Value| Value::from(keys.map(|key| child[key].clone()).to_vec());
    all(tree).iter().map(values).collect()
}

/// Waits until the writer has used this batch size.
fn uses(feed: &Feed, batch: u32) {
    let end = format!(", batch {batch}");
    wait_until(|| {
        let tree = feed.tree();
        let status = &child(&tree, "feed/storage/writer")["status"];
        status.as_str().is_some_and(|status| status.ends_with(&end))
    });
}

/// Asserts that no child but these and those below them was started again.
fn assert_restarted_only(tree: &Value, paths: &[&str]) {
    for child in all(tree) {
        let path = child["path"].as_str().unwrap();
        if !paths.iter().any(|expected| path.starts_with(expected)) {
            assert_eq!(
                (&child["restarts"], &child["incarnation"]),
                (&json!(0), &json!(1)),
                "{path}"
            );
        }
    }
}

#[test]
fn an_edit_counts_while_lines_are_stored_and_restarts_nothing() {
    let place = Place::new(&lines(3_000));
    place.configure(&text(512, "10ms"));
    let feed = place.start_with_config("--follow --rate 1000 --clients 3");
    feed.stored(200);
    uses(&feed, 512);

    place.configure(&text(7, "25ms"));
    let log = place.reload(&feed, "HUP", RELOADED);

    let batch = place_of("batch = ");
    assert!(log.contains(&format!("config.batch  512 → 7  live  {batch}\n")), "{log}");
    let backoff = place_of("backoff = ");
    let change =
        format!("restart.backoff.min  \"10ms\" → \"25ms\"  at the next failure  {backoff}\n");
    assert!(log.contains(&change), "{log}");
    assert!(log.contains("reloaded trigger=\"SIGHUP\" changes=2 unchanged=1"), "{log}");
    uses(&feed, 7);
    let tree = feed.tree();
    let writer = child(&tree, "feed/storage/writer");
    let expected = json!({ "curve": "exponential", "min": "25ms", "max": "200ms" });
    let policy = &writer["policy"]["backoff"];
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&policy["value"][key], value, "{policy}");
    }
    assert_eq!(
        (&policy["source"], &writer["configured"]["backoff"]),
        (&json!("file"), &json!(backoff))
    );
    let storage = &child(&tree, "feed/storage")["supervisor"]["configured"];
    assert_eq!(storage["intensity"], json!(place_of("max_restarts = ")));
    feed.stored(6_000);
    assert_restarted_only(&feed.tree(), &[]);
    feed.signal("TERM");
    let end = feed.end();
    end.assert_kept(6_000);
    assert_eq!((end.get("restarts"), end.get("dead_letters")), (0, 0));
}

#[test]
fn edits_while_parts_fail_lose_nothing_and_restart_nothing_else() {
    let place = Place::new(&lines(3_000));
    place.configure(&text(512, "10ms"));
    let feed = place.start_with_config("--follow --rate 2000 --clients 2 --chaos --seed 1");
    for round in 1..=10 {
        feed.stored(u64::from(round) * 400);
        place.configure(&text(round, &format!("{round}ms")));
        // Every second time what hasn't changed is sent again, too.
        place.reload(&feed, if round % 2 == 0 { "USR2" } else { "HUP" }, RELOADED);
    }
    uses(&feed, 10);

    feed.stored(5_000);
    let tree = feed.tree();
    let failing = [
        "feed/storage/database",
        "feed/storage/writer",
        "feed/ingest/file",
        "feed/ingest/tcp/",
        "feed/clients/",
    ];
    assert_restarted_only(&tree, &failing);
    let writer = child(&tree, "feed/storage/writer");
    assert!(writer["restarts"].as_u64() > Some(0), "it fails, and comes back with the new values");
    assert_eq!(writer["policy"]["backoff"]["value"]["min"], "10ms");
    feed.signal("TERM");
    feed.end().assert_kept(5_000);
}

#[test]
fn the_next_transaction_has_the_new_size() {
    let place = Place::new(b"");
    place.configure(&text(512, "10ms"));
    let feed = place.start_with_config("--follow");
    let mut peers: Vec<Peer> = (0..8).map(|_| feed.connect()).collect();
    let mut line = 0;
    let mut transactions = |feed: &Feed| {
        let counts = || ["batches", "transactions"].map(|name| feed.count(name));
        let before = counts();
        line += 1;
        let lock = place.lock();
        for (index, peer) in peers.iter_mut().enumerate() {
            peer.send(format!("mill-{index}/{line} x\n").as_bytes());
        }
        // They are all there when the first transaction begins that can succeed.
        wait_until(|| child(&feed.tree(), "feed/storage/writer")["mailbox"]["len"] == 8);
        drop(lock);
        for (index, peer) in peers.iter_mut().enumerate() {
            assert_eq!(peer.answer(), format!("ok mill-{index}/{line}"));
        }
        let after = counts();
        assert_eq!(after[0] - before[0], 8);
        after[1] - before[1]
    };

    let many = transactions(&feed);
    assert!(many <= 2, "the first may have begun with fewer: {many}");
    place.configure(&text(1, "10ms"));
    place.reload(&feed, "HUP", RELOADED);
    assert_eq!(transactions(&feed), 8, "one for each line");
    place.configure(&text(4, "10ms"));
    place.reload(&feed, "HUP", RELOADED);
    let some = transactions(&feed);
    assert!((2..=3).contains(&some), "the first may have begun with fewer: {some}");

    feed.signal("TERM");
    feed.end().assert_kept(24);
}

#[test]
fn a_wrong_edit_is_refused_and_changes_nothing() {
    let place = Place::new(b"a\n");
    place.configure(&text(7, "25ms"));
    let feed = place.start_with_config("--follow");
    uses(&feed, 7);
    let before = values(&feed.tree());

    place.configure(&wrong_word());
    let log = place.reload(&feed, "HUP", REFUSED);

    assert_names_the_word(&log);
    assert_eq!(values(&feed.tree()), before);
    place.configure(&text(0, "99ms"));
    let log = place.reload(&feed, "HUP", REFUSED);
    let line = place_of("[\"storage/writer\".config]").replace("feed.toml", "place=\"feed.toml");
    for words in
        ["child=feed/storage/writer", &line, "problem=\"`batch` is 0; write how many lines"]
    {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert_eq!(values(&feed.tree()), before, "the delay of the same file isn't used either");
    place.configure(&text(9, "25ms"));
    place.reload(&feed, "HUP", RELOADED);
    let mut peer = feed.connect();
    peer.send(b"mill/1 x\n");
    assert_eq!(peer.answer(), "ok mill/1");
    uses(&feed, 9);
    feed.signal("TERM");
    feed.end().assert_kept(2);
}

/// The example's file with a wrong word, and a batch size that must not be used either.
fn wrong_word() -> String {
    text(99, "99ms").replace("when = \"always\"", "when = \"sometimes\"")
}

fn assert_names_the_word(log: &str) {
    let place = place_of("when = ");
    let expected = [
        &*format!("{place}:8: unknown restart type `sometimes`; write `permanent`, `always`, "),
        "| when = \"sometimes\"\n",
        "key: \"storage/writer\".restart.when",
    ];
    for words in expected {
        assert!(log.contains(words), "{words}: {log}");
    }
}

/// Runs the service, which ends by itself, and returns its exit code, output and errors.
fn ended(place: &Place, args: &str) -> (Option<i32>, String, String) {
    let output = place.command_with_config(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_wrong_file_starts_nothing_and_is_exit_code_2() {
    let place = Place::new(b"a\n");
    place.configure(&wrong_word());
    for args in ["", "--check", "--kills 1", "--kills 1 --check"] {
        let (code, out, errors) = ended(&place, args);
        assert_eq!((code, &*out), (Some(2), ""), "{args}: {errors}");
        assert!(errors.starts_with("feed: feed.toml:"), "{args}: {errors}");
        assert_names_the_word(&errors);
        assert!(!place.db().exists(), "{args}");
    }
    place.configure(&text(0, "10ms"));
    for args in ["", "--check"] {
        let (code, out, errors) = ended(&place, args);
        assert_eq!((code, &*out), (Some(2), ""), "{args}: {errors}");
        assert!(errors.contains("refused by `feed/storage/writer` (feed.toml:"), "{errors}");
        assert!(!place.db().exists(), "{args}");
    }
}

#[test]
fn a_check_of_a_good_file_starts_nothing() {
    let place = Place::new(b"a\n");
    place.configure(include_str!("../../feed.toml"));

    let valid = "the configuration is valid\n".to_owned();
    assert_eq!(ended(&place, "--check --clients 3"), (Some(0), valid, String::new()));
    assert!(!place.db().exists());
}

#[test]
fn a_file_that_is_gone_or_no_file_is_refused() {
    let place = Place::new(b"a\n");
    place.configure(&text(7, "25ms"));
    let feed = place.start_with_config("--follow");
    uses(&feed, 7);
    let before = values(&feed.tree());

    fs::remove_file(place.config()).unwrap();
    let gone = "feed.toml: the file doesn't exist; create it, or check its path";
    let log = place.reload(&feed, "HUP", REFUSED);
    assert!(log.contains(gone), "{log}");
    assert!(ended(&place, "--check").2.contains(gone));
    fs::create_dir(place.config()).unwrap();
    let directory = "feed.toml: this is a directory; write the path of a file in it";
    let log = place.reload(&feed, "USR2", REFUSED);
    assert!(log.contains(directory), "{log}");
    assert!(ended(&place, "--check").2.contains(directory));
    assert_eq!(values(&feed.tree()), before);

    // An empty file is valid, and leaves everything to the code.
    fs::remove_dir(place.config()).unwrap();
    place.configure("");
    place.reload(&feed, "HUP", RELOADED);
    assert_eq!(ended(&place, "--check").0, Some(0));
    let tree = feed.tree();
    let writer = child(&tree, "feed/storage/writer");
    assert_eq!(writer["policy"]["backoff"]["value"]["min"], "10ms");
    assert_ne!(writer["policy"]["backoff"]["source"], "file");
    assert_eq!(writer["configured"], Value::Null);
    let mut peer = feed.connect();
    peer.send(b"mill/1 x\n");
    assert_eq!(peer.answer(), "ok mill/1");
    uses(&feed, 512);
    assert_restarted_only(&feed.tree(), &[]);
    feed.signal("TERM");
    feed.end().assert_kept(2);
}

#[test]
fn a_file_without_permission_to_read_it_is_refused() {
    let place = Place::new(b"a\n");
    place.configure(&text(7, "25ms"));
    fs::set_permissions(place.config(), Permissions::from_mode(0o000)).unwrap();
    let mut command = place.command_with_config("--check");
    if fs::metadata(place.config()).unwrap().uid() == 0 {
        // Root may read every file, without these capabilities only its own.
        let mut as_owner = Command::new("setpriv");
        as_owner.arg("--bounding-set=-dac_override,-dac_read_search");
        as_owner.arg(command.get_program()).args(command.get_args()).current_dir(place.dir());
        command = as_owner;
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    let denied = "feed.toml: the file can't be read, because its permissions don't allow it; run chmod u+r \
                  on it, or run the program as its owner";
    assert!(errors.contains(denied), "{errors}");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let place = Place::new(b"a\n");
    place.configure(TEN);
    let (code, _, errors) = ended(&place, "--check");
    assert_eq!(code, Some(2));
    let places = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.split_once("feed.toml:"));
        lines.map(|(_, rest)| rest.split(": ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(places(&errors), TEN_PLACES, "{errors}");

    place.configure(&text(7, "25ms"));
    let feed = place.start_with_config("--follow");
    uses(&feed, 7);
    let before = values(&feed.tree());
    place.configure(TEN);
    let log = place.reload(&feed, "HUP", REFUSED);
    assert_eq!(places(&log), TEN_PLACES, "{log}");
    assert_eq!(values(&feed.tree()), before);
    feed.signal("TERM");
    feed.end().assert_kept(1);
}

const TEN: &str = r#"[storage]
max_restarts = "many"
period = "60"
strategy = "one_for_most"
["storage/writer"]
shutdown = "-1s"
batch = 7
["storage/writer".config]
batch = "all"
btach = 7
["storage/writer".restart]
when = "sometimes"
backoff = { curve = "exponential", min = "5 parsecs", max = "1s" }
["storage/wirter"]
"#;

const TEN_PLACES: [&str; 10] =
    ["2:16", "3:10", "4:12", "6:12", "7:1", "9:9", "10:1", "12:8", "13:42", "14:2"];

#[test]
fn a_signal_before_the_tree_is_up_does_not_end_the_service() {
    for signal in ["HUP", "USR2"] {
        let place = Place::new(b"a\n");
        place.configure(&text(7, "25ms"));
        let feed = place.start_with_config("--follow");

        feed.signal(signal);

        feed.stored(1);
        feed.signal("TERM");
        feed.end().assert_kept(1);
    }
}
