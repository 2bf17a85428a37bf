//! Calls of a handle, an address, a context and a store, made where this crate calls code of the user's.
//!
//! Such code may run in the task of a supervisor, under `Drop`, or in a waker. No call deadlocks there:
//! each is answered, in words, or its future is pending and can be dropped or handed to a task.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use verger::{
    ChildSpec, Context, DynamicSupervisor, Exit, HealthCheck, RunError, SupervisorBuilder,
    SupervisorHandle, worker_with,
};

use crate::common::{killed, settle};
use crate::hook_places::{Message, PLACES, Place, World};
use crate::hooks::{self, drive};
use crate::log::register_second_subscriber;
use crate::probe::{
    CALLS, Call, OTHER_CALLS, assert_works, in_time, poll_once, start, tasks, tree,
};

const SECOND: Duration = Duration::from_secs(1);

/// Makes every call of a handle: polls it once and drops it, and spawns it.
fn call_all(app: &SupervisorHandle, except: &str) {
    let calls = CALLS.into_iter();
    let others = OTHER_CALLS.into_iter().map(|(name, call)| (name, "", call));
    for (name, child, call) in calls.chain(others).filter(|(name, ..)| *name != except) {
        for child in [child, "hooks/value", "hooks"] {
            // The tree has to be there for the next place.
            if name == "delete_child" && child == "hooks" {
                continue;
            }
            poll_once(call(app.clone(), child));
        }
        if name != "wait" && Handle::try_current().is_ok() {
            tokio::spawn(call(app.clone(), child));
        }
    }
    drop((app.events(), app.dead_letters(), format!("{app:?} {}", app.path())));
}

/// Makes every call, except those that stop the tree.
fn touch(_place: Place, world: &World) {
    let World { app, address, store, context } = world;
    call_all(app, "stop");
    poll_once(address.ask(Message::question));
    poll_once(address.ask_within(SECOND, Message::question));
    poll_once(address.send(Message::default()));
    drop(address.try_send(Message::default()));
    drop((address.len(), address.capacity(), address.path(), address.is_closed()));
    drop((format!("{address:?}"), address.clone()));
    for entry in store.entries() {
        drop((store.replay(entry.id), store.remove(entry.id)));
    }
    drop((store.counts(), store.under("app"), format!("{store:?}")));
    let context = context.lock().unwrap().clone();
    if let Some(ctx) = context {
        ctx.ready();
        ctx.report_healthy();
        ctx.set_status("a probe");
        ctx.set_restart_policy(None).unwrap();
        drop((ctx.path(), ctx.incarnation(), ctx.start_cause(), ctx.is_cancelled(), ctx.token()));
        drop((ctx.property::<u32>(), ctx.parent(), format!("{ctx:?}")));
        poll_once(ctx.cancelled());
        poll_once(ctx.run_until_cancelled(std::future::ready(())));
        ctx.stop_self();
    }
}

#[tokio::test(start_paused = true)]
async fn any_call_in_any_callback_is_answered_or_pending() {
    for &place in PLACES {
        let name = format!("{place:?}");
        let probe = hooks::start(tree(), place, touch).await;
        drive(&probe).await;
        assert!(probe.reached() > 0, "{name}: it was not reached");
        assert_works(&probe.world().app, &name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_any_callback_ends_the_tree() {
    for &place in PLACES {
        let (before, name) = (tasks(), format!("{place:?}"));
        let probe = hooks::start(tree(), place, |_, World { app, .. }| {
            poll_once(app.stop("a probe"));
            if Handle::try_current().is_ok() {
                let app = app.clone();
                tokio::spawn(async move { app.stop("a probe").await });
            }
        })
        .await;
        drive(&probe).await;
        assert!(probe.reached() > 0, "{name}: it was not reached");
        in_time(probe.world().app.wait(), &name).await.unwrap();
        drop(probe);
        settle().await;
        assert_eq!(tasks(), before, "{name}");
    }
}

// --- Awaited in a child --------------------------------------------------------------------------

/// Awaits a call about the child `probed`, at some place.
type Awaits = fn(SupervisorBuilder, Call) -> SupervisorBuilder;

/// Returns a child that makes the call once, in its first incarnation, and then waits.
fn probed(call: Call) -> ChildSpec {
    worker_with("probed", call, async |ctx: Context, call: Call| {
        sleep(SECOND).await;
        if ctx.incarnation() == 1 {
            call(ctx.parent(), "probed").await;
        }
        ctx.cancelled().await;
    })
}

fn in_run(tree: SupervisorBuilder, call: Call) -> SupervisorBuilder {
    tree.child(probed(call))
}

/// The child doesn't listen when it is cancelled.
fn in_cleanup(tree: SupervisorBuilder, call: Call) -> SupervisorBuilder {
    tree.child(worker_with("probed", call, async |ctx: Context, call: Call| {
        ctx.run_until_cancelled(sleep(SECOND)).await;
        call(ctx.parent(), "probed").await;
    }))
}

fn in_failure_callback(tree: SupervisorBuilder, call: Call) -> SupervisorBuilder {
    let handle = Arc::<OnceLock<SupervisorHandle>>::default();
    let given = Arc::clone(&handle);
    let fails = worker_with("probed", given, async |ctx: Context, given| -> Exit {
        let given: Arc<OnceLock<SupervisorHandle>> = given;
        let _ = given.set(ctx.parent());
        sleep(SECOND).await;
        if ctx.incarnation() == 1 {
            return Err("once".into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    tree.child(fails).on_child_failure(move |failure: verger::policy::ChildFailure| {
        let handle = handle.get().cloned().filter(|_| failure.child.name() == "probed");
        async move {
            if let Some(app) = handle {
                call(app, "probed").await;
            }
            failure.child.name() != "parked"
        }
    })
}

fn in_health_check(tree: SupervisorBuilder, call: Call) -> SupervisorBuilder {
    let check = HealthCheck::new(move |ctx: Context| async move {
        call(ctx.parent(), "probed").await;
    });
    let idle = worker_with("probed", (), async |ctx: Context, ()| ctx.cancelled().await);
    tree.child(idle.health_check(check.every(SECOND).failures(1).restarts()))
}

const AWAITS: [(&str, Awaits); 4] = [
    ("run", in_run),
    ("cleanup", in_cleanup),
    ("on_child_failure", in_failure_callback),
    ("a health check", in_health_check),
];

fn all_calls() -> impl Iterator<Item = (&'static str, Call)> {
    CALLS.into_iter().map(|(name, _, call)| (name, call)).chain(OTHER_CALLS)
}

#[tokio::test(start_paused = true)]
async fn a_child_may_await_any_call_about_itself() {
    for ((place, awaits), (call_name, call)) in
        AWAITS.into_iter().flat_map(|it| all_calls().map(move |call| (it, call)))
    {
        let (before, name) = (tasks(), format!("{call_name} in {place}"));
        let app = start(awaits(tree(), call)).await;
        sleep(30 * SECOND).await;
        if call_name == "stop" && place != "cleanup" || app.status().await.is_err() {
            // A callback that waits for its own supervisor decides too late, which escalates.
            let end = in_time(app.wait(), &name).await.or_else(killed);
            let late = place == "on_child_failure" && matches!(end, Err(RunError::GaveUp { .. }));
            assert!(late || end.is_ok(), "{name}: {end:?}");
        } else {
            assert_works(&app, &name).await;
        }
        drop(app);
        settle().await;
        assert_eq!(tasks(), before, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_child_may_await_any_call_about_itself() {
    for (call_name, call) in all_calls() {
        let app = start(tree().child(DynamicSupervisor::builder("conns"))).await;
        let conns = app.supervisor("conns").await.unwrap();
        let conn = worker_with("probed", call, async |ctx: Context, call: Call| {
            sleep(SECOND).await;
            if ctx.incarnation() == 1 {
                call(ctx.parent(), "probed#1").await;
            }
            ctx.cancelled().await;
        });
        conns.start_child(conn.clone()).await.unwrap();
        conns.start_child(conn).await.unwrap();
        sleep(30 * SECOND).await;
        assert!(app.which_child("conns").await.is_ok(), "{call_name}");
        assert_works(&app, call_name).await;
    }
}

// --- Subscribers of tracing ----------------------------------------------------------------------

/// Makes all calls in each of its methods, a few times.
#[derive(Clone, Default)]
struct Calls(Arc<(OnceLock<SupervisorHandle>, AtomicU32)>);

impl Calls {
    fn make(&self) {
        if let Some(app) = self.0.0.get()
            && self.0.1.fetch_add(1, Ordering::Relaxed) < 50
        {
            call_all(app, "stop");
        }
    }
}

impl Subscriber for Calls {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        self.make();
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        self.make();
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {
        self.make();
    }

    fn enter(&self, _span: &Id) {
        self.make();
    }

    fn exit(&self, _span: &Id) {
        self.make();
    }

    fn try_close(&self, _id: Id) -> bool {
        self.make();
        false
    }
}

#[tokio::test(start_paused = true)]
async fn any_call_in_a_subscriber_of_tracing_is_answered_or_pending() {
    let calls = Calls::default();
    let _guard = tracing::subscriber::set_default(calls.clone());
    register_second_subscriber();
    let probe = hooks::start(tree(), Place::Factory, |_, _| {}).await;
    assert!(calls.0.0.set(probe.world().app.clone()).is_ok());
    drive(&probe).await;
    assert!(calls.0.1.load(Ordering::Relaxed) > 50);
    assert_works(&probe.world().app, "a subscriber").await;
}
