//! A service that is watched: its value, each change of it, and log lines about a wait that takes long.

use std::any::type_name;
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch;

use super::context::Named;
use super::values::{Lookup, ServiceValue, cloned};
use crate::child::incarnation::READY;
use crate::child::{Context, awaiting};
use crate::exit::{ExitError, ExitReason};
use crate::handle::supervisor_of;
use crate::panic::CatchWakerPanic;
use crate::path::Path;
use crate::policy::Start;
use crate::runtime::log_bounds::LineKind;
use crate::runtime::{SupervisorPhase, SupervisorShared};
use crate::subscriber;

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
    /// A value that is provided out of the child's scope is logged immediately, and a wait of 10 s with the type and the
    /// likely cause. The wait ends only when a value is provided or the child is cancelled.
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
pub(super) struct Watch {
    lookup: Lookup,
    /// One for each scope.
    changes: Vec<watch::Receiver<()>>,
    /// The number of the value that was returned last.
    seen: Option<u64>,
    /// Whether there was ever a value.
    is_known: bool,
}

impl Watch {
    pub(super) fn new(lookup: Lookup) -> Self {
        let services = &lookup.supervisor.tree.service.values;
        let changes = lookup.keys().iter().map(|key| services.subscribe(key)).collect();
        let seen = lookup.find().map(|value| value.number);
        Self { lookup, changes, seen, is_known: seen.is_some() }
    }

    fn look(&mut self) -> Option<ServiceValue> {
        let value = self.lookup.find();
        self.seen = value.as_ref().map(|value| value.number);
        self.is_known |= value.is_some();
        value
    }

    /// Waits until there is a value. A long wait is logged.
    pub(super) async fn get<T: Clone + 'static>(&mut self, waiter: Waiter<'_>) -> T {
        let lookup = self.lookup.clone();
        let is_known = self.is_known;
        let wait = async {
            loop {
                self.mark_unchanged();
                if let Some(value) = self.look() {
                    return cloned(&value);
                }
                self.next_change().await;
            }
        };
        reported(waiter, &lookup, type_name::<T>(), is_known, wait).await
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
        (clone.seen, clone.is_known) = (self.seen, self.is_known);
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

/// How many siblings a line names.
const NAMED: usize = 5;

/// What waits.
#[derive(Clone, Copy)]
pub(super) enum Waiter<'a> {
    Child(&'a Context),
    /// Code outside of the tree, with a handle to this supervisor.
    Handle(&'a SupervisorShared),
}

/// Waits, and logs it: immediately if the value is out of scope, and once it takes long.
///
/// `is_known`: there was a value before, so that another scope's is no mistake.
async fn reported<T>(
    waiter: Waiter<'_>,
    lookup: &Lookup,
    service: &str,
    is_known: bool,
    wait: impl Future<Output = T>,
) -> T {
    let name = lookup.keys()[0].name.as_deref();
    let what = || format!("the service {}", Named(service, name));
    let log = |waited| {
        let hint = hint(waiter, lookup);
        let child = match waiter {
            Waiter::Child(ctx) => ctx.path(),
            Waiter::Handle(supervisor) => supervisor.path().clone(),
        };
        subscriber::warn!(
            target: "verger::lifecycle",
            %child, service, name, ?waited, hint, "waiting for a service"
        );
    };
    let wait = async {
        let mut wait = pin!(wait);
        tokio::select! {
            biased;
            value = &mut wait => return value,
            scope = lookup.until_elsewhere(), if !is_known => {
                log_elsewhere(waiter, lookup, service, name, &scope);
            }
        }
        wait.await
    };
    let child = match waiter {
        Waiter::Child(ctx) => Some(&ctx.incarnation),
        Waiter::Handle(_) => None,
    };
    awaiting::reported(child, what, log, wait).await
}

/// Logs that the value is provided, but where the waiter doesn't look.
fn log_elsewhere(
    waiter: Waiter<'_>,
    lookup: &Lookup,
    service: &str,
    name: Option<&str>,
    scope: &Path,
) {
    let child = match waiter {
        Waiter::Child(ctx) => ctx.path(),
        Waiter::Handle(supervisor) => supervisor.path().clone(),
    };
    let bounds = &lookup.supervisor.tree.log_bounds;
    let Some(line) = bounds.count(&child, LineKind::OutOfScope) else { return };
    let (note, hint) = (line.note(), out_of_scope(scope));
    subscriber::warn!(
        target: "verger::lifecycle",
        %child, service, name, hint, "the service is out of scope{note}"
    );
}

/// Returns what the cause of the wait may be, and what to do about it.
fn hint(waiter: Waiter<'_>, lookup: &Lookup) -> Option<String> {
    if let Waiter::Child(ctx) = waiter
        && let Some((child, later)) = started_later(ctx)
    {
        let later: Vec<_> = later.iter().map(|path| format!("`{path}`")).collect();
        return Some(format!(
            "`{child}` isn't ready, so {} not started yet; declare the provider before `{child}`, or don't wait \
             before `{child}` is ready",
            match &*later {
                [only] => format!("{only} is"),
                more => format!("{} are", more.join(", ")),
            }
        ));
    }
    let scope = lookup.supervisor.tree.service.values.scope_elsewhere(lookup.keys())?;
    Some(out_of_scope(&scope))
}

fn out_of_scope(scope: &Path) -> String {
    let name = scope.name();
    format!("one is provided to the children of `{scope}`, and not above; require `{name}`")
}

/// Returns the child, or a supervisor above it, whose start holds back the start of siblings, and these.
fn started_later(ctx: &Context) -> Option<(Path, Vec<Path>)> {
    let supervisor = supervisor_of(ctx);
    let segment = ctx.incarnation.segment();
    let mut holds_back = !ctx.incarnation.has(READY);
    let mut level = Some((&*supervisor, &*segment));
    while let Some((supervisor, child)) = level {
        let blueprint = supervisor.blueprint();
        let mut children = blueprint.children.iter().skip_while(|spec| spec.name() != child);
        // A supervisor is ready when it has started, and a function is at once.
        holds_back &= children.next().is_some_and(|spec| spec.options.facts.signals);
        if !holds_back || !matches!(supervisor.progress.phase(), SupervisorPhase::Starting) {
            return None;
        }
        let later = children.take(NAMED).map(|spec| supervisor.path().join(spec.name()));
        let later: Vec<_> = later.collect();
        if blueprint.rules.start == Start::Sequential && !later.is_empty() {
            return Some((supervisor.path().join(child), later));
        }
        level = supervisor.upward().nth(1).map(|above| (above, supervisor.path().name()));
    }
    None
}
