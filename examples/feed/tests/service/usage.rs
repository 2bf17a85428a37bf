//! Wrong usage: the error text and the exit code.

use std::net::TcpListener;

use crate::feed::{Place, command};

/// Runs the service with these additional flags, and returns exit code and output.
fn refused(place: &Place, args: &[&str]) -> (Option<i32>, String) {
    let output = place.command("").args(args).output().unwrap();
    assert!(output.stdout.is_empty(), "nothing was started: {output:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let place = Place::new(b"a\n");
    let dir = place.dir().to_str().unwrap();
    for (args, words) in [
        (&["--nope"][..], "invalid option '--nope'"),
        (&["stray"], "unexpected argument \"stray\""),
        (&["--rate", "fast"], "--rate: `fast`"),
        (&["--clients"], "--clients needs a value"),
        (&["--listen", "nowhere"], "--listen: `nowhere`"),
        (&["--file", "/nonexistent/file"], "--file /nonexistent/file: No such file"),
        (&["--file", dir], "it is a directory"),
        (&["--file", "/dev/null"], "it is not a regular file"),
    ] {
        let (code, error) = refused(&place, args);
        assert_eq!(code, Some(2), "{args:?}: {error}");
        assert!(error.starts_with("feed: ") && error.contains(words), "{args:?}: {error}");
    }
}

#[test]
fn a_missing_resource_is_exit_code_1() {
    let place = Place::new(b"a\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let (dir, file) = (place.dir().to_str().unwrap(), place.file());
    for (args, words) in [
        (["--listen", &taken], "Address already in use"),
        (["--http", &taken], "Address already in use"),
        (["--db", "/nonexistent/feed.db"], "--db /nonexistent/feed.db: unable to open"),
        (["--db", "/proc/feed.db"], "--db /proc/feed.db: unable to open"),
        (["--db", dir], "unable to open"),
        (["--db", file.to_str().unwrap()], "not a database"),
    ] {
        let (code, error) = refused(&place, &args);
        assert_eq!(code, Some(1), "{args:?}: {error}");
        assert!(error.starts_with("feed: ") && error.contains(words), "{args:?}: {error}");
    }
}

#[test]
fn a_database_of_a_longer_file_is_refused() {
    let place = Place::new(b"a\nb\n");
    place.run("--rate 0").assert_kept(2);
    std::fs::write(place.file(), "a\n").unwrap();

    let (code, error) = refused(&place, &[]);

    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("holds 4 bytes of a file"), "{error}");
}

#[test]
fn a_database_of_something_else_is_refused_and_left_alone() {
    let place = Place::new(b"a\n");
    place.tamper("CREATE TABLE lines (id INTEGER, body TEXT)");

    let (code, error) = refused(&place, &[]);

    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("no such column: source"), "{error}");
}

#[test]
fn help_is_no_failure() {
    let output = command(["--help"]).output().unwrap();

    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("--chaos"));
}
