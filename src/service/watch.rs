//! A service that is watched: its value, and each change of it.

use std::any::type_name;
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch;

use super::scopes::{Lookup, cloned};
use super::slow::{self, Waiter};
use super::values::ServiceValue;
use crate::child::Context;
use crate::exit::{ExitError, ExitReason};
use crate::panic::CatchWakerPanic;

/// A value that other children provide, as seen by one child; see [`Context::watch_service`].
///
/// It remembers which value it has returned last, so that [`changed`](Self::changed) misses no change.
///
/// ```
/// use verger::service::Service;
/// use verger::{Context, Exit};
///
/// # #[derive(Clone)]
/// # struct Pool;
/// # impl Pool {
/// #     async fn serve(&self) {}
/// # }
/// async fn api(ctx: Context) -> Exit {
///     let mut pool: Service<Pool> = ctx.watch_service();
///     loop {
///         let current = pool.get().await?;
///         tokio::select! {
///             () = current.serve() => return Ok(()),
///             // Withdrawn or replaced: go on with the next one.
///             changed = pool.changed() => drop(changed?),
///         }
///     }
/// }
/// # drop(api);
/// ```
pub struct Service<T> {
    ctx: Context,
    watch: Watch,
    of: PhantomData<fn() -> T>,
}

impl<T> Service<T> {
    pub(super) fn new(ctx: &Context, lookup: Lookup) -> Self {
        Self { ctx: ctx.clone(), watch: Watch::new(lookup), of: PhantomData }
    }
}

impl<T> Clone for Service<T> {
    fn clone(&self) -> Self {
        Self { ctx: self.ctx.clone(), watch: self.watch.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for Service<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("type", &type_name::<T>()).finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> Service<T> {
    /// Returns a clone of the value, if there is one now.
    pub fn try_get(&mut self) -> Option<T> {
        let value = self.watch.look().filter(|_| !self.ctx.is_cancelled());
        value.as_ref().map(cloned)
    }

    /// Waits until there is a value, and returns a clone of it.
    ///
    /// A wait of 10 s is logged, with the type and the likely cause. It ends only when a value is provided or the
    /// child is cancelled.
    ///
    /// # Errors
    ///
    /// A shutdown, if the child is cancelled. Return it with `?`: the exit of the child is then
    /// [`Shutdown`](ExitReason::Shutdown).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn get(&mut self) -> Result<T, ExitError> {
        let ctx = self.ctx.clone();
        let wait = self.watch.get::<T>(Waiter::Child(&self.ctx));
        ctx.run_until_cancelled(wait).await.ok_or_else(shutdown)
    }

    /// Waits until the value is not the one that was returned last, or that was there when this `Service` was
    /// created, and returns a clone of it. `None`: it was withdrawn, and there is no other yet.
    ///
    /// A value that comes and goes while no task waits may be missed. The last one isn't.
    ///
    /// # Errors
    ///
    /// A shutdown, if the child is cancelled.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Result<Option<T>, ExitError> {
        let ctx = self.ctx.clone();
        let value = ctx.run_until_cancelled(self.watch.changed()).await.ok_or_else(shutdown)?;
        Ok(value.as_ref().map(cloned))
    }
}

/// What a child returns that was cancelled while it waited.
pub(super) fn shutdown() -> ExitError {
    ExitError::from_reason(ExitReason::Shutdown)
}

/// A lookup and the changes of its scopes.
#[derive(Debug)]
pub(super) struct Watch {
    lookup: Lookup,
    /// One for each scope.
    changes: Vec<watch::Receiver<()>>,
    /// The number of the value that was returned last.
    seen: Option<u64>,
}

impl Watch {
    pub(super) fn new(lookup: Lookup) -> Self {
        let services = &lookup.supervisor.tree.service.values;
        let changes = lookup.keys().iter().map(|key| services.subscribe(key)).collect();
        let seen = lookup.find().map(|value| value.number);
        Self { lookup, changes, seen }
    }

    fn look(&mut self) -> Option<ServiceValue> {
        let value = self.lookup.find();
        self.seen = value.as_ref().map(|value| value.number);
        value
    }

    /// Waits until there is a value. A long wait is logged.
    pub(super) async fn get<T: Clone + 'static>(&mut self, waiter: Waiter<'_>) -> T {
        let lookup = self.lookup.clone();
        let wait = async {
            loop {
                self.mark_unchanged();
                if let Some(value) = self.look() {
                    return cloned(&value);
                }
                self.next_change().await;
            }
        };
        slow::reported(waiter, &lookup, type_name::<T>(), wait).await
    }

    async fn changed(&mut self) -> Option<ServiceValue> {
        loop {
            self.mark_unchanged();
            let before = self.seen;
            let value = self.look();
            if self.seen != before {
                return value;
            }
            self.next_change().await;
        }
    }

    fn mark_unchanged(&mut self) {
        self.changes.iter_mut().for_each(watch::Receiver::mark_unchanged);
    }

    /// Waits until a scope changes after the last [`mark_unchanged`](Self::mark_unchanged).
    async fn next_change(&mut self) {
        let mut changes = Vec::with_capacity(self.changes.len());
        for change in &mut self.changes {
            changes.push(CatchWakerPanic::new(Box::pin(change.changed())));
        }
        poll_fn(|cx| {
            let mut polls = changes.iter_mut().map(|change| pin!(change).poll(cx));
            if polls.any(|poll| poll.is_ready()) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Clone for Watch {
    fn clone(&self) -> Self {
        let mut clone = Self::new(self.lookup.clone());
        clone.seen = self.seen;
        clone
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.changes.clear();
        let services = &self.lookup.supervisor.tree.service.values;
        self.lookup.keys().iter().for_each(|key| services.forget_unused(key));
    }
}
