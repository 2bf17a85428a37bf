//! Children with a lease in a tree, over a store in memory and on a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use verger::config::Config;
use verger::lease::Lease;
use verger::testing::{LeaseEvent, LeaseRequest, MemoryLeases};
use verger::{
    BuildError, ChildSpec, Context, ControlError, DynamicSupervisor, Lifecycle, Shutdown, Strategy,
    Supervisor, SupervisorBuilder, SupervisorHandle, worker,
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What children did, each line with the time since the beginning.
#[derive(Clone)]
struct Diary {
    began: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn new() -> Self {
        Self { began: Instant::now(), lines: Arc::default() }
    }

    fn note(&self, line: &str) {
        self.lines.lock().unwrap().push(format!("{:?} {line}", self.began.elapsed()));
    }

    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// A child that runs until it is cancelled, and takes this long to end.
    fn child(&self, name: &str, ends_after: Duration) -> ChildSpec {
        let (diary, name) = (self.clone(), name.to_owned());
        worker(name.clone(), move |ctx: Context| {
            let (diary, name) = (diary.clone(), name.clone());
            async move {
                let token = ctx.fencing_token().map_or("-".to_owned(), |token| token.to_string());
                diary.note(&format!("{name} starts with {token}"));
                ctx.cancelled().await;
                sleep(ends_after).await;
                diary.note(&format!("{name} ends"));
            }
        })
    }
}

/// The lease without jitter, so that times are exact.
fn lease(leases: &MemoryLeases) -> Lease {
    Lease::new("scheduler", leases.clone()).jitter(0.0)
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

async fn lifecycle(tree: &SupervisorHandle, name: &str) -> (Lifecycle, Option<&'static str>) {
    let info = tree.which_child(name).await.unwrap();
    (info.lifecycle, info.why)
}

#[tokio::test(start_paused = true)]
async fn of_two_trees_one_runs_the_child_and_the_other_is_ready_on_standby() {
    let (leases, diary) = (MemoryLeases::new(), Diary::new());
    let app = |name: &str| {
        Supervisor::builder(name).child(diary.child("scheduler", secs(0)).lease(lease(&leases)))
    };
    let first = start(app("first")).await;
    sleep(ms(1)).await;
    let second = start(app("second")).await;
    sleep(secs(30)).await;

    assert_eq!(diary.lines(), ["0ns scheduler starts with 1"]);
    assert_eq!(lifecycle(&second, "scheduler").await, (Lifecycle::Discovered, Some("standby")));
    let status = second.status().await.unwrap();
    assert!(status.is_ready(), "{status}");
    let info = second.which_child("scheduler").await.unwrap();
    let known = info.lease.expect("a lease");
    let holder = known.holder.clone().expect("a holder");
    assert!(holder.ends_with(":first/scheduler"), "{holder}");
    assert_eq!((&*known.name, known.token, known.problem.as_deref()), ("scheduler", None, None));
    let json = serde_json::to_value(&status).unwrap();
    let explanation = &json["root"]["children"][0]["explanation"];
    assert_eq!(*explanation, format!("standby: {holder} has the lease"));
    let known = first.which_child("scheduler").await.unwrap().lease.expect("a lease");
    assert_eq!((known.token, known.holder.as_deref()), (Some(1), None));

    // An orderly stop hands over at the next poll.
    first.stop("over").await.unwrap();
    sleep(ms(501)).await;
    let lines = diary.lines();
    assert!(lines[0].ends_with("scheduler ends"), "{lines:?}");
    assert!(lines[1].ends_with("scheduler starts with 2"), "{lines:?}");
    second.stop("over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_lease_can_t_be_renewed_is_down_before_it_expires() {
    let (leases, diary) = (MemoryLeases::new(), Diary::new());
    let child = diary.child("scheduler", secs(3)).lease(lease(&leases));
    let tree = start(Supervisor::builder("app").child(child).unlimited_restarts()).await;
    sleep(ms(1)).await;
    leases.set_unreachable(true);
    sleep(secs(60)).await;

    assert_eq!(
        diary.lines(),
        ["0ns scheduler starts with 1", "13s scheduler ends"],
        "cancelled at the renew deadline"
    );
    let info = tree.which_child("scheduler").await.unwrap();
    assert_eq!((info.lifecycle, info.failures, info.restarts), (Lifecycle::Discovered, 0, 0));
    let problem = info.lease.expect("a lease").problem.clone();
    assert!(problem.is_some(), "the outage is shown");
    let status = tree.status().await.unwrap();
    assert!(status.is_ready(), "an outage of the engine is no failure");
    let problems: Vec<_> = status.problems().iter().map(ToString::to_string).collect();
    let expected = "app/scheduler: can't ask for the lease `scheduler` for 47s: the store is unreachable \
                    (not essential)";
    assert_eq!(problems, [expected]);

    leases.set_unreachable(false);
    // The standby asks every 10 s at the end of such an outage.
    sleep(secs(10)).await;
    assert_eq!(tree.status().await.unwrap().problems(), []);
    let info = tree.which_child("scheduler").await.unwrap();
    assert_eq!((info.lifecycle, info.incarnation), (Lifecycle::Active, 2));
    assert!(diary.lines()[0].ends_with("scheduler starts with 2"));
    tree.stop("over").await.unwrap();
}

/// A lost lease is requested at once. The jitter of the renewals before it has spread these requests already.
#[tokio::test(start_paused = true)]
async fn after_an_outage_many_members_ask_at_different_moments() {
    const MEMBERS: usize = 40;
    let (leases, diary) = (MemoryLeases::new(), Diary::new());
    let name = |number| format!("lease-{number}");
    let child = |number| {
        let lease = Lease::new(name(number), leases.clone());
        diary.child(&format!("child-{number}"), secs(0)).lease(lease)
    };
    let app = (0..MEMBERS).map(child).fold(Supervisor::builder("app"), SupervisorBuilder::child);
    let tree = start(app).await;
    sleep(secs(300)).await;
    leases.set_unreachable(true);
    let cut_off = Instant::now();
    sleep(secs(15)).await;

    let first_request = |number| {
        let history = leases.history(&name(number));
        let asks = |it: &&LeaseEvent| it.at >= cut_off && it.request == LeaseRequest::Acquire;
        history.iter().find(asks).expect("its lease is lost").at
    };
    let mut requests: Vec<_> = (0..MEMBERS).map(first_request).collect();
    requests.sort();
    let half = requests.windows(MEMBERS / 2).map(|half| half[half.len() - 1] - half[0]).min();
    assert!(half.unwrap() > ms(200), "{requests:?}");
    tree.stop("over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_stops_because_it_has_lost_its_lease_leaves_the_tree_ready() {
    let (leases, diary) = (MemoryLeases::new(), Diary::new());
    let child = diary.child("scheduler", secs(3)).lease(lease(&leases));
    let user = diary.child("user", secs(0)).requires("scheduler");
    let tree = start(Supervisor::builder("app").child(child).child(user)).await;
    sleep(ms(1)).await;
    leases.set_unreachable(true);
    // The renew deadline has passed, and the child takes 3 s to end.
    sleep(secs(11)).await;
    assert_eq!(lifecycle(&tree, "scheduler").await.0, Lifecycle::Deactivating);
    let status = tree.status().await.unwrap();
    assert!(status.is_ready() && status.problems().is_empty(), "{status}");
    sleep(secs(5)).await;
    assert_eq!(lifecycle(&tree, "scheduler").await, (Lifecycle::Discovered, Some("standby")));
    assert!(tree.status().await.unwrap().is_ready());
    tree.stop("over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_ignores_its_cancellation_is_aborted_before_its_lease_expires() {
    let (leases, diary) = (MemoryLeases::new(), Diary::new());
    // A grace that isn't set is 5 s, less the leak timeout.
    let child = diary.child("scheduler", secs(60)).lease(lease(&leases));
    let tree = start(Supervisor::builder("app").child(child)).await;
    let mut events = tree.events();
    sleep(ms(1)).await;
    leases.set_unreachable(true);
    let began = Instant::now();
    loop {
        let event = events.next().await.expect("the tree runs");
        if event.kind.to_string().starts_with("stopped") {
            break;
        }
    }
    assert_eq!(began.elapsed(), secs(14) - ms(1), "10 s and a grace of 4 s");
    tree.stop("over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_loss_stops_that_child_alone_under_every_strategy_and_costs_no_restart() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let (leases, diary) = (MemoryLeases::new(), Diary::new());
        let app = Supervisor::builder("app")
            .strategy(strategy)
            .restarts(0, secs(60))
            .child(diary.child("scheduler", secs(0)).lease(lease(&leases)))
            .child(diary.child("sibling", secs(0)));
        let tree = start(app).await;
        sleep(secs(1)).await;
        leases.take_away("scheduler");
        sleep(secs(5)).await;
        let expected =
            ["0ns sibling starts with -", "0ns scheduler starts with 1", "2s scheduler ends"];
        let mut lines = diary.lines();
        lines.sort();
        let mut expected: Vec<_> = expected.map(str::to_owned).into();
        expected.sort();
        assert_eq!(lines, expected, "{strategy:?}");
        tree.stop("over").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_with_a_lease_is_a_subtree_that_runs_once_and_hands_its_token_down() {
    let (leases, diary) = (MemoryLeases::new(), Diary::new());
    let inner = Supervisor::builder("inner").child(diary.child("worker", secs(0)));
    let jobs = Supervisor::builder("jobs").child(inner).into_child().lease(lease(&leases));
    let tree = start(Supervisor::builder("app").child(jobs)).await;
    sleep(ms(1)).await;
    assert_eq!(diary.lines(), ["0ns worker starts with 1"]);
    leases.take_away("scheduler");
    sleep(secs(3)).await;
    assert_eq!(diary.lines(), ["2s worker ends"]);
    assert_eq!(lifecycle(&tree, "jobs").await, (Lifecycle::Discovered, Some("standby")));
    tree.stop("over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_back_after_the_child_has_ended_and_before_the_tree_has() {
    let (leases, diary) = (MemoryLeases::new(), Diary::new());
    let child = diary.child("scheduler", secs(3)).lease(lease(&leases));
    let tree = start(Supervisor::builder("app").child(child)).await;
    sleep(ms(1)).await;
    let stopping = tokio::spawn({
        let tree = tree.clone();
        async move { tree.stop("over").await }
    });
    sleep(secs(2)).await;
    assert!(leases.holder("scheduler").is_some(), "the child still ends");
    stopping.await.unwrap().unwrap();
    assert_eq!(leases.holder("scheduler"), None);
    assert_eq!(diary.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tree_whose_engine_is_down_stops_in_time() {
    let (leases, diary) = (MemoryLeases::new(), Diary::new());
    let child = diary.child("scheduler", secs(0)).lease(lease(&leases));
    let tree = start(Supervisor::builder("app").child(child)).await;
    sleep(ms(1)).await;
    leases.hang(true);
    let began = Instant::now();
    tree.stop("over").await.unwrap();
    assert!(began.elapsed() <= secs(2), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_grace_that_outlasts_the_lease_is_refused() {
    let leases = MemoryLeases::new();
    let child = |grace: Shutdown| {
        let child = Diary::new().child("scheduler", secs(0)).shutdown(grace);
        Supervisor::builder("app").child(child.lease(lease(&leases))).build()
    };
    assert!(child(Shutdown::Timeout(secs(4))).is_ok());
    assert!(child(Shutdown::BrutalKill).is_ok());
    let error = child(Shutdown::Timeout(secs(5))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`app/scheduler` may take 5s to stop, but its lease expires before that; write a `shutdown` of at most 4s, or \
         a longer `ttl`"
    );
    let error = child(Shutdown::Infinity).unwrap_err();
    assert!(matches!(error, BuildError::GraceBeyondLease { grace: None, .. }), "{error}");

    // Below a supervisor with a lease, too.
    let slow = Diary::new().child("slow", secs(0)).shutdown(secs(9));
    let jobs = Supervisor::builder("jobs").child(slow).into_child().lease(lease(&leases));
    let error = Supervisor::builder("app").child(jobs).build().unwrap_err();
    assert!(matches!(error, BuildError::GraceBeyondLease { .. }), "{error}");
    let jobs = DynamicSupervisor::builder("jobs").defaults(|child| child.shutdown(secs(9)));
    let jobs = jobs.into_child().lease(lease(&leases));
    let error = Supervisor::builder("app").child(jobs).build().unwrap_err();
    assert!(matches!(error, BuildError::GraceBeyondLease { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn wrong_times_are_refused_with_the_value_and_what_to_write_instead() {
    let leases = MemoryLeases::new();
    let build = |lease: Lease| {
        let child = Diary::new().child("scheduler", secs(0)).lease(lease);
        Supervisor::builder("app").child(child).build().unwrap_err()
    };
    let zero = build(lease(&leases).ttl(secs(0)));
    assert!(matches!(zero, BuildError::BadLease { .. }), "{zero:?}");
    assert_eq!(
        zero.to_string(),
        "`app/scheduler`: the `ttl` of the lease is zero; write a duration such as `15s`"
    );
    let short = build(lease(&leases).ttl(secs(10) + ms(500)));
    assert!(matches!(short, BuildError::ShortLease { .. }), "{short:?}");
    assert_eq!(
        short.to_string(),
        "the lease of `app/scheduler` leaves 500ms between its `renew_deadline` and its `ttl`, but an abort may take \
         the `leak_timeout` of 1s; write a longer `ttl`, or a shorter `leak_timeout` on the supervisor"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_on_a_standby_say_that_it_waits_for_its_lease() {
    let (leases, diary) = (MemoryLeases::new(), Diary::new());
    leases.take_away("scheduler");
    let child = diary.child("scheduler", secs(0)).lease(lease(&leases));
    let tree = start(Supervisor::builder("app").child(child)).await;
    let error = tree.otp().restart_child("scheduler").await.unwrap_err();
    assert!(matches!(error, ControlError::Withheld { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "`app/scheduler` is on standby for 0s; it starts when its lease is granted"
    );
    // It can be stopped, and be on standby again.
    tree.stop_child("scheduler").await.unwrap();
    assert_eq!(lifecycle(&tree, "scheduler").await, (Lifecycle::Stopped, Some("stopped manually")));
    tree.otp().restart_child("scheduler").await.unwrap();
    assert_eq!(lifecycle(&tree, "scheduler").await, (Lifecycle::Discovered, Some("standby")));
    tree.stop("over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reload_with_a_grace_that_outlasts_the_lease_changes_nothing() {
    let leases = MemoryLeases::new();
    let child = Diary::new().child("scheduler", secs(0)).lease(lease(&leases));
    let tree = start(Supervisor::builder("app").child(child)).await;
    let plan = |shutdown: &str| {
        let text = format!("[\"app/scheduler\"]\nshutdown = \"{shutdown}\"\n");
        let (tree, config) = (tree.clone(), Config::from_toml(&text, "app.toml"));
        async move { tree.plan(&config).await }
    };
    let error = plan("5s").await.unwrap_err().to_string();
    assert!(error.contains("write a `shutdown` of at most 4s, or a longer `ttl`"), "{error}");
    assert!(plan("4s").await.is_ok());
    tree.stop("over").await.unwrap();
}
