//! Log lines about a wait for a service that takes long. They don't end the wait.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use super::scopes::Lookup;
use crate::child::Context;
use crate::child::incarnation::READY;
use crate::clock::now;
use crate::handle::supervisor_of;
use crate::path::Path;
use crate::policy::Start;
use crate::runtime::SupervisorPhase;
use crate::runtime::SupervisorShared;
use crate::subscriber;

/// A wait is logged after this time, and again after each [`FURTHER`].
const FIRST: Duration = Duration::from_secs(10);
const FURTHER: Duration = Duration::from_secs(30);

/// How many siblings a line names.
const NAMED: usize = 5;

/// What waits.
#[derive(Clone, Copy)]
pub(super) enum Waiter<'a> {
    Child(&'a Context),
    /// Code outside of the tree, with a handle to this supervisor.
    Handle(&'a SupervisorShared),
}

/// Waits, and logs it if that takes long.
pub(super) async fn reported<T>(
    waiter: Waiter<'_>,
    lookup: &Lookup,
    service: &str,
    wait: impl Future<Output = T>,
) -> T {
    let began = now();
    let mut wait = pin!(wait);
    let mut pause = FIRST;
    loop {
        if let Ok(value) = tokio::time::timeout(pause, &mut wait).await {
            return value;
        }
        let waited = now().saturating_duration_since(began);
        let waited = Duration::from_secs(waited.as_secs());
        let (name, hint) = (lookup.keys()[0].name.as_deref(), hint(waiter, lookup));
        match waiter {
            Waiter::Child(ctx) => {
                let child = ctx.path();
                subscriber::warn!(
                    target: "verger::lifecycle",
                    %child, service, name, ?waited, hint, "waiting for a service"
                );
            }
            Waiter::Handle(supervisor) => {
                let supervisor = supervisor.path();
                subscriber::warn!(
                    target: "verger::lifecycle",
                    %supervisor, service, name, ?waited, hint, "waiting for a service"
                );
            }
        }
        pause = FURTHER;
    }
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
    Some(format!(
        "one is provided to the children of `{scope}`, and not above; require `{}`",
        scope.name()
    ))
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
        holds_back &= children.next().is_some_and(|spec| spec.options.signals);
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
