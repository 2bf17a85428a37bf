//! Two copies of one program, of which one leads: a lease in a file, which expires.
//!
//! Start it in two terminals. The first one leads, the second one is on standby. Break the leader: `kill -STOP` its
//! process for ten seconds, and the standby leads, with a higher token. After `kill -CONT`, the old leader stops its child
//! and is on standby. Ctrl-C hands over at once. What the child sends until it stops, a resource can refuse by its
//! token: see *One of many* in the book.
//!
//! The engine of this example has an expiry. [`verger::lease::File`] has none: a process that is only stopped keeps its
//! lease, and one that was killed frees it at once.
//!
//! ```text
//! cargo run --example singleton --features lease
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use verger::lease::{
    Acquired, Claim, FencingToken, Lease, LeaseEngine, LeaseError, LeaseRecord, Released, Renewed,
};
use verger::{Application, Context, Exit, Supervisor, async_trait, worker};

/// A lease engine with a file for each lease.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) directory: PathBuf,
    /// The clock that all processes share: here that of the machine. A store on a network has one of its own.
    pub(crate) clock: fn() -> Duration,
}

/// The content of a file: the last grant.
#[derive(Default, Serialize, Deserialize)]
struct Grant {
    token: u64,
    holder: String,
    /// When it expires, by the clock of the engine.
    expires: Duration,
}

impl Files {
    /// Gives the last grant and the time to a closure, and writes what that has made of it.
    fn change<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Grant, Duration) -> T,
    ) -> Result<T, LeaseError> {
        let file = self.directory.join(format!("{name}.json"));
        let change = || {
            let mut options = OpenOptions::new();
            let mut file =
                options.read(true).write(true).create(true).truncate(false).open(&file)?;
            // Only for the time of a change, and without waiting: an error is asked again.
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            let mut content = String::new();
            file.read_to_string(&mut content)?;
            // The first line counts. What a longer one has left behind it doesn't.
            let last = content.lines().next().map(serde_json::from_str);
            let mut grant: Grant = last.transpose()?.unwrap_or_default();
            let answer = change(&mut grant, (self.clock)());
            file.rewind()?;
            file.write_all(format!("{}\n", serde_json::to_string(&grant)?).as_bytes())?;
            io::Result::Ok(answer)
        };
        change().map_err(|error| LeaseError::new(format!("{}: {error}", file.display())))
    }
}

#[async_trait]
impl LeaseEngine for Files {
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, LeaseError> {
        self.change(claim.name(), |grant, now| {
            if now < grant.expires && *grant.holder != **claim.holder() {
                return Acquired::Held { by: Some(grant.holder.as_str().into()) };
            }
            let (token, holder) = (grant.token + 1, claim.holder().to_string());
            *grant = Grant { token, holder, expires: now + claim.ttl() };
            Acquired::Granted(FencingToken::new(token))
        })
    }

    async fn renew(&self, claim: &Claim, token: FencingToken) -> Result<Renewed, LeaseError> {
        self.change(claim.name(), |grant, now| {
            if grant.token != token.get() || now >= grant.expires {
                return Renewed::Lost;
            }
            grant.expires = now + claim.ttl();
            Renewed::Extended
        })
    }

    async fn release(&self, claim: &Claim, token: FencingToken) -> Result<Released, LeaseError> {
        self.change(claim.name(), |grant, now| {
            if grant.token != token.get() || now >= grant.expires {
                return Released::NotHeld;
            }
            grant.expires = Duration::ZERO;
            Released::Released
        })
    }

    async fn holder(&self, name: &str) -> Result<LeaseRecord, LeaseError> {
        self.change(name, |grant, now| match grant.expires.checked_sub(now) {
            Some(remaining) if !remaining.is_zero() => LeaseRecord::held()
                .with_holder(grant.holder.as_str())
                .with_token(FencingToken::new(grant.token))
                .with_remaining(remaining),
            _ => LeaseRecord::free(),
        })
    }
}

async fn leader(ctx: Context) -> Exit {
    let token = ctx.fencing_token().ok_or("the child has no lease")?;
    println!("token {token}: leads");
    ctx.cancelled().await;
    println!("token {token}: stops");
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let log = tracing_subscriber::fmt().with_env_filter("verger::lease=info").with_ansi(false);
    log.with_writer(std::io::stdout).log_internal_errors(false).init();
    let directory = std::env::var_os("LEASES").map_or_else(std::env::temp_dir, PathBuf::from);
    println!("process {}", std::process::id());
    let files = Files { directory, clock: || UNIX_EPOCH.elapsed().unwrap_or_default() };
    let lease = Lease::new("verger-leader", files)
        .ttl(Duration::from_secs(5))
        .renew_deadline(Duration::from_secs(3))
        .retry(Duration::from_secs(1));
    let leader = worker("leader", leader).shutdown(Duration::from_secs(1)).lease(lease);
    Application::new(Supervisor::builder("app").child(leader)).run().await
}
