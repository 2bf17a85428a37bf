//! Wrong usage, and what is missing: the text and the exit code.

use std::net::TcpListener;

use crate::program::{End, Program, command};
use crate::server::Server;

/// Runs the program to its end, which has to be a refusal.
fn refused(args: &str, url: Option<&str>) -> End {
    let mut command = command(args);
    command.envs(url.map(|url| ("DATABASE_URL", url)));
    let end = Program::start(&mut command).end();
    assert!(end.errors.starts_with("jobs-postgres: "), "{args}: {end:#?}");
    end
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for (args, words) in [
        ("", "the command is missing; write serve-database, demo, run or audit"),
        ("start", "`start` is no command"),
        ("demo --nope", "invalid option '--nope'"),
        ("run", "--name is missing; write a name such as `a`"),
        ("run --name a --ttl 0", "--ttl: 0 isn't from 1 to 3600"),
        ("serve-database --workers 2", "--workers isn't a flag of this command"),
    ] {
        let end = refused(args, None);
        assert_eq!((end.code, end.out.len()), (Some(2), 0), "{args}: {end:#?}");
        assert!(end.errors.contains(words), "{args}: {end:#?}");
    }
}

#[test]
fn a_connection_string_that_cannot_be_parsed_is_never_quoted() {
    for url in ["hunter2", "postgres://jobs:hunter2@/x?hunter2=1", "host=/run user=hunter2"] {
        let end = refused("audit", Some(url));
        assert_eq!(end.code, Some(2), "{end:#?}");
        assert!(
            end.errors.contains("write postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
            "{end:#?}"
        );
        assert!(!end.errors.contains("hunter2"), "{end:#?}");
    }
}

#[test]
fn without_a_database_it_says_how_to_start_one() {
    for args in ["demo", "run --name a", "audit"] {
        let end = refused(&format!("{args} --url-file /nonexistent/url"), None);
        assert_eq!(end.code, Some(1), "{end:#?}");
        for words in ["`jobs-postgres serve-database`", "DATABASE_URL", "/nonexistent/url"] {
            assert!(end.errors.contains(words), "{end:#?}");
        }
    }
}

/// Starts a process for this port, waits for a line, and stops it.
fn waits(port: u16, words: &str) {
    let mut command = command("run --name a");
    let url = format!("postgres://jobs:hunter2@127.0.0.1:{port}/postgres");
    let mut process = Program::start(command.env("DATABASE_URL", url));
    process.wait_for(&format!("waiting for PostgreSQL at 127.0.0.1:{port}"));
    assert!(process.wait_for(words).contains("; tries again in "));
    let end = process.stop();
    assert_eq!(end.code, Some(0), "{end:#?}");
    assert!(!format!("{end:?}").contains("hunter2"), "{end:#?}");
}

#[test]
fn a_process_waits_for_a_server_that_is_not_there_and_can_be_stopped_meanwhile() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let words =
        format!("tables: activation failed: PostgreSQL at 127.0.0.1:{port} accepts no connections");
    waits(port, &words);
}

#[test]
fn a_process_waits_for_a_server_that_does_not_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    waits(
        port,
        &format!(
            "tables: activation failed: PostgreSQL at 127.0.0.1:{port} hasn't answered within 5s"
        ),
    );
}

#[test]
fn a_wrong_password_or_database_ends_the_process() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let password = url.split([':', '@']).nth(2).unwrap();
    for (url, words) in [
        (url.replace(password, "hunter2"), "password authentication failed"),
        (
            url.replace("/postgres", "/nowhere").replacen("/nowhere:", "/postgres:", 1),
            "does not exist",
        ),
    ] {
        for args in ["run --name a", "audit", "demo"] {
            let end = refused(args, Some(&url));
            assert_eq!(end.code, Some(1), "{args}: {end:#?}");
            assert!(end.errors.contains("refuses the connection"), "{args}: {end:#?}");
            assert!(end.errors.contains(words), "{args}: {end:#?}");
            assert!(end.errors.contains("correct user, password and database"), "{end:#?}");
            assert!(!end.errors.contains("hunter2"), "{end:#?}");
        }
    }
}

#[test]
fn a_demo_without_a_server_says_where_it_should_be() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let end = refused("demo", Some(&format!("postgres://jobs:hunter2@{address}/postgres")));
    assert_eq!((end.code, end.out.len()), (Some(1), 0), "{end:#?}");
    let words = format!("PostgreSQL at {address} accepts no connections");
    assert!(end.errors.contains(&words) && !end.errors.contains("hunter2"), "{end:#?}");
}

#[test]
fn a_database_without_tables_is_no_proof() {
    let Some(server) = Server::start() else { return };
    let end = Program::start(&mut server.command("audit")).end();
    assert_eq!(end.code, Some(1), "{end:#?}");
    assert!(
        end.errors.contains("has no tables of this program; start `jobs-postgres demo`"),
        "{end:#?}"
    );
}
