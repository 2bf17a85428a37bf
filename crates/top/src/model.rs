//! What the console's endpoint answers, as types.
//!
//! Every field has a default, and unknown fields are ignored, so that a server of another version can be read.

use std::collections::BTreeMap;

use serde::Deserialize;
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
    Info { root: Text, actions: bool, log: bool }
    /// `/api/status`
    Status { seq: u64, captured_at_ms: u64, program: Program, totals: Totals, root: Node }
    Program { verger: Text, pid: u32, started_at_ms: u64 }
    Totals { children: u64, lifecycle: BTreeMap<Text, u64>, restarts: u64, dead_letters: u64 }
    Node {
        path: Text,
        kind: Text,
        restart: Text,
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
    Mailbox { len: u64, capacity: u64 }
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
        gone: Vec<Gone>,
    }
    Gone { path: Text, incarnation: u32, at_ms: u64, lived_ms: Option<u64>, reason: Option<Reason> }
    /// `/api/child`
    Child { child: Node, spec: Value, events: Vec<Entry>, log: Option<Log> }
    /// `/api/events`
    Events { missed: u64, entries: Vec<Entry> }
    Entry {
        path: Text,
        incarnation: u32,
        count: u64,
        first_at_ms: u64,
        last_at_ms: u64,
        seq: u64,
        text: Text,
        level: Text,
    }
    /// `/api/log?path=…`
    Log { incarnation: u32, current: Vec<LogLine>, previous: Vec<LogLine> }
    LogLine { at_ms: u64, level: Text, target: Text, incarnation: u32, message: Text, fields: Text }
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
        assert!(node.is_loud() && node.next.is_none());
    }
}
