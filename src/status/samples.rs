//! Snapshots for the tests of the views.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use super::{
    ChildInfo, ChildKind, Counts, LastCall, LastExit, LimitUse, MailboxInfo, NextAttempt, Node,
    Status, SupervisorInfo,
};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::path::Path;

/// A text that closes strings and elements where it isn't escaped.
pub(super) const HOSTILE: &str = "\"<script>alert('&')</script>\\\n\u{1b}[31m\u{202e}%%{init}%%`#1";

/// Enough for a view, and too little for a thousand calls.
const SMALL_STACK: usize = 256 * 1024;

pub(super) fn status(root: Node) -> Status {
    let mut status = Status::sample(root);
    status.program.pid = 4711;
    status.program.uptime = Duration::from_secs(8_100);
    status.totals.restarts = 5;
    status
}

/// A worker, or a supervisor if it has children.
pub(super) fn node(path: &Path, children: Vec<Node>) -> Node {
    let kind = if children.is_empty() { ChildKind::Worker } else { ChildKind::Supervisor };
    let supervisor = (!children.is_empty()).then(|| Box::new(supervisor("one_for_one")));
    Node { child: ChildInfo::sample(path.clone(), kind), supervisor, children }
}

fn supervisor(strategy: &'static str) -> SupervisorInfo {
    SupervisorInfo {
        strategy,
        restarts_in_period: 0,
        max_restarts: Some(5),
        period: Duration::from_secs(420),
        limit_reached: false,
        child_limit: None,
        min_ready: 0,
        lacks_active: 0,
        on_child_failure: false,
        configured: Default::default(),
        counts: Counts::default(),
        gone: Vec::new(),
    }
}

/// The end of the first incarnation.
pub(super) fn ended(reason: ExitReason) -> LastExit {
    LastExit { incarnation: 1, at: UNIX_EPOCH, lived: None, reason: Arc::new(reason) }
}

/// A supervisor below a supervisor, and so on, `levels` of them.
pub(super) fn deep(levels: usize) -> Status {
    let mut paths = vec![Path::root("s0")];
    for level in 1..levels {
        paths.push(paths[level - 1].join(&format!("s{level}")));
    }
    let lowest = node(&paths[levels - 1].join("w"), Vec::new());
    status(paths.iter().rev().fold(lowest, |below, path| node(path, vec![below])))
}

/// A supervisor with so many workers.
pub(super) fn wide(workers: usize) -> Status {
    let app = Path::root("app");
    let worker = |serial| node(&app.join(&format!("conn#{serial}")), Vec::new());
    status(node(&app, (1..=workers).map(worker).collect()))
}

/// A supervisor with one worker, whose name, status and error are hostile.
pub(super) fn hostile() -> Status {
    let app = Path::root("app");
    let mut worker = node(&app.join("\"<b>&\\"), Vec::new());
    worker.child.status = Some(HOSTILE.to_owned());
    worker.child.last_exit = Some(ended(ExitReason::Panicked(HOSTILE.into())));
    status(node(&app, vec![worker]))
}

/// A small service in trouble.
pub(super) fn service() -> Status {
    let app = Path::root("app");
    let ingest = app.join("ingest");
    let long = Duration::from_secs(8_100);

    let mut db = node(&app.join("db"), Vec::new());
    db.child.age = long;
    db.child.status = Some("pool 8/10".to_owned());
    let mut writer = node(&ingest.join("writer"), Vec::new());
    writer.child.age = Duration::from_secs(38);
    (writer.child.incarnation, writer.child.restarts) = (3, 2);
    writer.child.last_exit = Some(ended(ExitReason::Panicked("index out of bounds".into())));
    writer.child.mailbox = Some(MailboxInfo { len: 12, capacity: 64, full_since: None });
    let mut mqtt = node(&ingest.join("mqtt"), Vec::new());
    mqtt.child.lifecycle = Lifecycle::Restarting;
    (mqtt.child.incarnation, mqtt.child.restarts) = (4, 3);
    mqtt.child.last_exit = Some(ended(ExitReason::ActivationFailed("no route to host".into())));
    let (delay, remaining) = (Duration::from_secs(8), Duration::from_millis(4_200));
    mqtt.child.next = Some(NextAttempt { at: UNIX_EPOCH, attempt: 4, delay, remaining });
    let mut ingest = node(&ingest, vec![writer, mqtt]);
    ingest.child.age = long;
    let limits = ingest.supervisor.as_mut().expect("it has children");
    limits.strategy = "rest_for_one";
    limits.restarts_in_period = 5;
    limits.limit_reached = true;
    let mut cache = node(&app.join("cache"), Vec::new());
    cache.child.age = Duration::from_secs(60);
    cache.child.healthy = Some(false);
    let mut feed = node(&app.join("feed"), Vec::new());
    feed.child.lifecycle = Lifecycle::Errored;
    feed.child.why = Some("parked");
    feed.child.last_exit = Some(ended(ExitReason::Failed("no such table".into())));
    let mut migrate = node(&app.join("migrate"), Vec::new());
    migrate.child.lifecycle = Lifecycle::Stopped;
    migrate.child.age = long;
    migrate.child.last_exit = Some(ended(ExitReason::Normal));
    let mut http = node(&app.join("http"), Vec::new());
    http.child.lifecycle = Lifecycle::Activating;
    let mut search = node(&app.join("search"), Vec::new());
    search.child.lifecycle = Lifecycle::Discovered;
    search.child.incarnation = 0;
    search.child.waits_for = vec!["feed".to_owned(), "http".to_owned()];
    let mut old = node(&app.join("old"), Vec::new());
    old.child.lifecycle = Lifecycle::Deactivating;

    let mut report = node(&app.join("report"), Vec::new());
    report.child.lifecycle = Lifecycle::Stopped;
    (report.child.why, report.child.held) = (Some("held"), true);
    report.child.last_call = Some(LastCall {
        call: "hold",
        by: "operator".into(),
        reason: Some("disk swap".into()),
        at: UNIX_EPOCH,
    });
    let period = Duration::from_secs(60);
    report.child.limit = Some(LimitUse { restarts: 2, max_restarts: 5, period, reached: false });

    let mut app = node(&app, vec![db, ingest, cache, feed, migrate, http, search, old, report]);
    app.child.age = long;
    status(app)
}

/// Runs a test where a recursion over a thousand levels would overflow the stack.
pub(super) fn in_a_small_stack(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(SMALL_STACK);
        let thread = thread.spawn_scoped(scope, test).expect("a thread can be spawned");
        thread.join().expect("the test passes");
    });
}

#[test]
fn the_look_of_each_state_occurs_in_the_service() {
    use super::svg::Look;

    let service = service();
    for look in Look::ALL {
        assert!(service.walk().any(|it| Look::of(&it.node.child) == look), "{look:?}");
    }
}
