//! What each key does.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::actions::edit;
use super::{App, Effect, INTERVALS_MS, Mode, Tab};
use crate::show::Tone;
use crate::text::duration;
use crate::tree::View;

/// The keys and what they do, as the help shows them. They fit on a screen of 24 lines.
pub(crate) const KEYS: [(&str, &str); 20] = [
    ("j k ↓ ↑", "next, previous child or incident"),
    ("g G", "first, last; PgDn PgUp: a page"),
    ("i", "incidents: what is wrong now, and was lately"),
    ("enter", "describe the child on the whole screen; esc goes back"),
    ("e l", "events, log lines of the child"),
    ("d P", "dead letters, plan of the configuration file"),
    ("tab", "the next of these panels"),
    (", .", "scroll the panel up, down"),
    ("x", "problems only; again: all"),
    ("o O", "sort by the next column; reverse"),
    ("/", "filter by path, state, status or cause"),
    ("space", "fold or unfold"),
    ("p", "pause: nothing moves; again: continue"),
    ("- +", "read less often, more often"),
    ("r s", "restart; stop (on the root: the whole tree)"),
    ("n", "resume: start a child now that is down or waits"),
    ("h", "hold: no automatic start; again: release"),
    ("K", "kill: abort without a grace"),
    ("c", "reset counters of failures and restarts"),
    ("? q", "this help; quit"),
];

impl App {
    pub(super) fn on_key(&mut self, key: KeyEvent) {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            if key.code == KeyCode::Char('c') {
                self.effects.push(Effect::Quit);
            }
            return;
        }
        // A terminal reports `esc` and the next key as one if they follow fast.
        if key.modifiers.contains(KeyModifiers::ALT) {
            self.on_key(KeyCode::Esc.into());
            return self.on_key(key.code.into());
        }
        match &mut self.mode {
            Mode::Browse => self.on_browse(key.code),
            Mode::Filter => self.on_filter(key.code),
            Mode::Confirm(_) => self.on_confirm(key.code),
            Mode::Help => self.mode = Mode::Browse,
        }
    }

    fn on_browse(&mut self, key: KeyCode) {
        if self.zoomed && self.on_zoomed(key) {
            return;
        }
        let last = self.tree.rows().len().saturating_sub(1);
        match key {
            KeyCode::Char('q') => self.effects.push(Effect::Quit),
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('.') => self.scroll_by(1),
            KeyCode::Char(',') => self.scroll_by(-1),
            KeyCode::Char('j') | KeyCode::Down => self.go_to(self.cursor + 1),
            KeyCode::Char('k') | KeyCode::Up => self.go_to(self.cursor.saturating_sub(1)),
            KeyCode::PageDown => self.go_to(self.cursor + self.page),
            KeyCode::PageUp => self.go_to(self.cursor.saturating_sub(self.page)),
            KeyCode::Char('g') | KeyCode::Home => self.go_to(0),
            KeyCode::Char('G') | KeyCode::End => self.go_to(last),
            KeyCode::Char(' ') => {
                self.tree.fold(&self.selected);
                self.settle();
            }
            KeyCode::Char('x') => self.change_view(|view| view.problems = !view.problems),
            KeyCode::Char('o') => self.change_view(|view| {
                (view.sort, view.reversed) = (view.sort.next(), false);
            }),
            KeyCode::Char('O') => self.change_view(|view| view.reversed = !view.reversed),
            KeyCode::Char('p') => self.pause(),
            KeyCode::Enter => {
                self.open(Tab::Describe);
                self.zoomed = true;
            }
            KeyCode::Esc => {
                self.change_view(|view| {
                    (view.problems, view.reversed, view.sort) = Default::default()
                });
                self.set_filter(String::new());
            }
            KeyCode::Char('i') => {
                self.open(Tab::Incidents);
                self.zoomed = true;
            }
            KeyCode::Char('e') => self.open(Tab::Events),
            KeyCode::Char('l') => self.open(Tab::Log),
            KeyCode::Char('d') => self.open(Tab::Letters),
            KeyCode::Char('P') => self.open(Tab::Plan),
            KeyCode::Tab => {
                let at = Tab::ALL.iter().position(|&(tab, _)| tab == self.tab).unwrap_or(0);
                self.open(Tab::ALL[(at + 1) % Tab::ALL.len()].0);
            }
            KeyCode::Char('-') => self.set_interval(self.interval + 1),
            KeyCode::Char('+' | '=') => self.set_interval(self.interval.saturating_sub(1)),
            KeyCode::Char('r') => self.ask("restart"),
            KeyCode::Char('s') => self.ask("stop"),
            KeyCode::Char('n') => self.ask("resume"),
            KeyCode::Char('K') => self.ask("kill"),
            KeyCode::Char('c') => self.ask("reset"),
            KeyCode::Char('h') => {
                let is_held = self.selected_node().is_some_and(|node| node.held);
                self.ask(if is_held { "release" } else { "hold" });
            }
            _ => {}
        }
    }

    /// Handles the keys that mean something else while the panel is on the whole screen. Returns whether it did.
    fn on_zoomed(&mut self, key: KeyCode) -> bool {
        let is_list = self.tab == Tab::Incidents;
        let page = self.panel_page.cast_signed();
        match key {
            KeyCode::Esc => self.zoomed = false,
            KeyCode::Char('i') if is_list => self.zoomed = false,
            KeyCode::Enter if self.tab == Tab::Describe => self.zoomed = false,
            KeyCode::Enter if is_list => self.go_to_incident(),
            KeyCode::Char('j') | KeyCode::Down if is_list => self.next_incident(1),
            KeyCode::Char('k') | KeyCode::Up if is_list => self.next_incident(-1),
            KeyCode::Char('g') | KeyCode::Home if is_list => self.next_incident(isize::MIN),
            KeyCode::Char('G') | KeyCode::End if is_list => self.next_incident(isize::MAX),
            KeyCode::Char('j') | KeyCode::Down => self.scroll_by(1),
            KeyCode::Char('k') | KeyCode::Up => self.scroll_by(-1),
            KeyCode::PageDown => self.scroll_by(page),
            KeyCode::PageUp => self.scroll_by(-page),
            // Which child they are about can't be seen.
            KeyCode::Char('r' | 's' | 'n' | 'K' | 'c' | 'h') if is_list => {
                self.tell(Tone::Warn, "press enter to go to the child of the incident first");
            }
            _ => return false,
        }
        true
    }

    /// Selects a child, and describes it instead of the incidents of the whole tree.
    fn go_to(&mut self, at: usize) {
        let before = self.selected.clone();
        self.select(at);
        if self.tab == Tab::Incidents && self.selected != before {
            self.open(Tab::Describe);
        }
    }

    /// Scrolls the panel down, or up. Log lines are scrolled from their end.
    fn scroll_by(&mut self, lines: isize) {
        let lines = if self.tab.shows_end() { -lines } else { lines };
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
        self.tell(Tone::Plain, format!("read every {}", duration(self.interval_ms())));
    }

    fn change_view(&mut self, change: impl FnOnce(&mut View)) {
        self.tree.change_view(change);
        self.settle();
    }

    fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        let filter = self.filter.clone();
        self.change_view(|view| view.filter = filter);
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
}
