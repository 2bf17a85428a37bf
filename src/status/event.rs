//! Events: what happens to the children of a tree, as subscribers and streams of changes receive it.

use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::task::coop::consume_budget;

use crate::dead_letter::DeadLetter;
use crate::deferred_drop::drop_afterwards;
use crate::exit::ExitReason;
use crate::human_duration::rounded;
use crate::invisible::Visible;
use crate::lifecycle::Lifecycle;
use crate::panic::CatchWakerPanic;
use crate::path::Path;

/// Something that happened to a child.
///
/// Subscribe with [`SupervisorHandle::events`](crate::SupervisorHandle::events). Events of one
/// supervisor arrive in the order in which they happened. Events of different supervisors may
/// arrive in a different order than their [`seq`](Self::seq).
///
/// The example of [`SupervisorHandle::events`](crate::SupervisorHandle::events) reads one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The number of this event. It grows with every event of the tree while there is a subscriber.
    pub seq: u64,
    /// The time of the event.
    pub at: SystemTime,
    /// The path of the child.
    pub path: Path,
    /// The number of the child's incarnation, from 1; 0 before the first start.
    pub incarnation: u32,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to a child.
///
/// The example of [`SupervisorHandle::events`](crate::SupervisorHandle::events) matches one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// The child moved from one state of its lifecycle to the next.
    Moved {
        /// The state that the child left.
        from: Lifecycle,
        /// The state that the child entered.
        to: Lifecycle,
        /// How long the child was in the state that it left.
        after: Duration,
        /// How the incarnation ended, if this event is its end.
        reason: Option<Arc<ExitReason>>,
        /// The next attempt, from 1, and the delay before it, if the child waits for a restart.
        wait: Option<(u32, Duration)>,
    },
    /// The supervisor gave up on the child, or fails because of it.
    GaveUp {
        /// How the child's last incarnation ended.
        reason: Arc<ExitReason>,
    },
    /// The child failed too often, and its fallback replaces it: see
    /// [`ChildSpec::fallback`](crate::ChildSpec::fallback).
    FellBack {
        /// How the child's last incarnation ended.
        reason: Arc<ExitReason>,
    },
    /// The child failed too often, and is started again after a pause: see
    /// [`OnExhausted::Pause`](crate::policy::OnExhausted::Pause).
    Paused {
        /// How the child's last incarnation ended.
        reason: Arc<ExitReason>,
        /// The length of the pause.
        length: Duration,
    },
    /// The child's health check failed too often in a row, see [`HealthCheck`](crate::HealthCheck), or so did the runs
    /// of a periodic child, see `Every::unhealthy_after`.
    Unhealthy {
        /// The problem that the last check reported, or why the last run has failed.
        problem: Arc<str>,
    },
    /// The child was unhealthy, and its health check passed, or a run succeeded.
    Healthy,
    /// The child is on standby: its lease isn't granted, or nothing is known of it.
    Standby {
        /// The name of the lease.
        lease: Arc<str>,
        /// The holder of the lease, if the engine knows it.
        holder: Option<Arc<str>>,
        /// Why the engine can't tell, if that is so.
        problem: Option<Arc<str>>,
    },
    /// The child's lease was granted.
    LeaseGranted {
        /// The name of the lease.
        lease: Arc<str>,
        /// The number of the grant, which only grows.
        token: u64,
    },
    /// The child's lease was lost, so the child is stopped. This is no failure.
    LeaseLost {
        /// The name of the lease.
        lease: Arc<str>,
        /// How it was lost.
        reason: Arc<str>,
    },
    /// The child was aborted and is still running, because it blocks its thread.
    Leaked,
    /// The child had leaked, and has ended.
    LeakEnded,
    /// The child's `deactivate` failed. This does not affect what its supervisor does next.
    DeactivateFailed {
        /// How `deactivate` failed.
        reason: Arc<ExitReason>,
    },
    /// The supervisor removed the child.
    Removed,
    /// A call that [names its caller](crate::SupervisorHandle::on_behalf_of) has changed the child. The event is
    /// published when the call is answered. Other calls are only logged.
    Called {
        /// The name of the method of [`SupervisorHandle`](crate::SupervisorHandle).
        call: &'static str,
        /// The caller, such as `operator`.
        by: Arc<str>,
        /// The reason, if the caller gave one.
        reason: Option<Arc<str>>,
    },
}

/// One line: `app/db errored: failed: no route`. Characters that can't be seen are escaped.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.path)?;
        self.kind.fmt(f)
    }
}

/// One line without the child, such as `errored: failed: no route`. Characters that can't be seen are escaped.
impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved { to: Lifecycle::Restarting, wait: Some((attempt, delay)), .. } => {
                write!(f, "restarting in {:?} (attempt {attempt})", rounded(*delay))
            }
            // `Shutdown` is left out: the state says that the supervisor has stopped the child.
            Self::Moved { to, reason: Some(reason), .. }
                if !matches!(**reason, ExitReason::Shutdown) =>
            {
                write!(f, "{to}: {}", Visible(reason))
            }
            Self::Moved { to, .. } => to.fmt(f),
            Self::GaveUp { reason } => write!(f, "given up: {}", Visible(reason)),
            Self::FellBack { reason } => write!(f, "fell back: {}", Visible(reason)),
            Self::Paused { reason, length } => {
                write!(f, "paused for {length:?}: {}", Visible(reason))
            }
            Self::Unhealthy { problem } => write!(f, "unhealthy: {}", Visible(problem)),
            Self::Healthy => f.write_str("healthy again"),
            Self::Standby { holder: Some(holder), problem: None, .. } => {
                write!(f, "on standby: {} has the lease", Visible(holder))
            }
            Self::Standby { problem: Some(problem), .. } => {
                write!(f, "on standby: {}", Visible(problem))
            }
            Self::Standby { .. } => f.write_str("on standby"),
            Self::LeaseGranted { token, .. } => write!(f, "lease granted (token {token})"),
            Self::LeaseLost { reason, .. } => write!(f, "lease lost: {}", Visible(reason)),
            Self::Leaked => f.write_str("leaked: aborted, and still running"),
            Self::LeakEnded => f.write_str("leaked task has ended"),
            Self::DeactivateFailed { reason } => {
                write!(f, "deactivate failed: {}", Visible(reason))
            }
            Self::Removed => f.write_str("removed"),
            Self::Called { call, by, reason } => {
                write!(f, "{call} called by {}", Visible(by))?;
                match reason {
                    Some(reason) => write!(f, ": {}", Visible(reason)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A stream of events or dead letters, beginning with the call that created it.
///
/// A supervisor never waits for a subscriber. A subscriber that lags more than 1024 items behind
/// misses the oldest ones, and [`missed`](Self::missed) returns how many.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
/// let mut events = app.events();
///
/// app.stop_child("db").await?;
///
/// let mut lines = Vec::new();
/// while let Some(event) = events.try_next() {
///     lines.push(event.to_string());
/// }
/// assert!(lines.last().unwrap().contains("app/db"), "{lines:?}");
/// assert_eq!(events.missed(), 0);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
pub struct Subscription<T> {
    /// `None` once dropped.
    receiver: Option<broadcast::Receiver<T>>,
    missed: u64,
    wanted: fn(&T) -> bool,
    counted: Option<Arc<AtomicUsize>>,
}

impl<T: Clone> Subscription<T> {
    pub(crate) fn new(receiver: broadcast::Receiver<T>, counted: Option<Arc<AtomicUsize>>) -> Self {
        if let Some(count) = &counted {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let receiver = Some(receiver);
        Self { receiver, missed: 0, wanted: |_| true, counted }
    }

    /// Waits for the next item, or returns `None` if the supervisor has ended.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: no item is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<T> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match CatchWakerPanic::new(pin!(receiver.recv())).await {
                Ok(item) if (self.wanted)(&item) => return Some(item),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => self.missed += missed,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Returns the next item, if there is one already.
    pub fn try_next(&mut self) -> Option<T> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match receiver.try_recv() {
                Ok(item) if (self.wanted)(&item) => return Some(item),
                Ok(_) => {}
                Err(TryRecvError::Lagged(missed)) => self.missed += missed,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}

impl<T> Subscription<T> {
    /// Skips the items that are not wanted.
    pub(crate) fn only(mut self, wanted: fn(&T) -> bool) -> Self {
        self.wanted = wanted;
        self
    }

    /// Returns how many items were missed so far because this subscriber lagged behind.
    ///
    /// The count includes items that it would have skipped.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// Letters can be [suppressed](crate::SupervisorBuilder::suppress_dead_letters) by the type of their
/// message. By default a subscription skips those.
impl Subscription<DeadLetter> {
    /// Includes suppressed letters.
    #[must_use]
    pub fn with_suppressed(self) -> Self {
        self.only(|_| true)
    }

    /// Includes suppressed letters only.
    #[must_use]
    pub fn only_suppressed(self) -> Self {
        self.only(|letter| letter.suppressed)
    }
}

impl<T> Drop for Subscription<T> {
    fn drop(&mut self) {
        if let Some(count) = &self.counted {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        // The channel drops the items that only this subscriber had not received, under its own lock.
        drop_afterwards(|| self.receiver = None);
    }
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("missed", &self.missed).finish_non_exhaustive()
    }
}

/// A child's current state.
///
/// The example of [`StatusStream`] reads some.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusChange {
    /// The path of the child.
    pub path: Path,
    /// The number of its incarnation.
    pub incarnation: u32,
    /// Its state, or `None` if the child was removed.
    pub lifecycle: Option<Lifecycle>,
}

/// A stream of the current state of every child, followed by each change; see
/// [`SupervisorHandle::subscribe_status`](crate::SupervisorHandle::subscribe_status).
///
/// ```
/// use verger::Lifecycle;
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let mut changes = app.subscribe_status().await?;
/// // The current states come first.
/// while let Some(change) = changes.next().await {
///     if change.path.as_str() == "app/db" {
///         assert_eq!(change.lifecycle, Some(Lifecycle::Active));
///         break;
///     }
/// }
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StatusStream {
    /// In reverse order.
    pub(crate) replay: Vec<StatusChange>,
    /// The sequence number of the last event that the replay of each child reflects.
    pub(crate) reflected: HashMap<Path, u64>,
    pub(crate) events: Subscription<Event>,
}

impl StatusStream {
    /// Waits for the next change, or returns `None` if the supervisor has ended.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: no change is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<StatusChange> {
        consume_budget().await;
        if let Some(change) = self.replay.pop() {
            return Some(change);
        }
        loop {
            let event = self.events.next().await?;
            let lifecycle = match event.kind {
                _ if self.reflected.get(&event.path).is_some_and(|&seq| event.seq <= seq) => {
                    continue;
                }
                EventKind::Moved { to, .. } => Some(to),
                EventKind::Removed => None,
                _ => continue,
            };
            let Event { path, incarnation, .. } = event;
            // Later events of the child are newer than the replay. The child may be gone for good.
            self.reflected.remove(&path);
            return Some(StatusChange { path, incarnation, lifecycle });
        }
    }

    /// Returns how many changes were missed because this subscriber lagged behind.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.events.missed()
    }
}
