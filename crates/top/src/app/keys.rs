//! What each key does.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{App, Dialog, Effect, INTERVALS_MS, Mode, Query, Tab};
use crate::cli::Act;
use crate::show::Tone;

/// The longest reason or filter.
const MAX_INPUT: usize = 200;

/// The keys and what they do, as the help shows them.
pub(crate) const KEYS: [(&str, &str); 20] = [
    ("j k ↓ ↑", "next, previous child"),
    ("g G", "first, last child"),
    ("PgDn PgUp", "a page down, up"),
    ("space", "fold or unfold a supervisor"),
    ("enter", "describe the child on the whole screen"),
    ("/", "filter by path or state; esc clears it"),
    ("e", "events of the child and below"),
    ("l", "log lines of the child"),
    ("d", "dead letters of the tree"),
    ("p", "plan of the configuration file"),
    ("tab", "the next of these panels"),
    ("J K", "scroll the panel"),
    ("r", "restart; a supervisor with all below"),
    ("s", "stop; the root: the whole tree"),
    ("n", "resume: start a child now that is down or waits"),
    ("h", "hold: no automatic start; again: release"),
    ("c", "reset counters of failures and restarts"),
    ("- +", "read less often, more often"),
    ("?", "this help"),
    ("q", "quit"),
];

impl App {
    pub(super) fn on_key(&mut self, key: KeyEvent) {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            if key.code == KeyCode::Char('c') {
                self.effects.push(Effect::Quit);
            }
            return;
        }
        match &mut self.mode {
            Mode::Browse => self.on_browse(key.code),
            Mode::Filter => self.on_filter(key.code),
            Mode::Confirm(_) => self.on_confirm(key.code),
            Mode::Help => self.mode = Mode::Browse,
        }
    }

    fn on_browse(&mut self, key: KeyCode) {
        let last = self.tree.rows().len().saturating_sub(1);
        match key {
            KeyCode::Char('q') => self.effects.push(Effect::Quit),
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('j') | KeyCode::Down if self.zoomed => self.scroll_by(1),
            KeyCode::Char('k') | KeyCode::Up if self.zoomed => self.scroll_by(-1),
            KeyCode::PageDown if self.zoomed => self.scroll_by(self.panel_page.cast_signed()),
            KeyCode::PageUp if self.zoomed => self.scroll_by(-self.panel_page.cast_signed()),
            KeyCode::Char('J') => self.scroll_by(1),
            KeyCode::Char('K') => self.scroll_by(-1),
            KeyCode::Char('j') | KeyCode::Down => self.select(self.cursor + 1),
            KeyCode::Char('k') | KeyCode::Up => self.select(self.cursor.saturating_sub(1)),
            KeyCode::PageDown => self.select(self.cursor + self.page),
            KeyCode::PageUp => self.select(self.cursor.saturating_sub(self.page)),
            KeyCode::Char('g') | KeyCode::Home => self.select(0),
            KeyCode::Char('G') | KeyCode::End => self.select(last),
            KeyCode::Char(' ') => {
                self.tree.fold(&self.selected);
                self.settle();
            }
            KeyCode::Enter => {
                let leaves = self.zoomed && self.tab == Tab::Describe;
                self.open(Tab::Describe);
                self.zoomed = !leaves;
            }
            KeyCode::Esc if self.zoomed => self.zoomed = false,
            KeyCode::Esc => self.set_filter(String::new()),
            KeyCode::Char('e') => self.open(Tab::Events),
            KeyCode::Char('l') => self.open(Tab::Log),
            KeyCode::Char('d') => self.open(Tab::Letters),
            KeyCode::Char('p') => self.open(Tab::Plan),
            KeyCode::Tab => {
                let at = Tab::ALL.iter().position(|&(tab, _)| tab == self.tab).unwrap_or(0);
                self.open(Tab::ALL[(at + 1) % Tab::ALL.len()].0);
            }
            KeyCode::Char('-') => self.set_interval(self.interval + 1),
            KeyCode::Char('+' | '=') => self.set_interval(self.interval.saturating_sub(1)),
            KeyCode::Char('r') => self.ask("restart"),
            KeyCode::Char('s') => self.ask("stop"),
            KeyCode::Char('n') => self.ask("resume"),
            KeyCode::Char('c') => self.ask("reset"),
            KeyCode::Char('h') => {
                let is_held = self.selected_node().is_some_and(|node| node.held);
                self.ask(if is_held { "release" } else { "hold" });
            }
            _ => {}
        }
    }

    /// Scrolls the panel down, or up. A list is scrolled from its end.
    fn scroll_by(&mut self, lines: isize) {
        let lines = if self.tab.is_list() { -lines } else { lines };
        self.scroll = self.scroll.saturating_add_signed(lines);
    }

    fn open(&mut self, tab: Tab) {
        // The plan is made when it is opened, not again and again.
        if tab != self.tab || tab == Tab::Plan {
            self.tab = tab;
            self.reset_panel();
        }
    }

    fn set_interval(&mut self, index: usize) {
        self.interval = index.min(INTERVALS_MS.len() - 1);
        (self.snapshot.due, self.details.due) = (self.now, self.now);
    }

    fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.tree.set_filter(&self.filter);
        self.settle();
    }

    fn on_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.mode = Mode::Browse,
            KeyCode::Esc => {
                self.mode = Mode::Browse;
                self.set_filter(String::new());
            }
            key => {
                let mut filter = std::mem::take(&mut self.filter);
                edit(&mut filter, key);
                self.set_filter(filter);
            }
        }
    }

    /// Opens the dialog of an action, or says why it can't be done.
    fn ask(&mut self, action: &'static str) {
        if self.selected.is_empty() {
            return;
        }
        if !self.info.actions {
            let text =
                "actions are off; let the program allow them: `Console::new().allow_actions(true)`";
            return self.tell(Tone::Warn, text);
        }
        if !self.has_token {
            let text = "actions need the token from the program's log; give it with --token or VERGER_TOKEN";
            return self.tell(Tone::Warn, text);
        }
        let is_root = self.selected == self.tree.root();
        let action = if is_root && action == "stop" { "stop_tree" } else { action };
        let act = Act { action, path: self.selected.clone(), reason: None, confirm: None };
        self.mode = Mode::Confirm(Dialog { act, input: String::new() });
    }

    fn on_confirm(&mut self, key: KeyCode) {
        let Mode::Confirm(dialog) = &mut self.mode else { return };
        match key {
            KeyCode::Esc => self.mode = Mode::Browse,
            KeyCode::Enter => {
                let Dialog { mut act, input } = dialog.clone();
                let input = input.trim().to_owned();
                self.mode = Mode::Browse;
                if act.action == "stop_tree" {
                    if input != act.path {
                        let text = format!("nothing was stopped: the name is `{}`", act.path);
                        return self.tell(Tone::Warn, text);
                    }
                    act.confirm = Some(input);
                } else if !input.is_empty() {
                    act.reason = Some(input);
                }
                self.tell(Tone::Dim, format!("{} {} …", verb(act.action), act.path));
                self.effects.push(Effect::Ask(Query::Act(act)));
            }
            key => edit(&mut dialog.input, key),
        }
    }
}

/// What an action is called in a sentence.
pub(crate) fn verb(action: &str) -> &str {
    match action {
        "stop_tree" => "stop the whole tree",
        "reset" => "reset the counters of",
        other => other,
    }
}

fn edit(input: &mut String, key: KeyCode) {
    match key {
        KeyCode::Char(c) if !c.is_control() && input.chars().count() < MAX_INPUT => input.push(c),
        KeyCode::Backspace => _ = input.pop(),
        _ => {}
    }
}
