//! The database is stopped and started under processes that run.

use std::process::Command;
use std::time::Duration;

use tokio_postgres::Client;

use crate::program::Program;
use crate::server::Server;

/// Repeats a query for a number until it is as expected.
async fn until(client: &Client, query: &str, is_expected: impl Fn(i64) -> bool) {
    let looking = async {
        while !is_expected(client.query_one(query, &[]).await.unwrap().get(0)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looking).await.expect(query);
}

const FINISHED: &str = "SELECT count(*) FROM jobs_example.ledger";
const WAITING: &str = "SELECT count(*) FROM jobs_example.jobs WHERE done_at IS NULL";
const CLOSE: &str = "UPDATE jobs_example.schedule SET is_open = false";

#[tokio::test]
async fn the_processes_outlive_the_database_and_each_job_still_runs_once() {
    let Some(mut server) = Server::start() else { return };
    let start = |name: &str| {
        let args = format!("run --ttl 3 --every 20 --name {name}");
        Program::start(&mut server.command(&args))
    };
    let mut processes = [start("a"), start("b")];
    for process in &mut processes {
        process.wait_for("serving");
    }
    let client = server.client().await;
    until(&client, FINISHED, |jobs| jobs >= 100).await;

    let file = client.query_one("SELECT pg_read_file('postmaster.pid')", &[]).await.unwrap();
    let postmaster = file.get::<_, &str>(0).lines().next().unwrap();
    let stopped = Command::new("kill").args(["-QUIT", postmaster]).status().unwrap();
    assert!(stopped.success());
    server.program().wait_for("starts again in 3s");
    for process in &mut processes {
        process.wait_for("worker-1: failed: ");
    }
    server.program().wait_for("PostgreSQL is ready");
    for process in &mut processes {
        process.wait_for("worker-1: active again");
    }

    let client = server.client().await;
    let before: i64 = client.query_one(FINISHED, &[]).await.unwrap().get(0);
    assert!(before >= 100, "what was committed is still there: {before}");
    until(&client, FINISHED, |jobs| jobs >= before + 100).await;
    client.batch_execute(CLOSE).await.unwrap();
    until(&client, WAITING, |jobs| jobs == 0).await;
    for process in processes {
        let end = process.stop();
        assert_eq!(end.code, Some(0), "{end:#?}");
    }
    let audit = Program::start(&mut server.command("audit")).end();
    assert_eq!(audit.code, Some(0), "{audit:#?}");
    assert!(audit.out[0].contains(" twice=0 lost=0 stale=0 "), "{audit:#?}");
}

#[tokio::test]
async fn the_audit_notices_jobs_that_ran_twice_or_not_at_all() {
    let Some(server) = Server::start() else { return };
    let mut process = Program::start(&mut server.command("run --name a"));
    process.wait_for("adds jobs");
    let client = server.client().await;
    client.batch_execute(CLOSE).await.unwrap();
    until(&client, WAITING, |jobs| jobs == 0).await;
    assert_eq!(process.stop().code, Some(0));
    let audit = |expected: &str| {
        let audit = Program::start(&mut server.command("audit")).end();
        assert_eq!(audit.code, Some(1), "{audit:#?}");
        assert!(audit.out[0].contains(expected), "{audit:#?}");
    };

    client.batch_execute("TRUNCATE jobs_example.jobs, jobs_example.ledger").await.unwrap();
    audit("jobs=0 done=0 twice=0 lost=0 stale=0");
    let jobs = "INSERT INTO jobs_example.jobs (number, token) VALUES (1, 2), (2, 2), (3, 1)";
    client.batch_execute(jobs).await.unwrap();
    audit("jobs=3 done=0 twice=0 lost=3 stale=1");
    let ledger =
        "INSERT INTO jobs_example.ledger (job, worker) VALUES (1, 'a'), (1, 'b'), (2, 'a')";
    client.batch_execute(ledger).await.unwrap();
    audit("jobs=3 done=2 twice=1 lost=1 stale=1");
}
