use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::serde::Serialize;
use ::serde::de::DeserializeOwned;

use super::Millis;
use crate::dead_letter::{
    DeadLetter, DeadLetterCounts, DeadLetterEntry, DeadLetterLog, DeadLetterReason, EntryId,
};
use crate::exit::{ExitKind, ExitReason};
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::policy::{
    AutoShutdown, Backoff, ChildRules, Effective, EffectivePolicy, FailureLog, FirstStart,
    Intensity, Jitter, LogLevel, OnExhausted, OnExit, OnLeak, PolicySource, PolicySources, Preset,
    Readiness, Reset, RestartPolicy, RestartType, Shutdown, Start, StartCause, Strategy, Trigger,
};
use crate::status::*;

/// Which of serde's traits a type implements.
#[derive(Debug, PartialEq)]
enum Form {
    Neither,
    Written,
    Read,
    WrittenAndRead,
}

struct Probe<T>(PhantomData<T>);

/// What a type has for which no function of [`Probe`] has the right bounds.
trait Otherwise {
    const IS_WRITTEN: bool = false;
    const IS_READ: bool = false;
}

impl<T> Otherwise for Probe<T> {}

impl<T: Serialize> Probe<T> {
    const IS_WRITTEN: bool = true;
}

impl<T: DeserializeOwned> Probe<T> {
    const IS_READ: bool = true;
}

macro_rules! check {
    ($form:ident: $($type:ty),+ $(,)?) => {$(
        let form = match (<Probe<$type>>::IS_WRITTEN, <Probe<$type>>::IS_READ) {
            (false, false) => Form::Neither,
            (false, true) => Form::Read,
            (true, false) => Form::Written,
            (true, true) => Form::WrittenAndRead,
        };
        assert_eq!(form, Form::$form, "{}", stringify!($type));
    )+};
}

/// A derive that is lost, or one that is new, is a change of the public API that no list of its items shows.
#[test]
fn exactly_these_types_are_written_and_read() {
    check!(Written: Status, Node, ProgramInfo, Totals, SupervisorInfo, Counts, GoneChild);
    check!(Written: ChildInfo, ChildKind, ChildSpecInfo, LastCall, LastExit, LimitUse, MailboxInfo);
    check!(Written: NextAttempt, LeaseInfo, LastRun, ScheduleInfo, Problem, Event, EventKind, StopInfo);
    check!(Written: EventLevel, LoggedEvent, ChildChange, ChildDiff, FactChange, StatusDiff);
    check!(WrittenAndRead: Fact, ProblemKind, RunOutcome, Lifecycle, ExitKind, DeadLetterReason);
    check!(Written: ExitReason, Path);
    check!(Written: DeadLetter, DeadLetterCounts, DeadLetterEntry, EntryId);
    check!(WrittenAndRead: AutoShutdown, FirstStart, LogLevel, OnExit, OnLeak, PolicySource);
    check!(WrittenAndRead: Readiness, RestartType, Start, StartCause, Strategy);
    check!(WrittenAndRead: Backoff, DeadLetterLog, FailureLog, Intensity, Jitter, OnExhausted);
    check!(WrittenAndRead: Preset, Reset, RestartPolicy, Shutdown, Trigger);
    check!(Written: Effective<u32>, PolicySources, EffectivePolicy);
    check!(Neither: EventLog, Subscription<Event>, Effective<EventLog>, crate::ExitError, crate::RunError);
}

#[cfg(feature = "full")]
#[test]
fn exactly_these_types_of_features_are_written_and_read() {
    use crate::config::{Applied, Change, ChangeKind, Config, Effect, Plan, Refusal, Secret};
    use crate::lease::{FencingToken, Lease, LeaseRecord, Located, Owner, Shard, ShardsStatus};
    use crate::log_lines::{ChildLines, LogLine, LogLines};
    use crate::resilience::CircuitState;
    use crate::service::ServiceInfo;

    check!(Written: Applied, Change, ChangeKind, Effect, Plan, Refusal);
    check!(WrittenAndRead: Secret<String>);
    check!(Written: FencingToken, Located, Owner, Shard, ShardsStatus);
    check!(Written: ChildLines, LogLine, ServiceInfo, CircuitState);
    check!(Read: Config);
    check!(Neither: Lease, LeaseRecord, LogLines);
}

fn at(secs: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(secs)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn failed() -> Arc<ExitReason> {
    Arc::new(ExitReason::Failed("no route".into()))
}

fn child(name: &str) -> ChildInfo {
    ChildInfo::sample(Path::root("app").join(name), ChildKind::Worker)
}

/// A place in a source file, which [`Lines`] replaces by one that doesn't change.
fn here() -> &'static Location<'static> {
    Location::caller()
}

/// A child of which everything is known.
fn known() -> ChildInfo {
    let policy = RestartPolicy::new().own_restarts(3, ms(60_000)).failing_for(ms(90_000));
    let rules = ChildRules::of(&Arc::default(), &Arc::default());
    let by_operator =
        || LastCall { call: "hold", by: "operator".into(), reason: Some("swap".into()), at: at(9) };
    ChildInfo {
        defined_at: Some(here()),
        policy: Some(EffectivePolicy::new(rules, Some(Arc::new(policy)))),
        configured: BTreeMap::from([("backoff", "feed.toml:12".into())]),
        why: Some("held"),
        restarts: 2,
        failures: 1,
        busy: Some(Box::new(BusyTime {
            total: ms(70),
            polls: 4,
            longest: ms(40),
            long_at: Some(at(9)),
            polling: Some(ms(30)),
        })),
        limit: Some(LimitUse { restarts: 2, max_restarts: 5, period: ms(60_000), reached: false }),
        created_at: at(1),
        started_at: Some(at(2)),
        since: at(3),
        age: ms(1_500),
        last_exit: Some(LastExit {
            incarnation: 3,
            at: at(4),
            lived: Some(ms(2)),
            reason: failed(),
        }),
        next: Some(NextAttempt { at: at(5), attempt: 2, delay: ms(400), remaining: ms(100) }),
        status: Some("warm".to_owned()),
        healthy: Some(false),
        problem: Some("lag 9s".into()),
        requires: ["db".to_owned()].into(),
        waits_for: vec!["db".to_owned()],
        held: true,
        last_call: Some(by_operator()),
        lease: Some(Arc::new(LeaseInfo::granted(&"jobs".into(), 7))),
        schedule: Some(Box::new(ScheduleInfo {
            plan: "every 10s".into(),
            next: Some(at(6)),
            running: 1,
            runs: 5,
            failed: 2,
            failed_in_a_row: 1,
            skipped: 3,
            last: Some(LastRun {
                planned: at(7),
                began: at(8),
                took: ms(20),
                outcome: RunOutcome::Failed,
                problem: Some("timeout".into()),
            }),
        })),
        mailbox: Some(MailboxInfo { len: 1, capacity: 8, full_since: Some(at(5)) }),
        version: Some("1.2".into()),
        has_children: true,
        ..child("known")
    }
}

fn supervisor() -> SupervisorInfo {
    SupervisorInfo {
        strategy: "dynamic",
        restarts_in_period: 1,
        max_restarts: Some(5),
        period: ms(300_000),
        limit_reached: false,
        child_limit: None,
        min_ready: 0,
        lacks_active: 0,
        on_child_failure: true,
        configured: BTreeMap::new(),
        counts: Counts { specs: 5, active: 4, restarting: 3, supervisors: 2, workers: 1 },
        gone: Vec::new(),
    }
}

fn tree() -> Status {
    let gone = |lived, reason| {
        let path = Path::root("app").join("gone");
        GoneChild { path, incarnation: 2, at: at(3), lived, reason }
    };
    let whole = SupervisorInfo {
        child_limit: Some(Intensity::sliding(12, ms(300_000))),
        min_ready: 3,
        lacks_active: 2,
        configured: BTreeMap::from([("restarts", "call".into())]),
        gone: vec![gone(Some(ms(7)), Some(failed())), gone(None, None)],
        ..supervisor()
    };
    let node = |child, supervisor| Node { child, supervisor, children: Vec::new() };
    let leaves = vec![node(known(), None), node(child("pool"), Some(Box::new(supervisor())))];
    let root = Node {
        child: ChildInfo::sample(Path::root("app"), ChildKind::Supervisor),
        supervisor: Some(Box::new(whole)),
        children: leaves,
    };
    let mut status = Status::sample(root);
    status.totals.lifecycle.insert(Lifecycle::Active, 2);
    status
}

fn events() -> Vec<EventKind> {
    let text = |text: &str| -> Arc<str> { text.into() };
    let moved = |reason, wait| EventKind::Moved {
        from: Lifecycle::Errored,
        to: Lifecycle::Restarting,
        after: ms(12),
        reason,
        wait,
    };
    vec![
        moved(Some(failed()), Some((2, ms(400)))),
        moved(None, None),
        EventKind::GaveUp { reason: failed() },
        EventKind::FellBack { reason: failed() },
        EventKind::Paused { reason: failed(), length: ms(15_000) },
        EventKind::Unhealthy { problem: text("lag 9s") },
        EventKind::Healthy,
        EventKind::Standby { lease: text("jobs"), holder: Some(text("web-2")), problem: None },
        EventKind::LeaseGranted { lease: text("jobs"), token: 7 },
        EventKind::LeaseLost { lease: text("jobs"), reason: text("expired") },
        EventKind::Leaked,
        EventKind::LeakEnded,
        EventKind::DeactivateFailed { reason: failed() },
        EventKind::Removed,
        EventKind::Called { call: "hold", by: text("operator"), reason: None },
    ]
}

fn settings() -> ChildSpecInfo {
    let source = PolicySource::Spec;
    ChildSpecInfo {
        name: "db".to_owned(),
        kind: ChildKind::Worker,
        restart: RestartType::Transient,
        trigger: Trigger::from(RestartType::Transient).on(ExitKind::Hung, OnExit::FailSupervisor),
        shutdown: Shutdown::Timeout(ms(90_000)),
        backoff: Backoff::default(),
        significant: false,
        essential: true,
        activation_timeout: Some(ms(10_000)),
        watchdog: None,
        run_time_limit: Some(ms(1)),
        on_leak: OnLeak::default(),
        intensity: Some(Intensity::decaying(2.5, ms(30_000))),
        consecutive_restarts: Some(4),
        failing_for: Some(ms(3_600_000)),
        on_exhausted: OnExhausted::Pause(ms(15_000)),
        failure_log: FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3),
        sources: PolicySources {
            restart: source,
            backoff: source,
            intensity: source,
            consecutive_restarts: PolicySource::Default,
            failing_for: source,
            on_exhausted: source,
            failure_log: source,
        },
    }
}

/// One JSON document a line, because a comparison of values would not notice another order of fields.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push(&mut self, value: &impl Serialize) {
        let line = serde_json::to_string(value).unwrap();
        let place = format!("{}:{}", here().file(), here().line());
        self.0 += &line.replace(&place, "src/main.rs:12");
        self.0.push('\n');
    }
}

#[test]
fn each_type_is_written_with_the_same_fields_in_the_same_order() {
    let mut lines = Lines::default();
    let (before, after) = (tree(), tree());
    lines.push(&before);
    lines.push(&settings());
    for (number, kind) in (1_u64..).zip(events()) {
        let path = Path::root("app").join("db");
        lines.push(&Event { seq: number, at: at(number), path, incarnation: 2, kind });
    }
    for level in [EventLevel::Info, EventLevel::Warn, EventLevel::Error] {
        lines.push(&LoggedEvent {
            path: Path::root("app"),
            incarnation: 1,
            count: 2,
            first_at: at(1),
            last_at: at(2),
            seq: 9,
            level,
            event: "active",
            text: "active".to_owned(),
        });
    }
    let mut changed = after.clone();
    changed.captured_at = at(1);
    changed.root.children.remove(0);
    changed.root.children[0].child.held = true;
    changed.root.children.push(Node { child: child("new"), supervisor: None, children: vec![] });
    lines.push(&before.diff(&changed));
    lines.push(&before.problems());
    lines.push(&Lifecycle::ALL);
    lines.push(&Preset::otp());
    insta::assert_snapshot!(lines.0);
}

#[cfg(feature = "full")]
#[test]
fn each_type_of_a_feature_is_written_with_the_same_fields() {
    use crate::lease::{FencingToken, Located, Owner, Shard, ShardsStatus};
    use crate::resilience::CircuitState;
    use crate::service::ServiceInfo;

    let mut lines = Lines::default();
    lines.push(&ServiceInfo {
        scope: Path::root("app"),
        service: "Pool",
        name: Some("main".to_owned()),
        provider: Path::root("app").join("pool"),
        incarnation: 3,
    });
    lines.push(&[CircuitState::Closed, CircuitState::Open, CircuitState::HalfOpen]);
    let owner = Some(Owner::of("address=10.0.0.7:8080 web-1/4711-5f2c08aa:app/billing"));
    let shard = Shard::of("alice", 16);
    lines.push(&FencingToken::new(7));
    lines.push(&[Located::Here, Located::Elsewhere { owner: owner.clone() }, Located::Nowhere]);
    lines.push(&ShardsStatus {
        shards: 16,
        slot: Some(1),
        share: 8,
        here: vec![shard],
        waiting: vec![(shard, owner.clone())],
        ending: vec![shard],
        members: vec![(2, owner), (3, None)],
    });
    insta::assert_snapshot!(lines.0);
}

#[test]
fn a_word_is_written_and_read_as_it_is_displayed() {
    fn all<T>(values: &[T])
    where
        T: Copy + Debug + Display + PartialEq + Serialize + DeserializeOwned,
    {
        assert!(values.len() > 1);
        for &value in values {
            let word = value.to_string();
            assert_eq!(serde_json::to_value(value).unwrap(), word);
            assert_eq!(serde_json::from_value::<T>(word.into()).unwrap(), value);
        }
    }

    all(Strategy::ALL);
    all(AutoShutdown::ALL);
    all(Start::ALL);
    all(FirstStart::ALL);
    all(Readiness::ALL);
    all(StartCause::ALL);
    all(OnLeak::ALL);
    all(LogLevel::ALL);
    all(RestartType::ALL);
    all(OnExit::ALL);
    all(PolicySource::ALL);
    all(ExitKind::ALL);
    all(DeadLetterReason::ALL);
    all(Fact::ALL);
    all(RunOutcome::ALL);
    all(&Lifecycle::ALL);
}

#[test]
fn an_unknown_word_is_an_error_that_lists_the_words() {
    fn json<T: DeserializeOwned + Debug>(word: &str) -> String {
        serde_json::from_value::<T>(word.into()).unwrap_err().to_string()
    }

    let expected =
        "unknown strategy `OneForAll`; write `one_for_one`, `one_for_all` or `rest_for_one`";
    assert_eq!(json::<Strategy>("OneForAll"), expected);
    let error = toml::Value::from("OneForAll").try_into::<Strategy>().unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
    let expected = "unknown restart type `Permanent`; write `permanent`, `always`, `transient`, `on_failure`, \
                    `temporary`, `never`, `no`, `on_stop`, `on_success`, `on_abnormal`, `on_abort` or `on_watchdog`";
    assert_eq!(json::<RestartType>("Permanent"), expected);
    let expected = "unknown variant `up`, expected one of `discovered`, `resolved`, `activating`, `active`, \
                    `errored`, `restarting`, `deactivating`, `stopped`";
    assert_eq!(json::<Lifecycle>("up"), expected);
}

#[test]
fn a_time_is_milliseconds_since_the_epoch() {
    assert_eq!((UNIX_EPOCH + Duration::from_micros(1_500_999)).millis(), 1500);
    assert_eq!((UNIX_EPOCH - Duration::from_secs(1)).millis(), 0);
    assert_eq!(Some(at(1)).millis(), Some(1_000));
}

#[test]
fn a_duration_is_milliseconds() {
    assert_eq!(Duration::from_micros(1_999).millis(), 1);
    assert_eq!(Duration::MAX.millis(), u64::MAX, "more than fits");
}
