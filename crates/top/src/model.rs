//! What the console's endpoint answers, as types.
//!
//! Every field has a default, and unknown fields are ignored, so that a server of another version can be read.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::text::Text;

/// Declares structs whose fields all have defaults.
macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
            #[serde(default)]
            pub(crate) struct $name {
                $($(#[$attr])* pub(crate) $field: $type,)*
            }
        )*
    };
}

answers! {
    /// `/api/info`
    Info { root: Text, actions: bool, log: bool, identity: Option<Text> }
    /// `/api/status`
    Status { seq: u64, captured_at_ms: u64, program: Program, totals: Totals, root: Node }
    Program { verger: Text, pid: u32, started_at_ms: u64 }
    Totals { children: u64, lifecycle: BTreeMap<Text, u64>, restarts: u64, dead_letters: u64 }
    Node {
        path: Text,
        kind: Text,
        restart: Text,
        /// What is wrong with it, the worst first. The server decides that, for all of its readers.
        problems: Vec<Problem>,
        policy: Option<Value>,
        configured: BTreeMap<Text, Text>,
        significant: bool,
        essential: bool,
        ready: bool,
        lifecycle: Text,
        why: Option<Text>,
        explanation: Option<Text>,
        incarnation: u32,
        restarts: u32,
        failures: u32,
        since_ms: u64,
        status: Option<Text>,
        alarming: Option<Text>,
        healthy: Option<bool>,
        problem: Option<Text>,
        stopping: Option<Stopping>,
        busy: Option<Busy>,
        schedule: Option<Schedule>,
        mailbox: Option<Mailbox>,
        version: Option<Text>,
        strategy: Option<Text>,
        declared: Option<bool>,
        created_at_ms: Option<u64>,
        started_at_ms: Option<u64>,
        last_exit: Option<LastExit>,
        next: Option<Next>,
        limit: Option<Limit>,
        requires: Vec<Text>,
        waits_for: Vec<Text>,
        defined_at: Option<Text>,
        held: bool,
        last_call: Option<LastCall>,
        supervisor: Option<Supervisor>,
        children: Vec<Node>,
    }
    Problem {
        kind: Text,
        problem: Text,
        /// The whole cause, if a failure is the cause.
        cause: Option<Text>,
        since_ms: Option<u64>,
        essential: bool,
    }
    /// A stop that is under way: when its grace is over, and who asked for it.
    Stopping { ends_ms: Option<u64>, by: Option<Text>, reason: Option<Text> }
    /// The wall time that the polls of an incarnation have taken.
    Busy {
        total_ms: u64,
        polls: u64,
        longest_ms: u64,
        /// When the last poll of more than a second has returned.
        long_at_ms: Option<u64>,
        /// For how long a poll lasts that has not returned.
        polling_ms: Option<u64>,
    }
    Mailbox { len: u64, capacity: u64, full_since_ms: Option<u64> }
    Schedule {
        plan: Text,
        next_ms: Option<u64>,
        running: u64,
        runs: u64,
        failed: u64,
        skipped: u64,
        last: Option<LastRun>,
    }
    LastRun { began_ms: u64, took_ms: u64, outcome: Text, problem: Option<Text> }
    LastExit { incarnation: u32, at_ms: u64, lived_ms: Option<u64>, reason: Reason }
    Reason { kind: Text, message: Text }
    Next { attempt: u32, at_ms: u64, delay_ms: u64 }
    Limit { restarts: u64, max_restarts: u64, period_ms: u64, reached: bool }
    LastCall { call: Text, by: Option<Text>, reason: Option<Text>, at_ms: u64 }
    Supervisor {
        strategy: Text,
        restarts_in_period: u64,
        max_restarts: Option<u64>,
        period_ms: u64,
        limit_reached: bool,
        child_limit: Option<ChildLimit>,
        on_child_failure: bool,
        gone: Vec<Gone>,
    }
    /// A limit that holds for each child of a supervisor.
    ChildLimit { max: Value, period: Option<Text>, half_life: Option<Text> }
    Gone { path: Text, incarnation: u32, at_ms: u64, lived_ms: Option<u64>, reason: Option<Reason> }
    /// `/api/child`
    Child { child: Node, spec: Value, events: Vec<Entry>, log: Option<Log> }
    /// `/api/incidents`
    Incidents { from_ms: u64, dropped_before_ms: Option<u64>, incidents: Vec<Incident> }
    Incident {
        path: Text,
        /// More than one: dynamic children of one supervisor, of which `path` is the latest.
        children: u64,
        now: bool,
        problems: Vec<Problem>,
        since_ms: u64,
        last_ms: u64,
        failures: u64,
        attempt: Option<u32>,
        next_ms: Option<u64>,
        cause: Option<Text>,
        /// What has changed before it and during it, the oldest first.
        changes: Vec<Entry>,
    }
    /// `/api/events`
    Events {
        missed: u64,
        /// Entries older than this may have been dropped. The outer option: whether the server knows.
        #[serde(deserialize_with = "known")]
        dropped_before_ms: Option<Option<u64>>,
        entries: Vec<Entry>,
    }
    Entry {
        path: Text,
        incarnation: u32,
        count: u64,
        first_at_ms: u64,
        last_at_ms: u64,
        seq: u64,
        /// Its kind in one word, such as `lives`.
        event: Text,
        text: Text,
        level: Text,
    }
    /// `/api/log?path=…`
    Log { incarnation: u32, current: Vec<LogLine>, previous: Vec<LogLine> }
    /// `/api/log`, `/api/log?under=…`
    LogBelow { lines: Vec<LogLine> }
    LogLine {
        at_ms: u64,
        level: Text,
        target: Text,
        path: Text,
        incarnation: u32,
        message: Text,
        fields: Text,
    }
    /// `/api/dead-letters`
    Letters { missed: u64, letters: Vec<Letter> }
    Letter {
        at_ms: u64,
        path: Text,
        reason: Text,
        event_type: Text,
        error: Option<Text>,
        payload: Option<Text>,
    }
    /// A message of `/api/stream`.
    Change {
        seq: u64,
        captured_at_ms: Option<u64>,
        totals: Option<Totals>,
        children: Vec<Node>,
        removed: Vec<Text>,
        events: Vec<StreamEvent>,
        resync: bool,
    }
    StreamEvent { seq: u64, at_ms: u64, path: Text, incarnation: u32, text: Text }
    /// The answer to `/api/action`.
    Acted { text: Text }
    /// The answer to `/api/plan`. The text has several lines, which `clean_lines` has to clean.
    Plan { text: String }
    /// An error of any endpoint.
    Refusal { error: Text, problem: Text }
}

/// Tells a field that is `null` from one that is missing.
fn known<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

impl LogLine {
    /// The fields after a space, if there are any.
    pub(crate) fn spaced_fields(&self) -> String {
        if self.fields.is_empty() { String::new() } else { format!(" {}", self.fields) }
    }
}

impl Log {
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty() && self.previous.is_empty()
    }
}

impl Node {
    /// The last segment of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether something is wrong, as the server defines it.
    pub(crate) fn is_problem(&self) -> bool {
        !self.problems.is_empty()
    }

    /// What is wrong, the cause first: the failure behind the worst problem, or why the child is down, or else the
    /// problem itself. The state repeats that the child has failed.
    pub(crate) fn cause(&self) -> Option<&str> {
        let worst = self.problems.first()?;
        let is_down = &*worst.kind == "down";
        let failure = worst.cause.as_deref().map(|cause| match is_down {
            true => cause.strip_prefix("failed: ").unwrap_or(cause),
            false => cause,
        });
        let why = self.explanation().filter(|_| is_down).map(|why| &**why);
        failure.or(why).or(Some(&worst.problem))
    }

    /// Why the child is down, unless the [cause](Self::cause) contains it or is contained in it.
    pub(crate) fn more_explanation(&self) -> Option<&str> {
        let is_new = |why: &&str| self.cause().is_none_or(|cause| !why.contains(cause));
        self.explanation().map(|why| &**why).filter(is_new)
    }

    /// Why the child is down. An older server writes no cause with it.
    pub(crate) fn explanation(&self) -> Option<&Text> {
        self.explanation.as_ref().or(self.why.as_ref())
    }

    /// Whether the state needs attention. Such states are written in capitals.
    pub(crate) fn is_loud(&self) -> bool {
        matches!(&*self.lifecycle, "errored" | "restarting") || self.healthy == Some(false)
    }

    /// How the state of the lifecycle is shown: as a word and, so that it can be recognised without colours, a symbol.
    fn appearance(&self) -> (char, &str) {
        match (&*self.lifecycle, self.healthy) {
            ("active", Some(false)) => ('!', "UNHEALTHY"),
            ("active", _) => ('●', "active"),
            ("restarting", _) => ('↻', "RESTARTING"),
            ("errored", _) => ('✗', "ERRORED"),
            (state @ ("activating" | "resolved"), _) => ('◐', state),
            (state @ "deactivating", _) => ('◌', state),
            (state @ "stopped", _) => ('○', state),
            (state, _) => ('·', state),
        }
    }

    pub(crate) fn symbol(&self) -> char {
        self.appearance().0
    }

    pub(crate) fn state(&self) -> &str {
        self.appearance().1
    }

    /// The strategy of a supervisor, or the restart type of a worker.
    pub(crate) fn policy_word(&self) -> &str {
        match &self.supervisor {
            Some(supervisor) => &supervisor.strategy,
            None if &*self.kind == "supervisor" => self.strategy.as_deref().unwrap_or("supervisor"),
            None => &self.restart,
        }
    }

    /// How long the child still waits for its next start.
    pub(crate) fn remaining_ms(&self, now_ms: u64) -> Option<u64> {
        self.next.as_ref().map(|next| next.at_ms.saturating_sub(now_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_ignored_and_missing_ones_have_defaults() {
        let node: Node =
            serde_json::from_str(r#"{"path":"app/db","lifecycle":"errored","new":[1]}"#).unwrap();

        assert_eq!((node.name(), node.state(), node.symbol()), ("db", "ERRORED", '✗'));
        assert!(node.is_loud() && node.next.is_none() && !node.is_problem());
    }

    #[test]
    fn the_cause_of_a_problem_precedes_what_the_state_shows() {
        let cause = |problem: &str, explanation: Option<&str>| {
            let node: Node =
                serde_json::from_str(&format!(r#"{{"problems":[{problem}]}}"#)).unwrap();
            let node = Node { explanation: explanation.map(Text::from), ..node };
            node.cause().map(str::to_owned)
        };
        let down = r#"{"kind":"down","problem":"restarting, attempt 4 in 3s, last: failed: no route","cause":"failed: no route"}"#;
        assert_eq!(cause(down, None), Some("no route".into()));
        let failed =
            r#"{"kind":"failed","problem":"9s ago: failed: no route","cause":"failed: no route"}"#;
        assert_eq!(cause(failed, None), Some("failed: no route".into()));
        let held = r#"{"kind":"down","problem":"stopped, held"}"#;
        assert_eq!(cause(held, Some("held by alice")), Some("held by alice".into()));
        assert_eq!(cause(held, None), Some("stopped, held".into()));
        assert_eq!(cause("", None), None);
    }
}
