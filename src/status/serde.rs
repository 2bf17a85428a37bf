//! The serialised form of snapshots, their differences, and events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::Location;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::{
    BusyTime, ChildChange, ChildDiff, ChildInfo, ChildKind, ChildSpecInfo, Counts, Event,
    EventKind, EventLevel, Fact, FactChange, GoneChild, LastCall, LastExit, LastRun, LeaseInfo,
    LimitUse, LoggedEvent, MailboxInfo, NextAttempt, Node, Problem, ProblemKind, ProgramInfo,
    RunOutcome, ScheduleInfo, Status, StatusDiff, StopInfo, SupervisorInfo, Totals,
};
use crate::path::Path;
use crate::serde::{Millis, is_default, serialize, words};

serialize!(Status { format, seq, captured_at in ms, program, totals, root });
serialize!(ProgramInfo { verger, pid, started_at in ms, uptime in ms });
serialize!(Totals { children, lifecycle, starts, restarts, failures, dead_letters });

serialize!(ChildInfo {
    path, kind, declared, defined_at = defined_at.map(location), restart, policy,
    configured unless BTreeMap::is_empty,
    significant, essential, ready, lifecycle, why, incarnation, restarts, failures,
    long_polls unless is_default, busy unless Option::is_none, limit,
    created_at in ms, started_at in ms, since in ms, age as for_ms in ms,
    last_exit, next, status, alarming unless Option::is_none, healthy, problem, requires, waits_for,
    awaits unless Option::is_none, held, stopping unless Option::is_none, last_call,
    lease unless Option::is_none, schedule unless Option::is_none,
    mailbox,
    version unless Option::is_none,
    strategy unless Option::is_none;
    has_children
});
serialize!(ChildKind: Worker as worker, Supervisor as supervisor);
serialize!(BusyTime { total in ms, polls, longest in ms, long_at in ms, polling in ms });
serialize!(MailboxInfo { len, capacity, full_since in ms });
serialize!(StopInfo { ends in ms, by, reason });
serialize!(NextAttempt { at in ms, attempt, delay in ms, remaining in ms });
serialize!(LastExit { incarnation, at in ms, lived in ms, reason });
serialize!(LimitUse { restarts, max_restarts, period in ms, reached });
serialize!(LastCall { call, by, reason, at in ms });
serialize!(LeaseInfo { name, token, holder, problem, failing_since in ms });
serialize!(ScheduleInfo {
    plan, next in ms, running, runs, failed, failed_in_a_row, skipped, last,
});
serialize!(LastRun { planned in ms, began in ms, took in ms, outcome, problem });

serialize!(SupervisorInfo {
    strategy, restarts_in_period, max_restarts, period in ms, limit_reached,
    child_limit unless Option::is_none, min_ready unless is_default, lacks_active unless is_default,
    on_child_failure,
    configured unless BTreeMap::is_empty,
    counts, gone,
});
serialize!(Counts { specs, active, restarting, supervisors, workers });
serialize!(GoneChild { path, incarnation, at in ms, lived in ms, reason });

serialize!(ChildSpecInfo {
    name, kind, restart, trigger, shutdown, backoff, significant, essential,
    activation_timeout in ms, watchdog in ms, run_time_limit in ms,
    on_leak, intensity, consecutive_restarts, failing_for in ms, on_exhausted, failure_log, sources,
});
serialize!(Problem { path, kind, problem, cause, since in ms, essential });

serialize!(StatusDiff { from_seq, to_seq, elapsed in ms, children });
serialize!(ChildChange by change {
    Added as added { lifecycle }
    Removed as removed { lifecycle }
    Changed as changed { facts }
});
serialize!(FactChange { fact, before, after });
words!(Fact, ProblemKind, RunOutcome);

serialize!(EventKind by event {
    Moved as moved { from, to, after in ms, reason, wait = wait.map(|(attempt, delay)| Wait { attempt, delay }) }
    GaveUp as gave_up { reason }
    FellBack as fell_back { reason }
    Paused as paused { reason, length in ms }
    Unhealthy as unhealthy { problem }
    Healthy as healthy {}
    Standby as standby { lease, holder, problem }
    LeaseGranted as lease_granted { lease, token }
    LeaseLost as lease_lost { lease, reason }
    Leaked as leaked {}
    LeakEnded as leak_ended {}
    DeactivateFailed as deactivate_failed { reason }
    Removed as removed {}
    Called as called { call, by, reason }
});
serialize!(LoggedEvent { path, incarnation, count, first_at in ms, last_at in ms, seq, level, event, text });
serialize!(EventLevel: Info as info, Warn as warn, Error as error);

/// An attempt and the delay before it.
struct Wait {
    attempt: u32,
    delay: Duration,
}

serialize!(Wait { attempt, delay in ms });

/// `src/main.rs:12`.
fn location(it: &Location<'_>) -> String {
    format!("{}:{}", it.file(), it.line())
}

/// The fields of a child, its explanation, and what is wrong with it.
#[derive(Serialize)]
pub(crate) struct Explained<'a> {
    #[serde(flatten)]
    child: &'a ChildInfo,
    explanation: Option<Cow<'static, str>>,
    problems: Vec<OwnProblem>,
}

impl<'a> From<&'a Node> for Explained<'a> {
    fn from(node: &'a Node) -> Self {
        let mut problems = Vec::new();
        node.add_problems(&mut problems);
        let problems = problems.into_iter().map(OwnProblem).collect();
        Self { child: &node.child, explanation: node.child.explanation(), problems }
    }
}

/// A problem of the child that is written around it.
struct OwnProblem(Problem);

impl Serialize for OwnProblem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WithoutPath<'a> {
            kind: ProblemKind,
            problem: &'a str,
            cause: Option<&'a str>,
            since_ms: Option<u64>,
            essential: bool,
        }

        let Problem { path: _, kind, problem, cause, since, essential } = &self.0;
        let since_ms = since.map(|at| at.millis());
        let cause = cause.as_deref();
        WithoutPath { kind: *kind, problem, cause, since_ms, essential: *essential }
            .serialize(serializer)
    }
}

// These write the fields of another type as if they were their own.

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            #[serde(flatten)]
            child: Explained<'a>,
            supervisor: &'a Option<Box<SupervisorInfo>>,
            children: &'a [Node],
        }

        let Self { supervisor, children, .. } = self;
        Flat { child: self.into(), supervisor, children }.serialize(serializer)
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            seq: u64,
            at_ms: u64,
            path: &'a Path,
            incarnation: u32,
            #[serde(flatten)]
            kind: &'a EventKind,
        }

        let Self { seq, at, path, incarnation, kind } = self;
        Flat { seq: *seq, at_ms: at.millis(), path, incarnation: *incarnation, kind }
            .serialize(serializer)
    }
}

impl Serialize for ChildDiff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            path: &'a Path,
            #[serde(flatten)]
            change: &'a ChildChange,
        }

        let Self { path, change } = self;
        Flat { path, change }.serialize(serializer)
    }
}
