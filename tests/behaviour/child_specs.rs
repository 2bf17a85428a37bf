//! A child's name and options come from its spec, its type, and its supervisor.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{End, FakeChildren, settle, start};
use verger::policy::{FirstStart, Preset};
use verger::status::ChildKind;
use verger::{
    Backoff, Child, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, RestartType,
    RunError, Shutdown, StartError, Supervisor, SupervisorBuilder, SupervisorHandle, async_trait,
    child, component, worker, worker_with,
};

const SECOND: Duration = Duration::from_secs(1);

fn app() -> SupervisorBuilder {
    Supervisor::builder("app")
}

async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

/// The paths of the children that ran.
type Paths = Arc<Mutex<Vec<String>>>;

fn note(paths: &Paths, ctx: &Context) {
    paths.lock().unwrap().push(ctx.path().to_string());
}

fn noted(paths: &Paths) -> Vec<String> {
    std::mem::take(&mut paths.lock().unwrap())
}

/// A function that records its path.
fn noting(name: &str, paths: &Paths) -> ChildSpec {
    worker_with(name, Arc::clone(paths), async |ctx: Context, paths| {
        note(&paths, &ctx);
        ctx.cancelled().await;
    })
}

async fn names(tree: &SupervisorHandle) -> Vec<String> {
    let children = tree.children().await.unwrap();
    children.iter().map(|child| child.path.name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_constructor_can_be_used_twice_if_one_child_is_renamed() {
    let (fakes, paths) = (FakeChildren::new(), Paths::default());
    let tree = start(
        app()
            .child(noting("a", &paths).named("north"))
            .child(noting("a", &paths))
            .child(fakes.child("a").named("b").named("south")),
    )
    .await;

    assert_eq!(names(&tree).await, ["north", "a", "south"]);
    assert_eq!(noted(&paths), ["app/north", "app/a"]);
    assert_eq!(tree.child_spec("south").await.unwrap().name, "south");
    for old in ["b", "c"] {
        let gone = tree.which_child(old).await;
        assert!(matches!(gone, Err(ControlError::NotFound { .. })), "the last name counts");
    }
    fakes.end("a", End::Panic).await;
    tree.resume("south").await.unwrap();
    assert_eq!(tree.which_child("south").await.unwrap().incarnation, 2);
}

#[tokio::test(start_paused = true)]
async fn a_renamed_clone_runs_the_same_and_leaves_the_original_unchanged() {
    let paths = Paths::default();
    let a = noting("a", &paths).restart(RestartType::Transient);
    let b = a.clone().named("b");
    let c = b.clone().named("c");
    let tree = start(app().child(a.clone()).child(b.clone()).child(c)).await;
    let last = tree.start_child(a.named("d")).await.unwrap();
    let other = b.named("e").restart(RestartType::Temporary);
    tree.start_child(other).await.unwrap();

    assert_eq!(last.path().as_str(), "app/d");
    assert_eq!(names(&tree).await, ["a", "b", "c", "d", "e"]);
    assert_eq!(noted(&paths), ["app/a", "app/b", "app/c", "app/d", "app/e"]);
    for (name, restart) in [("b", RestartType::Transient), ("e", RestartType::Temporary)] {
        assert_eq!(tree.child_spec(name).await.unwrap().restart, restart, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renamed_nested_supervisor_has_its_new_name_everywhere() {
    let fakes = FakeChildren::new();
    let paths = Paths::default();
    let pool = Supervisor::builder("pool").restarts(0, 60 * SECOND);
    let pool = pool.child(fakes.child("db")).child(noting("log", &paths)).into_child();
    let twin = Supervisor::builder("pool").child(noting("log", &paths)).into_child();
    let tree = app().restarts(0, 60 * SECOND).child(twin.clone()).child(twin.named("twin"));
    let tree = start(tree.child(pool.named("north"))).await;
    let mut events = tree.events();

    assert_eq!(noted(&paths), ["app/pool/log", "app/twin/log", "app/north/log"]);
    let north = tree.supervisor("north").await.unwrap();
    assert_eq!(north.path().as_str(), "app/north");
    let lines = tree.status().await.unwrap().to_string();
    let lines: Vec<_> = lines.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(lines[1], "pool");
    assert!(lines.contains(&"twin") && lines.contains(&"north"), "{lines:?}");

    fakes.end("db", End::Error).await;
    let first = events.next().await.unwrap().path;
    assert_eq!(first.as_str(), "app/north/db");
    match tree.wait().await {
        Err(RunError::GaveUp { path, child, reason, .. }) => {
            assert_eq!((path.as_str(), child.as_str()), ("app", "app/north"));
            assert!(reason.to_string().starts_with("escalated: child app/north/db: "), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mistake_below_a_renamed_supervisor_is_reported_with_the_new_path() {
    let pool = Supervisor::builder("pool").child(worker("a", idle)).child(worker("a", idle));
    let error = app().child(pool.into_child().named("north")).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`app/north` has two children named `a`; give one of them another name",
    );
    let slow = Supervisor::builder("pool").restarts(3, Duration::ZERO);
    let error = app().child(slow.into_child().named("north")).build().unwrap_err();
    assert!(error.to_string().starts_with("`app/north` allows 3 restarts"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_supervisor_and_its_children_can_be_renamed() {
    let peers = DynamicSupervisor::builder("conns").into_child().named("peers");
    let tree = start(app().child(peers).child(DynamicSupervisor::builder("conns"))).await;
    let peers = tree.supervisor("peers").await.unwrap();
    let paths = Paths::default();
    let conn = noting("conn", &paths);

    peers.start_child(conn.clone()).await.unwrap();
    peers.start_child(conn.clone().named("peer")).await.unwrap();
    peers.start_child(conn).await.unwrap();
    settle().await;

    assert_eq!(noted(&paths), ["app/peers/conn#1", "app/peers/peer#2", "app/peers/conn#3"]);
    assert!(peers.which_child("peer#2").await.is_ok());
    assert!(peers.which_child("conn#2").await.is_err());
    let pool = Supervisor::builder("pool").child(worker("a", idle)).into_child().named("shard");
    peers.start_child(pool).await.unwrap();
    assert!(peers.which_child("shard#4/a").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_checked_supervisor_can_be_renamed() {
    let paths = Paths::default();
    let pool = Supervisor::builder("pool").child(noting("a", &paths)).build().unwrap();
    let north = ChildSpec::from(pool.clone()).named("north");
    let south = north.clone().named("south");
    let tree = start(app().child(north).child(south).child(pool)).await;

    assert_eq!(noted(&paths), ["app/north/a", "app/south/a", "app/pool/a"]);
    for name in ["north", "south", "pool"] {
        assert_eq!(tree.supervisor(name).await.unwrap().path().name(), name);
        assert_eq!(tree.child_spec(name).await.unwrap().kind, ChildKind::Supervisor);
    }
}

#[tokio::test(start_paused = true)]
async fn siblings_require_a_renamed_child_by_its_new_name() {
    let pair = |required: &str| {
        app().child(worker("db", idle).named("main")).child(worker("api", idle).requires(required))
    };
    assert_eq!(names(&start(pair("main")).await).await, ["main", "api"]);
    let error = pair("db").build().unwrap_err().to_string();
    assert!(error.ends_with("`app` has no such child; it has `main`"), "{error}");
}

/// An idle component whose type sets every option.
#[derive(Clone)]
struct Opinionated;

/// The number of calls of the spec function.
static ASKED: AtomicU32 = AtomicU32::new(0);

#[async_trait]
impl Child for Opinionated {
    fn child_spec(spec: ChildSpec) -> ChildSpec {
        ASKED.fetch_add(1, Ordering::Relaxed);
        spec.restart(RestartType::Transient)
            .shutdown(2 * SECOND)
            .backoff(Backoff::constant(2 * SECOND))
            .activation_timeout(2 * SECOND)
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

/// An idle component whose type sets no option.
#[derive(Clone)]
struct Modest;

#[async_trait]
impl Child for Modest {
    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_spec_wins_over_its_type_a_type_over_the_defaults_and_defaults_over_the_preset() {
    let builder = || {
        let spec = child("spec", || Opinionated).restart(RestartType::Temporary).shutdown(SECOND);
        let spec = spec.backoff(Backoff::constant(SECOND)).activation_timeout(SECOND);
        let kinds = app().preset(Preset::otp()).child(spec).child(child("type", || Opinionated));
        kinds.child(component("value", Opinionated)).child(child("modest", || Modest))
    };
    let defaults = builder().defaults(|child| {
        let child = child.restart(RestartType::Permanent).shutdown(3 * SECOND);
        child.backoff(Backoff::constant(3 * SECOND)).activation_timeout(3 * SECOND)
    });
    let seconds = |n| (Backoff::constant(n * SECOND), n * SECOND, Some(n * SECOND));
    let otp = (Backoff::none(), 5 * SECOND, None);
    let table =
        [(builder(), RestartType::Permanent, otp), (defaults, RestartType::Permanent, seconds(3))];

    for (builder, restart, default) in table {
        let tree = start(builder).await;
        let table = [
            ("spec", RestartType::Temporary, seconds(1)),
            ("type", RestartType::Transient, seconds(2)),
            ("value", RestartType::Transient, seconds(2)),
            ("modest", restart, default),
        ];
        for (name, restart, (backoff, shutdown, timeout)) in table {
            let spec = tree.child_spec(name).await.unwrap();
            assert_eq!((spec.restart, spec.backoff), (restart, backoff), "{name}");
            assert_eq!(spec.shutdown, Shutdown::Timeout(shutdown), "{name}");
            assert_eq!(spec.activation_timeout, timeout, "{name}");
        }
        tree.restart("type").await.unwrap();
    }
    let specs = 2 * 3;
    assert_eq!(ASKED.load(Ordering::Relaxed), specs, "once for each, however often it is started");
}

/// A component that counts its runs in its own field, and fails.
#[derive(Clone)]
struct Counter {
    count: u32,
    counts: Arc<Mutex<Vec<u32>>>,
}

#[async_trait]
impl Child for Counter {
    async fn run(&mut self, _ctx: &Context) -> Exit {
        self.count += 1;
        self.counts.lock().unwrap().push(self.count);
        Err("again".into())
    }
}

#[tokio::test(start_paused = true)]
async fn each_incarnation_of_a_component_is_a_clone_of_the_value_as_it_was() {
    let counts = Arc::<Mutex<Vec<u32>>>::default();
    let counter = Counter { count: 7, counts: Arc::clone(&counts) };
    let tree = app().restarts(2, 60 * SECOND).child(component("counter", counter));

    let ended = start(tree).await.wait().await;

    assert!(matches!(ended, Err(RunError::GaveUp { .. })));
    assert_eq!(*counts.lock().unwrap(), [8, 8, 8]);
}

/// A component that can't be cloned.
struct Unique;

impl Clone for Unique {
    fn clone(&self) -> Self {
        panic!("there is only one")
    }
}

#[async_trait]
impl Child for Unique {
    async fn run(&mut self, _ctx: &Context) -> Exit {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_clone_that_panics_is_the_failure_of_the_child() {
    let tree = app().first_start(FirstStart::Fail).child(component("unique", Unique));

    let error = tree.build().unwrap().start().await.unwrap_err();

    match error {
        StartError::ChildFailed { path, reason, .. } => {
            assert_eq!(path.as_str(), "app/unique");
            assert_eq!(reason.to_string(), "panicked: there is only one");
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_spec_is_a_component_except_for_its_name() {
    let spec = worker("a", idle).restart(RestartType::Transient).shutdown(9 * SECOND);
    let pool = Supervisor::builder("pool").child(worker("a", idle)).into_child();
    let tree = start(app().child(component("b", spec)).child(component("c", pool))).await;

    let spec = tree.child_spec("b").await.unwrap();
    assert_eq!((spec.kind, spec.restart), (ChildKind::Worker, RestartType::Transient));
    assert_eq!(spec.shutdown, Shutdown::Timeout(9 * SECOND));
    assert_eq!(tree.child_spec("c").await.unwrap().kind, ChildKind::Supervisor);
    assert!(tree.which_child("c/a").await.is_ok());
}

/// If the pool counted as a worker, it would have a grace of five seconds for all its descendants.
#[tokio::test(start_paused = true)]
async fn a_supervisor_from_a_factory_or_a_value_is_recognized_as_a_supervisor() {
    let fakes = FakeChildren::new();
    let pool = |deaf: &str| {
        fakes.ignore_cancellation(deaf);
        let deaf = fakes.child(deaf).shutdown(60 * SECOND);
        Supervisor::builder("pool").child(deaf).build().unwrap()
    };
    let (made, value) = (pool("a"), pool("b"));
    let made = child("made", move || made.clone());
    let tree = start(app().child(made).child(component("value", value))).await;

    for name in ["made", "value"] {
        let spec = tree.child_spec(name).await.unwrap();
        assert_eq!((spec.kind, spec.shutdown), (ChildKind::Supervisor, Shutdown::Infinity));
        let called = tokio::time::Instant::now();
        tree.stop_child(name).await.unwrap();
        assert_eq!(called.elapsed(), 45 * SECOND, "{name}: the last quarter is for `deactivate`");
    }
}

#[test]
fn a_field_can_declare_a_dynamic_supervisor() {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Net {
        conns: DynamicSupervisor,
    }

    let net = Net { conns: DynamicSupervisor };
    assert_eq!((net, size_of::<Net>()), (Net::default(), 0));
}
