//! The state of the live view: messages and keys in, requests out.
//!
//! Knows nothing of terminals, connections and clocks: the time is an argument. [`keys`] defines what each key does,
//! [`actions`] when a child can be acted on, and [`crate::view`] draws the state.
//!
//! # Invariants
//!
//! 1. At most one request for the snapshot and one for the panel are under way.
//! 2. An answer about another child or tab than the selected one is dropped.
//! 3. While the view is paused, nothing on it changes except by a key.

mod actions;
mod keys;
mod rate;
#[cfg(test)]
pub(crate) mod tests;

use std::time::{Duration, Instant};

use crossterm::event::KeyEvent;

pub(crate) use self::actions::{Dialog, question};
pub(crate) use self::keys::KEYS;
use self::rate::Rate;
use crate::cli::Act;
use crate::model::{
    Acted, Change, Child, Events, Incidents, Info, Letters, Log, LogBelow, Node, Plan, Status,
};
use crate::show::{self, Line, Order, Tone};
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
    /// What a tab shows of a child; the path is empty if it is about the whole tree.
    Panel(Tab, String),
    /// The log lines of a supervisor and everything below it.
    LogBelow(String),
    Act(Act),
}

#[derive(Debug)]
pub(crate) enum Answer {
    Snapshot(Box<Status>),
    Acted(Acted),
    Incidents(Incidents),
    Child(Box<Child>),
    Events(Events),
    Log(Log),
    LogBelow(LogBelow),
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
    Incidents,
    Describe,
    Events,
    Log,
    Letters,
    Plan,
}

impl Tab {
    pub(crate) const ALL: [(Self, &str); 6] = [
        (Self::Incidents, "Incidents"),
        (Self::Describe, "Describe"),
        (Self::Events, "Events"),
        (Self::Log, "Log"),
        (Self::Letters, "Letters"),
        (Self::Plan, "Plan"),
    ];

    /// Whether the panel shows the end of the lines: a log is read like a file. In other lists the newest is first.
    pub(crate) fn shows_end(self) -> bool {
        self == Self::Log
    }

    /// Whether the panel is about the whole tree, not about the selected child.
    fn is_of_tree(self) -> bool {
        matches!(self, Self::Incidents | Self::Letters | Self::Plan)
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

/// The live view.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) tree: Tree,
    pub(crate) info: Info,
    pub(crate) connection: Connection,
    pub(crate) mode: Mode,
    pub(crate) filter: String,
    /// The path of the selected child.
    /// A line for several children has one that ends in `#…`.
    pub(crate) selected: String,
    /// The position of the selected child among the rows.
    pub(crate) cursor: usize,
    pub(crate) tab: Tab,
    /// Whether the panel takes the place of the tree.
    pub(crate) zoomed: bool,
    /// How far the panel is scrolled from where it begins: the top, or the end of a list.
    pub(crate) scroll: usize,
    /// The path of the selected incident; without one, the first is selected.
    incident: Option<String>,
    pub(crate) notice: Option<(Tone, String)>,
    /// How many rows and panel lines fit on the screen. Set when it is drawn.
    pub(crate) page: usize,
    pub(crate) panel_page: usize,
    pub(crate) color: bool,
    has_token: bool,
    /// Who acts.
    by: Option<String>,
    /// The time of the server at which the view was paused.
    paused: Option<u64>,
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
    pub(crate) fn new(now: Instant, has_token: bool, by: Option<String>, color: bool) -> Self {
        let schedule = || Schedule { due: now, open: None };
        Self {
            tree: Tree::default(),
            info: Info::default(),
            connection: Connection::Connecting,
            mode: Mode::Browse,
            filter: String::new(),
            selected: String::new(),
            cursor: 0,
            tab: Tab::default(),
            zoomed: false,
            scroll: 0,
            incident: None,
            notice: None,
            page: 1,
            panel_page: 1,
            color,
            has_token,
            by,
            paused: None,
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
            // What is dropped is in the snapshot that is read when the view continues.
            Message::Change(_) if self.paused.is_some() => {}
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
                if self.paused.is_some() {
                    return;
                }
                self.rate.record(status.captured_at_ms, status.totals.restarts);
                self.tree.load(*status);
                self.settle();
            }
            (query @ (Query::Panel(..) | Query::LogBelow(_)), answer) => {
                self.details.close(self.now, INTERVALS_MS[self.interval]);
                if query == self.panel_query() {
                    if self.paused.is_none() || self.panel.is_none() {
                        self.panel = Some(answer);
                    }
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
            let panel = self.panel_query();
            let has_subject = self.tab.is_of_tree() || self.selected_node().is_some();
            // The plan is made once; while the view is paused, everything is read once.
            let is_read_once = self.tab == Tab::Plan || self.paused.is_some();
            let has_panel = has_subject
                && (!is_read_once || self.panel.is_none())
                && (self.tab != Tab::Log || self.info.log);
            for (schedule, query, is_wanted) in [
                (&mut self.snapshot, Query::Snapshot, self.paused.is_none()),
                (&mut self.details, panel, has_panel),
            ] {
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
        let path = row.map_or(String::new(), |&row| self.tree.path_at(row));
        if path != self.selected {
            self.selected = path;
            // What belongs to the whole tree stays.
            if !self.tab.is_of_tree() {
                self.reset_panel();
            }
        }
    }

    /// The request for what the panel shows.
    fn panel_query(&self) -> Query {
        let is_supervisor = || self.selected_node().is_some_and(|it| &*it.kind == "supervisor");
        match self.tab {
            tab if tab.is_of_tree() => Query::Panel(tab, String::new()),
            Tab::Log if is_supervisor() => Query::LogBelow(self.selected.clone()),
            tab => Query::Panel(tab, self.selected.clone()),
        }
    }

    /// Stops the view, or lets it continue with what is true now.
    fn pause(&mut self) {
        self.paused = match self.paused {
            None => Some(self.now_ms()),
            Some(_) => None,
        };
        (self.snapshot.due, self.details.due) = (self.now, self.now);
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// The incidents, and the position of the selected one.
    fn incidents(&self) -> Option<(&Incidents, usize)> {
        let Some(Ok(Answer::Incidents(known))) = &self.panel else { return None };
        let is_selected = |path: &str| self.incident.as_deref() == Some(path);
        let at = known.incidents.iter().position(|it| is_selected(&it.path));
        Some((known, at.unwrap_or(0)))
    }

    fn next_incident(&mut self, by: isize) {
        let Some((known, at)) = self.incidents() else { return };
        let at = at.saturating_add_signed(by).min(known.incidents.len().saturating_sub(1));
        self.incident = known.incidents.get(at).map(|incident| incident.path.to_string());
    }

    /// Selects the child of the selected incident, and describes it.
    fn go_to_incident(&mut self) {
        let selected = self.incidents().and_then(|(known, at)| known.incidents.get(at));
        let Some(path) = selected.map(|incident| incident.path.to_string()) else { return };
        if !self.tree.reveal(&path) {
            let text = format!("{path} was removed; what is known of it is above");
            return self.tell(Tone::Warn, text);
        }
        self.filter.clear();
        self.select(self.tree.position(&path).unwrap_or(self.cursor));
        self.tab = Tab::Describe;
        self.reset_panel();
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
        if let Some(paused) = self.paused {
            return paused;
        }
        let passed = u64::try_from((self.now - self.received).as_millis()).unwrap_or(0);
        self.tree.captured_at_ms + passed
    }

    pub(crate) fn restarts(&self) -> String {
        self.rate.text()
    }

    pub(crate) fn interval_ms(&self) -> u64 {
        INTERVALS_MS[self.interval]
    }

    /// The lines of the panel, and the line that has to be in sight, if there is one.
    pub(crate) fn panel_lines(&self) -> (Vec<Line>, Option<usize>) {
        let now_ms = self.now_ms();
        let newest_first = Order::NewestFirst;
        if let Some((known, selected)) = self.incidents() {
            // Incidents can be selected where the keys don't move in the tree.
            let selected = Some(selected).filter(|_| self.zoomed);
            let (lines, marked) = show::incidents(known, now_ms, selected);
            return (lines, selected.map(|_| marked));
        }
        let lines = match &self.panel {
            None if self.tab == Tab::Log && !self.info.log => {
                let text = "the program keeps no log lines; give its console some: `Console::new().log_lines(lines)`";
                vec![Line::new(Tone::Warn, text)]
            }
            None if self.tab.is_of_tree() || self.selected_node().is_some() => {
                vec![Line::new(Tone::Dim, "…")]
            }
            None if self.selected.is_empty() => vec![Line::new(Tone::Dim, "no child is selected")],
            None => vec![Line::new(Tone::Dim, "several children; press space to list them")],
            Some(Err(error)) => vec![Line::new(Tone::Bad, error.as_str())],
            Some(Ok(Answer::Child(child))) => show::describe(child, now_ms, newest_first),
            Some(Ok(Answer::Events(events))) => show::events(events, now_ms, newest_first),
            Some(Ok(Answer::Log(log))) => show::log_lines(log, usize::MAX),
            Some(Ok(Answer::LogBelow(log))) => show::log_below(&log.lines),
            Some(Ok(Answer::Letters(letters))) => show::letters(letters, newest_first),
            Some(Ok(Answer::Plan(plan))) => show::plan(plan),
            Some(Ok(Answer::Snapshot(_) | Answer::Acted(_) | Answer::Incidents(_))) => Vec::new(),
        };
        (lines, None)
    }
}
