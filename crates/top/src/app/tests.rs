//! The live view without a terminal: messages in, screens and requests out.

use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::model::{Entry, LastExit, LogLine, Mailbox, Next, Reason, Totals};
use crate::tree::tests::{node, status, supervisor};
use crate::view;

/// 2026-01-31T12:00:00Z
const NOON: u64 = 1_769_860_800_000;

struct Fixture {
    app: App,
    now: Instant,
}

impl Fixture {
    /// A view that is connected and has the sample tree.
    fn live() -> Self {
        let mut fixture = Self::connecting(true);
        fixture.send(Message::Connected(Info { root: "app".into(), actions: true, log: true }));
        fixture.answer(Query::Snapshot, Answer::Snapshot(Box::new(sample())));
        fixture.answer(Query::Panel(Tab::Describe, "app".into()), Answer::Child(Box::default()));
        fixture
    }

    fn connecting(has_token: bool) -> Self {
        let now = Instant::now();
        Self { app: App::new(now, has_token, false), now }
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
        mailbox: Some(Mailbox { len: 18, capacity: 20 }),
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
        ..node("app/ingest/mqtt", "restarting")
    };
    let http = Node { since_ms: since(8_100_000), held: true, ..node("app/http", "stopped") };
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

#[test]
fn a_wide_screen_shows_the_panel_beside_the_tree() {
    let mut fixture = Fixture::live();
    fixture.keys("G");
    fixture.keys("k");
    fixture.answer(
        Query::Panel(Tab::Describe, "app/ingest/mqtt".into()),
        Answer::Child(Box::new(described())),
    );

    insta::assert_snapshot!(fixture.screen(120, 20));
}

#[test]
fn a_narrow_screen_shows_the_panel_below_the_tree() {
    insta::assert_snapshot!(Fixture::live().screen(70, 18));
}

#[test]
fn a_small_screen_shows_the_tree_alone_until_a_child_is_described() {
    let mut fixture = Fixture::live();
    insta::assert_snapshot!("small", fixture.screen(50, 8));

    fixture.keys("j");
    fixture.press(KeyCode::Enter);
    let mut child = Box::new(described());
    child.child = fixture.app.selected_node().unwrap().clone();
    fixture.answer(Query::Panel(Tab::Describe, "app/db".into()), Answer::Child(child));
    insta::assert_snapshot!("small_described", fixture.screen(50, 8));
    fixture.press(KeyCode::Esc);
    assert!(!fixture.app.zoomed);
}

#[test]
fn the_help_names_every_key() {
    let mut fixture = Fixture::live();
    fixture.keys("?");
    insta::assert_snapshot!(fixture.screen(80, 26));
    fixture.keys("x");
    assert_eq!(fixture.app.mode, Mode::Browse);
}

#[test]
fn a_state_has_a_colour_unless_they_are_switched_off() {
    use ratatui::style::Color;
    for (color, expected) in [(true, [Color::Green, Color::Yellow]), (false, [Color::Reset; 2])] {
        let mut fixture = Fixture::live();
        fixture.app.color = color;
        let terminal = fixture.terminal(120, 20);
        let buffer = terminal.backend().buffer();
        // The first column of the states, in the rows of `db` and of `mqtt`.
        let colors = [2, 5].map(|y| {
            let x = (0..60).find(|&x| "aR".contains(buffer[(x, y)].symbol()) && x > 20).unwrap();
            buffer[(x, y)].fg
        });
        assert_eq!(colors, expected);
    }
}

#[test]
fn before_the_first_answer_the_screen_says_what_it_waits_for() {
    let mut fixture = Fixture::connecting(true);
    let screen = fixture.screen(80, 10);
    assert!(screen.starts_with(" verger-top connecting\nwaiting for the console …\n"), "{screen}");
    assert_eq!(fixture.effects(), []);
}

#[test]
fn a_lost_connection_is_shown_and_nothing_is_asked_for_until_there_is_a_new_one() {
    let mut fixture = Fixture::live();
    fixture.pass(60_000);
    fixture.send(Message::Lost("can't reach http://h: refused".into()));
    assert_eq!(fixture.effects(), []);
    assert!(
        fixture
            .screen(100, 20)
            .starts_with(" app LOST, trying again: can't reach http://h: refused  5 children")
    );

    fixture.send(Message::Connected(Info::default()));
    let asked =
        [Effect::Ask(Query::Snapshot), Effect::Ask(Query::Panel(Tab::Describe, "app".into()))];
    assert_eq!(fixture.effects(), asked);
}

#[test]
fn a_question_is_asked_once_until_it_is_answered_and_then_after_the_interval() {
    let mut fixture = Fixture::live();
    assert_eq!(fixture.effects(), []);
    fixture.pass(999);
    assert_eq!(fixture.effects(), []);
    fixture.pass(1);
    assert_eq!(fixture.effects().len(), 2);
    fixture.pass(5_000);
    assert_eq!(fixture.effects(), []);
    // The answer took five seconds, so the next question is asked after 25.
    fixture.send(Message::Answer(Query::Snapshot, Err("slow".into())));
    fixture.pass(24_999);
    assert_eq!(fixture.effects(), []);
    fixture.pass(1);
    assert_eq!(fixture.effects(), [Effect::Ask(Query::Snapshot)]);
}

#[test]
fn the_interval_is_changed_by_minus_and_plus() {
    let mut fixture = Fixture::live();
    assert_eq!(fixture.app.interval_ms(), 1_000);
    fixture.keys("--");
    assert_eq!(fixture.app.interval_ms(), 5_000);
    fixture.keys("-----");
    assert_eq!(fixture.app.interval_ms(), 30_000);
    fixture.keys("+++++++");
    assert_eq!(fixture.app.interval_ms(), 500);
}

#[test]
fn keys_move_the_selection_and_fold() {
    let mut fixture = Fixture::live();
    let mut selected = |keys: &str| {
        fixture.keys(keys);
        fixture.app.selected.clone()
    };
    assert_eq!(selected(""), "app");
    assert_eq!(selected("jj"), "app/ingest");
    assert_eq!(selected(" j"), "app/http");
    assert_eq!(selected("k j"), "app/ingest/writer");
    assert_eq!(selected("G"), "app/http");
    assert_eq!(selected("jjj"), "app/http");
    assert_eq!(selected("gk"), "app");
}

#[test]
fn the_filter_is_applied_while_it_is_typed() {
    let mut fixture = Fixture::live();
    fixture.keys("/mqtx");
    assert_eq!(fixture.footer(), "/mqtx");
    assert!(fixture.screen(80, 20).contains("no child matches the filter"));
    fixture.press(KeyCode::Backspace);
    fixture.press(KeyCode::Enter);
    assert_eq!(fixture.app.tree.rows().len(), 3);
    assert_eq!(fixture.footer(), "filter: mqt  (esc clears it)");
    // Typed keys are no commands.
    assert_eq!(fixture.app.mode, Mode::Browse);
    fixture.press(KeyCode::Esc);
    assert_eq!(fixture.app.tree.rows().len(), 6);
}

#[test]
fn an_action_is_sent_once_it_is_confirmed_with_its_reason() {
    let mut fixture = Fixture::live();
    _ = fixture.effects();
    fixture.keys("jjr");
    insta::assert_snapshot!(fixture.screen(80, 18));
    fixture.keys("slow");
    fixture.press(KeyCode::Enter);
    let act = Act {
        action: "restart",
        path: "app/ingest".into(),
        reason: Some("slow".into()),
        confirm: None,
    };
    fixture.app.effects.retain(|effect| matches!(effect, Effect::Ask(Query::Act(_))));
    assert_eq!(fixture.app.effects, [Effect::Ask(Query::Act(act.clone()))]);
    assert_eq!(fixture.footer(), "restart app/ingest …");
    let acted = Answer::Acted(Acted { text: "restarted app/ingest".into() });
    fixture.send(Message::Answer(Query::Act(act.clone()), Ok(acted)));
    assert_eq!(fixture.footer(), "restarted app/ingest");
    fixture.send(Message::Answer(Query::Act(act), Err("no".into())));
    assert_eq!(fixture.footer(), "no");
    fixture.pass(10_000);
    assert!(fixture.footer().starts_with("? help"));
}

#[test]
fn each_key_of_an_action_asks_for_its_own_one() {
    for (keys, action) in [
        ("jr", "restart"),
        ("js", "stop"),
        ("jn", "resume"),
        ("jh", "hold"),
        ("jc", "reset"),
        ("Gh", "release"),
    ] {
        let mut fixture = Fixture::live();
        fixture.keys(keys);
        let Mode::Confirm(dialog) = &fixture.app.mode else { panic!("{keys} opens no dialog") };
        assert_eq!(dialog.act.action, action);
        fixture.press(KeyCode::Esc);
        assert!(
            fixture.app.mode == Mode::Browse
                && !fixture.app.effects.iter().any(|it| matches!(it, Effect::Ask(Query::Act(_))))
        );
    }
}

#[test]
fn the_whole_tree_is_stopped_only_by_its_name() {
    let mut fixture = Fixture::live();
    fixture.keys("sdb");
    fixture.press(KeyCode::Enter);
    assert_eq!(fixture.footer(), "nothing was stopped: the name is `app`");
    fixture.keys("sapp");
    fixture.press(KeyCode::Enter);
    let act =
        Act { action: "stop_tree", path: "app".into(), reason: None, confirm: Some("app".into()) };
    assert!(fixture.app.effects.contains(&Effect::Ask(Query::Act(act))));
}

#[test]
fn without_actions_or_a_token_the_view_says_what_to_do() {
    let mut fixture = Fixture::live();
    fixture.app.info.actions = false;
    fixture.keys("r");
    assert!(fixture.footer().starts_with("actions are off; let the program allow them"));
    assert_eq!(fixture.app.mode, Mode::Browse);

    let mut fixture = Fixture::live();
    fixture.app.has_token = false;
    fixture.keys("r");
    assert!(fixture.footer().starts_with("actions need the token"));
}

#[test]
fn a_program_without_log_lines_is_not_asked_for_them() {
    let mut fixture = Fixture::live();
    fixture.app.info.log = false;
    fixture.keys("l");
    assert_eq!(fixture.effects(), []);
    assert!(fixture.app.panel_lines()[0].text.contains("`Console::new().log_lines(lines)`"));
}

#[test]
fn a_tab_asks_for_its_own_answer_and_drops_those_of_others() {
    let mut fixture = Fixture::live();
    fixture.keys("e");
    let events = Query::Panel(Tab::Events, "app".into());
    assert_eq!(fixture.effects(), [Effect::Ask(events.clone())]);
    fixture.keys("d");
    fixture.send(Message::Answer(events, Ok(Answer::Events(Events::default()))));
    assert_eq!(fixture.app.panel_lines()[0].text, "…");
    fixture.answer(Query::Panel(Tab::Letters, "app".into()), Answer::Letters(Letters::default()));
    assert_eq!(fixture.app.panel_lines()[0].text, "no dead letters");
    fixture.keys("p");
    fixture.answer(
        Query::Panel(Tab::Plan, "app".into()),
        Answer::Plan(Plan { text: "a\nb\x1b[2J".into() }),
    );
    assert_eq!(fixture.app.panel_lines().len(), 2);
    // The plan is made once, not after each interval.
    fixture.pass(60_000);
    assert_eq!(fixture.effects(), [Effect::Ask(Query::Snapshot)]);
    fixture.keys("p");
    assert_eq!(fixture.effects().len(), 1);
}

#[test]
fn a_child_that_is_removed_loses_the_selection_to_the_one_in_its_place() {
    let mut fixture = Fixture::live();
    fixture.keys("jj");
    let change = Change { seq: 11, removed: vec!["app/ingest".into()], ..Change::default() };
    fixture.send(Message::Change(Box::new(change)));
    assert_eq!(fixture.app.selected, "app/http");
}

#[test]
fn times_go_on_between_two_messages_of_the_server() {
    let mut fixture = Fixture::live();
    assert!(fixture.screen(120, 20).contains("in 4.2s"));
    fixture.pass(3_000);
    assert!(fixture.screen(120, 20).contains("in 1.2s"));
}

#[test]
fn ten_thousand_children_are_walked_by_pages() {
    let children =
        (0..10_000).map(|number| node(&format!("app/child-{number}"), "active")).collect();
    let mut fixture = Fixture::live();
    fixture.pass(1_000);
    fixture.answer(
        Query::Snapshot,
        Answer::Snapshot(Box::new(status(20, supervisor("app", children)))),
    );
    fixture.keys("G");
    assert!(fixture.screen(80, 20).contains("└─● child-9999"));
    fixture.press(KeyCode::PageUp);
    assert!(fixture.screen(80, 20).contains("├─● child-9990"), "{}", fixture.screen(80, 20));
}

#[test]
fn control_c_and_q_quit() {
    let mut fixture = Fixture::live();
    fixture.keys("q");
    assert!(fixture.app.effects.contains(&Effect::Quit));
    let mut fixture = Fixture::live();
    fixture.keys("/");
    fixture.send(Message::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    assert!(fixture.app.effects.contains(&Effect::Quit));
}
