//! Sessions that come and go below a dynamic supervisor, which has two limits.
//!
//! ```text
//! app                one_for_one
//! └─ sessions        dynamic     at most three children
//!    ├─ session#1                leaves
//!    ├─ session#2                crashes once, and is restarted
//!    ├─ session#3                crashes again and again, until its limit removes it
//!    └─ session#4                takes the place of the first one
//! ```
//!
//! Break it by the number of sessions that come at once: all above three are refused at once, and no other one notices.
//!
//! ```text
//! cargo run --example dynamic
//! SESSIONS=1000 cargo run --example dynamic
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::time::timeout;
use verger::policy::Jitter;
use verger::status::{Event, EventKind, Subscription};
use verger::{
    Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Lifecycle, Supervisor, worker,
};

const ROOM: usize = 3;

fn session() -> ChildSpec {
    let session = worker("session", async |ctx: Context| ctx.cancelled().await);
    let delay = Backoff::constant(Duration::from_millis(250)).jitter(Jitter::None);
    // A limit of the child: two restarts within a minute. The sessions of others aren't counted.
    session.backoff(delay).own_restarts(2, Duration::from_secs(60))
}

/// Prints the events of one child until one of them is the last that is waited for.
async fn follow(
    events: &mut Subscription<Event>,
    child: &str,
    is_last: impl Fn(&EventKind) -> bool,
) -> anyhow::Result<()> {
    loop {
        let event = events.next().await.context("the tree has ended")?;
        let is_shown = |kind: &EventKind| match kind {
            EventKind::Moved { to, .. } => {
                !matches!(to, Lifecycle::Resolved | Lifecycle::Activating)
            }
            _ => true,
        };
        if event.path.name() == child && is_shown(&event.kind) {
            println!("{} {}", event.path.name(), event.kind);
            if is_last(&event.kind) {
                return Ok(());
            }
        }
    }
}

async fn show(coming: usize) -> anyhow::Result<()> {
    let sessions = DynamicSupervisor::builder("sessions").max_children(ROOM);
    let app = Supervisor::builder("app").child(sessions).build()?.start().await?;
    let sessions = app.supervisor("sessions").await?;

    let mut refused = 0;
    for number in 1..=coming {
        match sessions.start_child(session()).await {
            Ok(child) => println!("{} came", child.name()),
            Err(error @ ControlError::MaxChildren { .. }) => {
                if refused == 0 {
                    println!("number {number} is refused: {error}");
                }
                refused += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    println!("{refused} refused");
    ensure!(coming >= ROOM, "the rest needs {ROOM} sessions; write a number of at least {ROOM}");

    let mut events = sessions.events();
    // As when its peer hangs up. A dynamic supervisor forgets a child that is down.
    sessions.stop_child("session#1").await?;
    follow(&mut events, "session#1", |kind| matches!(kind, EventKind::Removed)).await?;
    println!("{} came", sessions.start_child(session()).await?.name());

    let is_up = |kind: &EventKind| matches!(kind, EventKind::Moved { to: Lifecycle::Active, .. });
    sessions.kill("session#2").await?;
    follow(&mut events, "session#2", is_up).await?;
    for _ in 0..2 {
        sessions.kill("session#3").await?;
        follow(&mut events, "session#3", is_up).await?;
    }
    sessions.kill("session#3").await?;
    follow(&mut events, "session#3", |kind| matches!(kind, EventKind::Removed)).await?;

    let mut left = sessions.children().await?;
    left.sort_by_key(|child| child.created_at);
    let left = left.iter().map(|it| it.path.name()).collect::<Vec<_>>().join(", ");
    println!("left: {left}");
    Ok(app.stop("the example is over").await?)
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    let coming = std::env::var("SESSIONS").map_or(Ok(4), |it| it.parse());
    let coming = coming.context("SESSIONS: write a number such as 1000")?;
    timeout(Duration::from_secs(20), show(coming)).await.context("the example takes too long")?
}
