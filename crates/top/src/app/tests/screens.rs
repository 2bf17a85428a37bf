//! What is on the screen, when it changes, and when the console is asked.

use super::*;

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
    insta::assert_snapshot!(fixture.screen(80, 24));
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
            let x = (0..60).find(|&x| "aR".contains(buffer[(x, y)].symbol()) && x > 12).unwrap();
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
    let screen = fixture.screen(100, 20);
    assert!(
        screen.starts_with(" app LOST, trying again: can't reach http://h: refused\n"),
        "{screen}"
    );

    fixture.send(Message::Connected(Info::default()));
    assert_eq!(fixture.effects(), [Effect::Ask(Query::Snapshot), Effect::Ask(INCIDENTS)]);
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
fn times_go_on_between_two_messages_of_the_server() {
    let mut fixture = Fixture::live();
    assert!(fixture.screen(120, 20).contains("in 4.2s"));
    fixture.pass(3_000);
    assert!(fixture.screen(120, 20).contains("in 1.2s"));
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

/// Rule: while the view is paused, nothing moves, and then it shows what is true.
#[test]
fn a_paused_view_stands_still() {
    let mut fixture = Fixture::live();
    fixture.keys("jp");
    fixture.answer(Query::Panel(Tab::Describe, "app/db".into()), Answer::Child(Box::default()));
    let before = fixture.screen(80, 24);
    assert!(before.starts_with(" app PAUSED"), "{before}");
    fixture.pass(60_000);
    assert_eq!(fixture.effects(), []);
    let change = Change { seq: 11, removed: vec!["app/http".into()], ..Change::default() };
    fixture.send(Message::Change(Box::new(change)));
    assert_eq!(fixture.screen(80, 24), before);
    // Another child is described, once.
    fixture.keys("j");
    fixture.answer(Query::Panel(Tab::Describe, "app/ingest".into()), Answer::Child(Box::default()));
    fixture.pass(60_000);
    assert_eq!(fixture.effects(), []);

    fixture.keys("p");
    fixture.answer(Query::Snapshot, Answer::Snapshot(Box::new(status(20, node("app", "active")))));
    assert_eq!(fixture.names(), ["app"]);
}

/// Rule: 80 columns are enough for every line of the frame.
#[test]
fn nothing_of_the_first_and_the_last_line_is_cut() {
    let mut fixture = Fixture::live();
    let screen = fixture.screen(80, 24);
    let (first, last) = (screen.lines().next().unwrap(), screen.lines().last().unwrap());
    assert_eq!(first, " app live  2 PROBLEMS  5 children  0 restarts  3 dead letters  up 2h15m");
    assert_eq!(
        last,
        "? help  i incidents  x problems  o sort  / filter  enter describe  l log  q quit"
    );
    // A message that is longer has two lines.
    fixture.app.info.actions = false;
    fixture.keys("r");
    let screen = fixture.screen(80, 24);
    assert!(
        screen.ends_with(
            "actions are off; let the program allow them:\n`Console::new().allow_actions(true)`\n"
        ),
        "{screen}"
    );
    assert!(fixture.screen(200, 24).lines().all(|line| line.chars().count() <= 200));
}

#[test]
fn a_key_that_follows_esc_fast_is_a_key_after_it() {
    let mut fixture = Fixture::live();
    fixture.keys("jr");
    let fast = KeyEvent::new(KeyCode::Char('j'), KeyModifiers::ALT);
    fixture.send(Message::Key(fast));
    assert_eq!((&fixture.app.mode, &*fixture.app.selected), (&Mode::Browse, "app/ingest"));
}
