//! The live view without a terminal: messages in, screens and requests out.

mod actions;
mod panel;
mod rows;
mod screens;

use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::model::{
    Busy, Entry, Incident, LastExit, LogLine, Mailbox, Next, Problem, Reason, Totals,
};
use crate::tree::tests::{node, status, supervisor};
use crate::view;

/// 2026-01-31T12:00:00Z
const NOON: u64 = 1_769_860_800_000;

/// What the view asks for first.
const INCIDENTS: Query = Query::Panel(Tab::Incidents, String::new());

struct Fixture {
    app: App,
    now: Instant,
}

impl Fixture {
    /// A view that is connected and has the sample tree.
    fn live() -> Self {
        let mut fixture = Self::connecting(true);
        fixture.send(Message::Connected(Info {
            root: "app".into(),
            actions: true,
            log: true,
            identity: None,
        }));
        // Both are asked for without waiting for the other.
        assert_eq!(fixture.effects(), [Effect::Ask(Query::Snapshot), Effect::Ask(INCIDENTS)]);
        let snapshot = Answer::Snapshot(Box::new(sample()));
        fixture.send(Message::Answer(Query::Snapshot, Ok(snapshot)));
        fixture.send(Message::Answer(INCIDENTS, Ok(Answer::Incidents(incidents()))));
        fixture
    }

    fn connecting(has_token: bool) -> Self {
        let now = Instant::now();
        Self { app: App::new(now, has_token, Some("alice".into()), false), now }
    }

    fn send(&mut self, message: Message) {
        self.app.on_message(message, self.now);
    }

    /// Answers the query, which the view must have sent.
    fn answer(&mut self, query: Query, answer: Answer) {
        let effects = self.effects();
        assert!(
            effects.contains(&Effect::Ask(query.clone())),
            "{query:?} is not among {effects:?}"
        );
        self.send(Message::Answer(query, Ok(answer)));
    }

    fn effects(&mut self) -> Vec<Effect> {
        self.app.on_time(self.now)
    }

    fn pass(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    fn press(&mut self, key: KeyCode) {
        self.send(Message::Key(KeyEvent::new(key, KeyModifiers::NONE)));
    }

    /// Reads the tree again, as it is now.
    fn load(&mut self, root: Node) {
        self.pass(60_000);
        let seq = self.app.tree.captured_at_ms + 60_000;
        self.answer(Query::Snapshot, Answer::Snapshot(Box::new(status(seq, root))));
    }

    /// The names of the rows, from the screen.
    fn names(&mut self) -> Vec<String> {
        let rows = self.app.tree.rows().iter();
        rows.map(|&row| self.app.tree.path_at(row)).collect()
    }

    fn keys(&mut self, keys: &str) {
        for key in keys.chars() {
            self.press(KeyCode::Char(key));
        }
    }

    /// Draws the view, and returns what is on the screen.
    fn screen(&mut self, width: u16, height: u16) -> String {
        _ = self.app.on_time(self.now);
        let text = self.terminal(width, height).backend().to_string();
        let unquoted = text.lines().map(|line| line.trim_matches('"').trim_end());
        unquoted.map(|line| format!("{line}\n")).collect()
    }

    fn terminal(&mut self, width: u16, height: u16) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view::draw(&mut self.app, frame)).unwrap();
        terminal
    }

    fn footer(&mut self) -> String {
        self.screen(120, 20).lines().last().unwrap_or_default().trim().to_owned()
    }
}

fn problem(text: &str) -> Problem {
    let cause = text.split_once("last: ").map(|(_, cause)| cause.into());
    let since_ms = Some(NOON - 1_000);
    Problem { kind: "down".into(), problem: text.into(), cause, since_ms, essential: true }
}

/// One that lasts, and one of ten minutes ago.
fn incidents() -> Incidents {
    let change = Entry {
        path: "app/ingest/mqtt".into(),
        count: 1,
        last_at_ms: NOON - 245_000,
        first_at_ms: NOON - 245_000,
        event: "reloaded".into(),
        text: "reloaded: broker".into(),
        ..Entry::default()
    };
    let now = Incident {
        path: "app/ingest/mqtt".into(),
        children: 1,
        now: true,
        problems: vec![problem("restarting, attempt 4 in 4.2s, last: failed: no route to host")],
        since_ms: NOON - 240_000,
        last_ms: NOON - 800,
        failures: 4,
        attempt: Some(4),
        next_ms: Some(NOON + 4_200),
        cause: Some("failed: no route to host".into()),
        changes: vec![change],
    };
    let past = Incident {
        path: "app/db".into(),
        children: 1,
        since_ms: NOON - 600_000,
        last_ms: NOON - 600_000,
        failures: 1,
        cause: Some("failed: TLS certificate expired: CN=db.example.com".into()),
        ..Incident::default()
    };
    Incidents { from_ms: NOON - 900_000, dropped_before_ms: None, incidents: vec![now, past] }
}

fn sample() -> Status {
    let since = |ms_ago| NOON - ms_ago;
    let db = Node {
        since_ms: since(8_100_000),
        status: Some("pool 8/10".into()),
        ..node("app/db", "active")
    };
    let writer = Node {
        since_ms: since(38_000),
        restarts: 2,
        incarnation: 3,
        mailbox: Some(Mailbox { len: 18, capacity: 20, full_since_ms: None }),
        ..node("app/ingest/writer", "active")
    };
    let reason = Reason { kind: "failed".into(), message: "failed: no route to host".into() };
    let mqtt = Node {
        since_ms: since(1_000),
        restarts: 5,
        failures: 4,
        incarnation: 6,
        next: Some(Next { attempt: 4, at_ms: NOON + 4_200, delay_ms: 5_000 }),
        last_exit: Some(LastExit {
            incarnation: 6,
            at_ms: since(800),
            lived_ms: Some(120),
            reason,
        }),
        problems: vec![problem("restarting, attempt 4 in 4.2s, last: failed: no route to host")],
        ..node("app/ingest/mqtt", "restarting")
    };
    let http = Node {
        since_ms: since(8_100_000),
        held: true,
        explanation: Some("held by alice (typed): maintenance".into()),
        problems: vec![problem("stopped, held")],
        ..node("app/http", "stopped")
    };
    let mut ingest = supervisor("app/ingest", vec![writer, mqtt]);
    ingest.since_ms = since(8_100_000);
    let mut root = supervisor("app", vec![db, ingest, http]);
    root.since_ms = since(8_100_000);
    let lifecycle = [("active", 3), ("restarting", 1), ("stopped", 1)];
    let totals = Totals {
        children: 5,
        lifecycle: lifecycle.into_iter().map(|(state, count)| (state.into(), count)).collect(),
        restarts: 7,
        dead_letters: 3,
    };
    let mut status = status(10, root);
    (status.captured_at_ms, status.totals) = (NOON, totals);
    status.program.started_at_ms = since(8_100_000);
    status
}

fn described() -> Child {
    let event = Entry {
        path: "app/ingest/mqtt".into(),
        incarnation: 6,
        count: 12,
        first_at_ms: NOON - 240_000,
        last_at_ms: NOON - 800,
        text: "restarting in 5s (attempt 4): no route to host".into(),
        level: "warn".into(),
        ..Entry::default()
    };
    let line = LogLine {
        at_ms: NOON - 900,
        level: "INFO".into(),
        message: "connecting".into(),
        fields: "broker=10.0.0.1".into(),
        ..LogLine::default()
    };
    Child {
        child: sample().root.children.remove(1).children.remove(1),
        events: vec![event],
        log: Some(Log { incarnation: 6, current: vec![line], previous: Vec::new() }),
        ..Child::default()
    }
}
