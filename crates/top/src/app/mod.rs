//! The state of the live view: messages and keys in, requests out.
//!
//! Knows nothing of terminals, connections and clocks: the time is an argument. [`keys`] says what each key does,
//! [`crate::view`] draws the state.
//!
//! # Invariants
//!
//! 1. At most one request for the snapshot and one for the panel are under way.
//! 2. An answer about another child or tab than the selected one is dropped.

mod keys;
mod rate;
#[cfg(test)]
pub(crate) mod tests;

use std::time::{Duration, Instant};

use crossterm::event::KeyEvent;

pub(crate) use self::keys::{KEYS, verb};
use self::rate::Rate;
use crate::cli::Act;
use crate::model::{Acted, Change, Child, Events, Info, Letters, Log, Node, Plan, Status};
use crate::show::{self, Line, Tone};
use crate::tree::Tree;

/// How often snapshot and panel may be read, from which `-` and `+` choose.
const INTERVALS_MS: [u64; 6] = [500, 1_000, 2_000, 5_000, 10_000, 30_000];
/// How long a notice is shown.
const NOTICE: Duration = Duration::from_secs(10);
/// A snapshot is read again at the earliest after this multiple of the time that the last one took.
const PAUSE: u32 = 5;

/// When an unanswered request is sent again. The client gives up long before.
const GIVEN_UP: Duration = Duration::from_secs(90);

/// What the children of the program send to its screen.
#[derive(Debug)]
pub(crate) enum Message {
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    Connected(Info),
    Lost(String),
    Change(Box<Change>),
    Answer(Query, Result<Answer, String>),
}

/// Something to read from the console, or to do there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    Snapshot,
    Panel(Tab, String),
    Act(Act),
}

#[derive(Debug)]
pub(crate) enum Answer {
    Snapshot(Box<Status>),
    Acted(Acted),
    Child(Box<Child>),
    Events(Events),
    Log(Log),
    Letters(Letters),
    Plan(Plan),
}

/// What has to be done for the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Ask(Query),
    Quit,
}

/// What the panel shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tab {
    #[default]
    Describe,
    Events,
    Log,
    Letters,
    Plan,
}

impl Tab {
    pub(crate) const ALL: [(Self, &str); 5] = [
        (Self::Describe, "Describe"),
        (Self::Events, "Events"),
        (Self::Log, "Log"),
        (Self::Letters, "Dead letters"),
        (Self::Plan, "Plan"),
    ];

    /// Whether the panel shows the end of the lines, because the newest is last.
    pub(crate) fn is_list(self) -> bool {
        matches!(self, Self::Events | Self::Log | Self::Letters)
    }
}

/// Whether the changes of the tree arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    Connecting,
    Live,
    Lost(String),
}

/// What the keys are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Browse,
    /// The filter is typed.
    Filter,
    /// An action is to be confirmed.
    Confirm(Dialog),
    Help,
}

/// An action that waits for its confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialog {
    pub(crate) act: Act,
    /// The reason; for the stop of the whole tree, the name of the root.
    pub(crate) input: String,
}

/// The live view.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) tree: Tree,
    pub(crate) info: Info,
    pub(crate) connection: Connection,
    pub(crate) mode: Mode,
    pub(crate) filter: String,
    /// The path of the selected child.
    pub(crate) selected: String,
    /// The position of the selected child among the rows.
    pub(crate) cursor: usize,
    pub(crate) tab: Tab,
    /// Whether the panel takes the place of the tree.
    pub(crate) zoomed: bool,
    /// How far the panel is scrolled from where it begins: the top, or the end of a list.
    pub(crate) scroll: usize,
    pub(crate) notice: Option<(Tone, String)>,
    /// How many rows and panel lines fit on the screen. Set when it is drawn.
    pub(crate) page: usize,
    pub(crate) panel_page: usize,
    pub(crate) color: bool,
    has_token: bool,
    panel: Option<Result<Answer, String>>,
    rate: Rate,
    interval: usize,
    now: Instant,
    /// When the time of the server was last received.
    received: Instant,
    notice_until: Instant,
    snapshot: Schedule,
    details: Schedule,
    effects: Vec<Effect>,
}

/// When something is read from the server.
#[derive(Debug)]
struct Schedule {
    due: Instant,
    /// The request that is under way, and when it was sent.
    open: Option<(Query, Instant)>,
}

impl Schedule {
    /// Notes that the request was answered, and when the next one is due.
    fn close(&mut self, now: Instant, interval_ms: u64) {
        let sent = self.open.take().map_or(now, |(_, sent)| sent);
        self.due =
            now + ((now - sent).saturating_mul(PAUSE)).max(Duration::from_millis(interval_ms));
    }
}

impl App {
    pub(crate) fn new(now: Instant, has_token: bool, color: bool) -> Self {
        let schedule = || Schedule { due: now, open: None };
        Self {
            tree: Tree::default(),
            info: Info::default(),
            connection: Connection::Connecting,
            mode: Mode::Browse,
            filter: String::new(),
            selected: String::new(),
            cursor: 0,
            tab: Tab::Describe,
            zoomed: false,
            scroll: 0,
            notice: None,
            page: 1,
            panel_page: 1,
            color,
            has_token,
            panel: None,
            rate: Rate::default(),
            interval: 1,
            now,
            received: now,
            notice_until: now,
            snapshot: schedule(),
            details: schedule(),
            effects: Vec::new(),
        }
    }

    /// Takes a message.
    pub(crate) fn on_message(&mut self, message: Message, now: Instant) {
        self.now = now;
        let before = self.tree.captured_at_ms;
        match message {
            Message::Key(key) => self.on_key(key),
            Message::Resized => {}
            Message::Connected(info) => {
                self.info = info;
                self.connection = Connection::Live;
                (self.snapshot.due, self.details.due) = (now, now);
            }
            Message::Lost(error) => self.connection = Connection::Lost(error),
            Message::Change(change) => {
                if let (Some(at), Some(totals)) = (change.captured_at_ms, &change.totals) {
                    self.rate.record(at, totals.restarts);
                }
                if !self.tree.apply(*change) {
                    self.snapshot.due = now;
                }
                self.settle();
            }
            Message::Answer(query, answer) => self.on_answer(query, answer),
        }
        if self.tree.captured_at_ms != before {
            self.received = now;
        }
    }

    fn on_answer(&mut self, query: Query, answer: Result<Answer, String>) {
        match (query, answer) {
            (Query::Snapshot, answer) => {
                self.snapshot.close(self.now, INTERVALS_MS[self.interval]);
                // The stream reports that the server is gone.
                let Ok(Answer::Snapshot(status)) = answer else { return };
                self.rate.record(status.captured_at_ms, status.totals.restarts);
                self.tree.load(*status);
                self.settle();
            }
            (Query::Panel(tab, path), answer) => {
                self.details.close(self.now, INTERVALS_MS[self.interval]);
                if tab == self.tab && path == self.selected {
                    self.panel = Some(answer);
                } else {
                    self.details.due = self.now;
                }
            }
            (Query::Act(_), Ok(Answer::Acted(acted))) => {
                self.tell(Tone::Good, &*acted.text);
                (self.snapshot.due, self.details.due) = (self.now, self.now);
            }
            (Query::Act(_), Ok(_)) => {}
            (Query::Act(_), Err(error)) => self.tell(Tone::Bad, error),
        }
    }

    /// Lets time pass. Returns what has to be done.
    pub(crate) fn on_time(&mut self, now: Instant) -> Vec<Effect> {
        self.now = now;
        if self.notice_until <= now {
            self.notice = None;
        }
        if self.connection == Connection::Live {
            let panel = Query::Panel(self.tab, self.selected.clone());
            let has_panel = !self.selected.is_empty()
                && (self.tab != Tab::Plan || self.panel.is_none())
                && (self.tab != Tab::Log || self.info.log);
            for (schedule, query, is_wanted) in
                [(&mut self.snapshot, Query::Snapshot, true), (&mut self.details, panel, has_panel)]
            {
                // An answer that has not come by now will not come.
                let is_open =
                    schedule.open.as_ref().is_some_and(|&(_, sent)| now < sent + GIVEN_UP);
                if is_wanted && !is_open && schedule.due <= now {
                    schedule.open = Some((query.clone(), now));
                    self.effects.push(Effect::Ask(query));
                }
            }
        }
        std::mem::take(&mut self.effects)
    }

    /// Selects a child again after the rows have changed: the same one, or the one at its place.
    fn settle(&mut self) {
        let at = self.tree.position(&self.selected).unwrap_or(self.cursor);
        self.select(at);
    }

    fn select(&mut self, at: usize) {
        self.cursor = at.min(self.tree.rows().len().saturating_sub(1));
        let row = self.tree.rows().get(self.cursor);
        let path = row
            .and_then(|&row| self.tree.at(row))
            .map_or(String::new(), |node| node.path.to_string());
        if path != self.selected {
            self.selected = path;
            // What belongs to the whole tree stays.
            if !matches!(self.tab, Tab::Letters | Tab::Plan) {
                self.reset_panel();
            }
        }
    }

    fn reset_panel(&mut self) {
        self.panel = None;
        self.scroll = 0;
        self.details.due = self.now;
    }

    fn tell(&mut self, tone: Tone, text: impl Into<String>) {
        self.notice = Some((tone, text.into()));
        self.notice_until = self.now + NOTICE;
    }

    pub(crate) fn selected_node(&self) -> Option<&Node> {
        self.tree.node(&self.selected)
    }

    /// The time of the server: its last time, and what has passed here since then.
    pub(crate) fn now_ms(&self) -> u64 {
        let passed = u64::try_from((self.now - self.received).as_millis()).unwrap_or(0);
        self.tree.captured_at_ms + passed
    }

    pub(crate) fn restarts(&self) -> String {
        self.rate.text()
    }

    pub(crate) fn interval_ms(&self) -> u64 {
        INTERVALS_MS[self.interval]
    }

    /// The lines of the panel.
    pub(crate) fn panel_lines(&self) -> Vec<Line> {
        let now_ms = self.now_ms();
        match &self.panel {
            None if self.tab == Tab::Log && !self.info.log => {
                let text = "the program keeps no log lines; give its console some: `Console::new().log_lines(lines)`";
                vec![Line::new(Tone::Warn, text)]
            }
            None => vec![Line::new(
                Tone::Dim,
                if self.selected.is_empty() { "no child is selected" } else { "…" },
            )],
            Some(Err(error)) => vec![Line::new(Tone::Bad, error.as_str())],
            Some(Ok(Answer::Child(child))) => show::describe(child, now_ms),
            Some(Ok(Answer::Events(events))) => show::events(events, now_ms),
            Some(Ok(Answer::Log(log))) => show::log_lines(log, usize::MAX),
            Some(Ok(Answer::Letters(letters))) => show::letters(letters),
            Some(Ok(Answer::Plan(plan))) => show::plan(plan),
            Some(Ok(Answer::Snapshot(_) | Answer::Acted(_))) => Vec::new(),
        }
    }
}
