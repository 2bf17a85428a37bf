//! The demo, with a shorter lease and a shorter outage than in the README.

use crate::program::Program;
use crate::server::Server;

#[test]
fn each_job_runs_once_while_processes_are_killed_stopped_and_cut_off_and_the_database_stops() {
    let Some(server) = Server::start() else { return };

    let end = Program::start(&mut server.command("demo --ttl 3")).end();

    assert_eq!(end.code, Some(0), "{end:#?}");
    let says = |words: &str| end.out.iter().any(|line| line.contains(words));
    for words in [
        "(kill -9), the scheduler",
        "signal: 9 (SIGKILL)",
        "(SIGSTOP), the scheduler",
        "tries a write with token",
        "was granted again since token",
        "scheduler: lease lost: not renewed within 2s",
        "off from the database, the scheduler",
        "hasn't answered within 5s",
        "stops the database",
        "none of which was started again",
    ] {
        assert!(says(words), "{words}: {end:#?}");
    }
    let verdict = end.out.last().unwrap();
    assert!(verdict.contains(" twice=0 lost=0 stale=0 "), "{verdict}");
    // Once at each calm time, of which there are six.
    let number = |key: &str| -> u64 {
        let value = verdict.split_whitespace().find_map(|it| it.strip_prefix(key));
        value.unwrap().parse().unwrap()
    };
    assert!(number("jobs=") >= 1_000 && number("schedulers=") >= 4, "{verdict}");
    assert_eq!(number("jobs="), number("done="), "{verdict}");
}
