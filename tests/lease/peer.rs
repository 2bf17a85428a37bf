//! Another process, which asks a `lease::File`.
//!
//! The test binary runs itself, with an environment variable that selects the directory. The process reads requests
//! from its standard input and answers each with a line on its standard error.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};

use verger::lease::{Acquired, FencingToken, File, LeaseEngine};

use crate::claim;

const DIRECTORY: &str = "VERGER_TEST_LEASES";

/// A process. It is killed when this is dropped.
pub(crate) struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStderr>>,
}

impl Peer {
    pub(crate) fn start(directory: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "peer::program", "--nocapture"])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stderr.take().unwrap()).lines();
        Self { process, requests, answers }
    }

    /// Sends a request, and returns the answer.
    pub(crate) fn ask(&mut self, request: &str) -> String {
        self.send(request);
        self.answer()
    }

    pub(crate) fn send(&mut self, request: &str) {
        writeln!(self.requests, "{request}").unwrap();
    }

    pub(crate) fn answer(&mut self) -> String {
        self.answers.next().expect("the process has ended").unwrap()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Kills the process as `kill -9` does, and waits until it has ended.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The entry point of the process. As an ordinary test, it finds no directory selected and returns.
#[tokio::test]
async fn program() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let engine = File::new(directory);
    for request in std::io::stdin().lines() {
        let request = request.unwrap();
        let words: Vec<_> = request.split(' ').collect();
        let answer = match words[..] {
            ["acquire", name, holder] => match engine.acquire(&claim(name, holder)).await {
                Ok(Acquired::Granted(token)) => format!("granted {token}"),
                Ok(held) => format!("{held:?}"),
                Err(error) => error.to_string(),
            },
            ["renew", name, holder, token] => {
                let token = FencingToken::new(token.parse().unwrap());
                format!("{:?}", engine.renew(&claim(name, holder), token).await)
            }
            ["rounds", name, holder, rounds] => {
                for _ in 0..rounds.parse().unwrap() {
                    round(&engine, directory, name, holder).await;
                }
                "done".to_owned()
            }
            _ => panic!("{request}"),
        };
        eprintln!("{answer}");
    }
}

/// Acquires the lease, checks that no other process has it, writes the token to the journal, and releases the lease.
async fn round(engine: &File, directory: &Path, name: &str, holder: &str) {
    let claim = claim(name, holder);
    let token = crate::granted_in_time(engine, &claim).await;
    let inside = directory.join("inside");
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&inside)
        .expect("another process is inside");
    let journal = OpenOptions::new().append(true).create(true).open(directory.join("journal"));
    writeln!(journal.unwrap(), "{token}").unwrap();
    fs::remove_file(inside).unwrap();
    engine.release(&claim, token).await.unwrap();
}
