//! Another process, which asks an engine.
//!
//! The test binary runs itself, with an environment variable that selects a directory or a server. The process reads requests
//! from its standard input and answers each with a line on its standard error.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::time::SystemTime;

use verger::lease::{Acquired, FencingToken, LeaseEngine, Memo};

use super::requests::{claim, granted_in_time};
use crate::store;

const STORE: &str = "VERGER_TEST_LEASES";

/// A process. It is killed when this is dropped.
pub(crate) struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStderr>>,
}

impl Peer {
    pub(crate) fn start(store: impl AsRef<OsStr>) -> Self {
        Self::with_environment(store, &[])
    }

    /// Starts it with these environment variables.
    pub(crate) fn with_environment(store: impl AsRef<OsStr>, variables: &[(&str, &str)]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shared::peer::program", "--nocapture"])
            .env(STORE, store)
            .envs(variables.iter().copied())
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

/// The entry point of the process. As an ordinary test, it finds no store selected and returns.
#[tokio::test]
async fn program() {
    let Ok(store) = std::env::var(STORE) else { return };
    answer(&store::engine(&store), Path::new(&store)).await;
}

async fn answer(engine: &impl LeaseEngine, directory: &Path) {
    for request in std::io::stdin().lines() {
        let request = request.unwrap();
        let words: Vec<_> = request.split(' ').collect();
        let token = |text: &str| FencingToken::new(text.parse().unwrap());
        let answer = match words[..] {
            ["acquire", name, holder] => match engine.acquire(&claim(name, holder)).await {
                Ok(Acquired::Granted(token)) => format!("granted {token}"),
                other => format!("{other:?}"),
            },
            ["renew", name, holder, number] => {
                format!("{:?}", engine.renew(&claim(name, holder), token(number)).await)
            }
            ["release", name, holder, number] => {
                format!("{:?}", engine.release(&claim(name, holder), token(number)).await)
            }
            ["memo", name, holder, number, text] => {
                let memo = Memo::new(text).unwrap();
                format!("{:?}", engine.write_memo(&claim(name, holder), token(number), &memo).await)
            }
            ["clock"] => {
                let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                since_epoch.unwrap().as_secs().to_string()
            }
            ["rounds", name, holder, rounds] => {
                for _ in 0..rounds.parse().unwrap() {
                    round(engine, directory, name, holder).await;
                }
                "done".to_owned()
            }
            _ => panic!("{request}"),
        };
        eprintln!("{answer}");
    }
}

/// Acquires the lease, checks that no other process has it, writes the token to the journal, and releases the lease.
async fn round(engine: &impl LeaseEngine, directory: &Path, name: &str, holder: &str) {
    let claim = claim(name, holder);
    let token = granted_in_time(engine, &claim).await;
    let inside = directory.join("inside");
    let entered = OpenOptions::new().write(true).create_new(true).open(&inside);
    entered.expect("another process is inside");
    let journal = OpenOptions::new().append(true).create(true).open(directory.join("journal"));
    writeln!(journal.unwrap(), "{token}").unwrap();
    fs::remove_file(inside).unwrap();
    engine.release(&claim, token).await.unwrap();
}
