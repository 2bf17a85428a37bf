//! actor-ts, *Backoff supervisor*: a child that can't start waits longer and longer, and its messages wait for it.
//!
//! The listing of the document:
//!
//! ```ts
//! class Flaky extends Actor<{ kind: 'do-it' }> {
//!   override preStart(): void { if (Math.random() < 0.7) throw new Error('upstream not ready'); }
//!   override onReceive(msg: { kind: 'do-it' }): void { this.log.info('ok'); }
//! }
//! const system = ActorSystem.create('demo');
//! const supervisor = system.actorOf(
//!   BackoffSupervisor.props({
//!     childProps: Props.create(() => new Flaky()),
//!     minBackoff: 200, maxBackoff: 10_000, randomFactor: 0.2,
//!   }),
//!   'flaky-supervisor',
//! );
//! // Send messages to the supervisor — they're forwarded to the
//! // current child, or stashed during a backoff window.
//! supervisor.tell({ kind: 'do-it' });
//! ```
//!
//! The same document combines it with a limit: "wrap a BackoffSupervisor's own strategy with a
//! `OneForOneStrategy(..., { maxRetries: 10 })` to say *back off between restarts, but give up entirely after 10
//! attempts*".
//!
//! The document waits 50 ms (`drainGraceMs`) before it gives the stash to a new child, which may still crash in `preStart`.
//! Here the supervisor knows when `activate` has returned, and gives it to the child then.
//!
//! Both run here on a paused clock. `Math.random()` is a list of numbers, and the jitter is the middle of its range.
//!
//! ```text
//! cargo run --example documents_backoff_supervisor --features mailbox
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use verger::mailbox::{Address, Inbox};
use verger::policy::{Jitter, Preset};
use verger::{
    Backoff, Child, Context, Exit, Supervisor, SupervisorBuilder, async_trait, child_with_mailbox,
    mailbox,
};

#[path = "timeline.rs"]
mod timeline;

use timeline::Timeline;

/// The message, `{ kind: 'do-it' }`.
struct DoIt;

struct Flaky {
    inbox: Inbox<DoIt>,
    /// `Math.random()`.
    random: Arc<Mutex<Vec<f64>>>,
    log: Timeline,
}

#[async_trait]
impl Child for Flaky {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        self.log.note(format_args!("start {}", ctx.incarnation()));
        let random = self.random.lock().expect("the lock is never poisoned").pop();
        if random.unwrap_or(0.0) < 0.7 {
            return Err("upstream not ready".into());
        }
        Ok(())
    }

    async fn run(&mut self, _ctx: &Context) -> Exit {
        while let Some(DoIt) = self.inbox.recv().await {
            self.log.note("ok");
        }
        Ok(())
    }
}

/// The backoff supervisor of the listing.
fn flaky_supervisor(log: &Timeline, math: &[f64]) -> (Address<DoIt>, SupervisorBuilder) {
    let (address, mailbox) = mailbox();
    let random = Arc::new(Mutex::new(math.iter().rev().copied().collect()));
    let log = log.clone();
    let flaky = child_with_mailbox("flaky", mailbox, move |inbox| Flaky {
        inbox,
        random: Arc::clone(&random),
        log: log.clone(),
    });
    let (min, max) = (Duration::from_millis(200), Duration::from_secs(10));
    let backoff = Backoff::exponential(min, max).jitter(Jitter::Symmetric(0.2)).soft_cap();
    let supervisor = Supervisor::builder("flaky-supervisor")
        .preset(Preset::actor_ts())
        .random(|| || 0.5)
        .child(flaky.backoff(backoff));
    (address, supervisor)
}

/// The listing alone: three starts fail.
pub(crate) async fn alone() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let (address, supervisor) = flaky_supervisor(&log, &[0.1, 0.69, 0.3, 0.7]);
    address.try_send(DoIt).map_err(|_| anyhow::anyhow!("the mailbox is full"))?;
    let system = supervisor.build()?.start().await?;
    log.note("active");
    tokio::time::sleep(Duration::from_secs(1)).await;
    address.send(DoIt).await.map_err(|_| anyhow::anyhow!("the mailbox is closed"))?;
    tokio::task::yield_now().await;
    system.stop("the listing is over").await?;
    Ok(log.lines())
}

/// With `{ maxRetries: 10 }` around it: the limit has no period, and counts starts that fail.
pub(crate) async fn with_max_retries() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let (_address, supervisor) = flaky_supervisor(&log, &[]);
    let supervisor = supervisor.restarts(10, Duration::MAX).count_failed_starts(true);
    match supervisor.build()?.run().await {
        Ok(()) => log.note("ended"),
        Err(error) => log.note(error),
    }
    Ok(log.lines())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() -> anyhow::Result<()> {
    println!("alone\n{}\n", alone().await?.join("\n"));
    println!("with maxRetries: 10\n{}", with_max_retries().await?.join("\n"));
    Ok(())
}
