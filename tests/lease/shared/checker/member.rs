//! A member: a process with a tree whose only child has the lease, and writes to the resource.
//!
//! The test binary runs itself, with environment variables that select the store and what is planted. The process ends
//! in order by SIGTERM. It ends at once when its standard input is closed, so that it doesn't outlive the test.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use verger::lease::{
    Acquired, Claim, FencingToken, Lease, LeaseEngine, LeaseError, LeaseRecord, Memo, MemoWrite,
    Released, Renewed,
};
use verger::{Context, Exit, Shutdown, Supervisor, signals, worker};

use super::history::{Line, Nanos, now};
use super::{LEASE, TTL};
use crate::register::Register;
use crate::store;

pub(crate) const STORE: &str = "VERGER_TEST_MEMBER";
pub(crate) const NUMBER: &str = "VERGER_TEST_MEMBER_NUMBER";
/// Set to one of the [`Plant`]s.
pub(crate) const PLANT: &str = "VERGER_TEST_MEMBER_PLANT";

/// From one write to the next.
const WRITE_EVERY: Duration = Duration::from_millis(10);
/// How long a member did nothing if it says so.
const STALL: Duration = Duration::from_millis(40);

/// Whether a run has started. Only what is planted needs it.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// What is wrong in a member on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// The resource accepts each token.
    Unfenced,
    /// The engine gives the lease back in the place of the first renewal, and the member goes on.
    EarlyRelease,
}

impl Plant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unfenced => "unfenced",
            Self::EarlyRelease => "early-release",
        }
    }

    fn of_environment() -> Option<Self> {
        let name = std::env::var(PLANT).ok()?;
        [Self::Unfenced, Self::EarlyRelease].into_iter().find(|it| it.name() == name)
    }
}

/// The answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted,
    /// A higher token is known.
    Refused,
    /// It may be accepted, also later.
    Unknown,
}

/// The entry point of the process. As an ordinary test, it finds no store selected and returns.
#[tokio::test]
async fn program() {
    let Ok(store) = std::env::var(STORE) else { return };
    let number = std::env::var(NUMBER).unwrap().parse().unwrap();
    let plant = Plant::of_environment();
    std::thread::spawn(|| {
        drop(std::io::stdin().read(&mut [0]));
        std::process::exit(1);
    });
    tokio::spawn(report_stalls());
    let register = Register::new(&store, number, plant != Some(Plant::Unfenced));
    run(store::engine(&store), register, plant).await;
}

async fn run(engine: impl LeaseEngine, register: Register, plant: Option<Plant>) {
    let engine = Observed { engine, releases_early: plant == Some(Plant::EarlyRelease) };
    let lease = Lease::new(LEASE, engine)
        .ttl(TTL)
        .renew_deadline(TTL * 6 / 10)
        .retry(TTL * 15 / 100)
        .poll(TTL / 20);
    let writer = worker("writer", move |ctx| write(ctx, register.clone()));
    let app = Supervisor::builder("app")
        .leak_timeout(TTL / 10)
        .child(writer.shutdown(Shutdown::Timeout(TTL / 5)).lease(lease));
    let stopped = signals();
    say(Line::Ready { at: now() });
    app.build().unwrap().with_graceful_shutdown(stopped).await.unwrap();
}

/// Writes again and again, and a last time after it was cancelled: a resource has to refuse a write that comes late.
async fn write(ctx: Context, register: Register) -> Exit {
    let token = ctx.fencing_token().expect("it has a lease").get();
    let asked = now();
    while register.write(token).await != Answer::Accepted {
        if ctx.run_until_cancelled(tokio::time::sleep(WRITE_EVERY)).await.is_none() {
            return Ok(());
        }
    }
    say(Line::Start { asked, at: now(), token });
    IS_RUNNING.store(true, Ordering::Relaxed);
    let running = Running(token);
    while ctx.run_until_cancelled(tokio::time::sleep(WRITE_EVERY)).await.is_some() {
        write_once(&register, token).await;
    }
    write_once(&register, token).await;
    drop(running);
    Ok(())
}

async fn write_once(register: &Register, token: u64) {
    let mut attempt = Attempt { sent: now(), token, answer: Answer::Unknown };
    attempt.answer = register.write(token).await;
}

/// Says what became of a write, also if it was aborted.
struct Attempt {
    sent: Nanos,
    token: u64,
    answer: Answer,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Self { sent, token, .. } = *self;
        match self.answer {
            Answer::Accepted => {}
            Answer::Refused => say(Line::Refused { sent, token }),
            Answer::Unknown => say(Line::Unanswered { sent, token }),
        }
    }
}

/// Also says that a run has ended if it was aborted.
struct Running(u64);

impl Drop for Running {
    fn drop(&mut self) {
        say(Line::End { at: now(), token: self.0 });
    }
}

/// Says for which times this process did nothing: it was stopped, or other processes had the processors.
async fn report_stalls() {
    let mut from = now();
    loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let to = now();
        if to - from > STALL.as_nanos() as u64 {
            say(Line::Stalled { from, to });
        }
        from = to;
    }
}

/// In one piece: the process may be killed at any moment.
fn say(line: Line) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// An engine that says what it has granted.
#[derive(Debug)]
struct Observed<E> {
    engine: E,
    releases_early: bool,
}

#[async_trait]
impl<E: LeaseEngine> LeaseEngine for Observed<E> {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        let sent = now();
        let answer = self.engine.acquire(claim).await?;
        if let Acquired::Granted(token) = answer {
            say(Line::Granted { sent, answered: now(), token: token.get() });
        }
        Ok(answer)
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        if self.releases_early {
            if IS_RUNNING.load(Ordering::Relaxed) {
                self.engine.release(claim, token).await?;
            }
            return Ok(Renewed::Extended);
        }
        self.engine.renew(claim, token).await
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        self.engine.release(claim, token).await
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        self.engine.holder(name).await
    }

    async fn write_memo(
        &self,
        claim: &Claim,
        token: FencingToken,
        memo: &Memo,
    ) -> Result<MemoWrite, LeaseError> {
        self.engine.write_memo(claim, token, memo).await
    }
}
