//! What the panel shows: incidents, events, log lines and other lists.

use super::*;

/// Rule: the first screen shows what is wrong, since when, and the whole cause.
#[test]
fn the_first_screen_shows_the_causes_of_now_and_of_ten_minutes_ago() {
    let mut fixture = Fixture::live();
    insta::assert_snapshot!(fixture.screen(80, 24));
    // One key shows all of them, and what has changed before.
    fixture.keys("i");
    insta::assert_snapshot!("all_incidents", fixture.screen(80, 24));
}

#[test]
fn an_incident_leads_to_its_child() {
    let mut fixture = Fixture::live();
    fixture.keys("/nothing");
    fixture.press(KeyCode::Enter);
    fixture.keys("ij");
    assert!(fixture.screen(80, 24).contains("▸past  app/db"));
    fixture.keys("r");
    assert_eq!(fixture.footer(), "press enter to go to the child of the incident first");
    fixture.press(KeyCode::Enter);
    assert_eq!((&*fixture.app.selected, fixture.app.tab), ("app/db", Tab::Describe));
    assert!(fixture.app.zoomed);
    assert_eq!(fixture.app.tree.rows().len(), 6);
    fixture.press(KeyCode::Esc);
    assert!(!fixture.app.zoomed);
}

#[test]
fn the_incident_of_a_child_that_is_gone_stays_and_says_so() {
    let mut fixture = Fixture::live();
    fixture.load(supervisor("app", Vec::new()));
    fixture.keys("ij");
    fixture.press(KeyCode::Enter);
    assert_eq!(fixture.footer(), "app/db was removed; what is known of it is above");
    assert!(fixture.screen(80, 24).contains("TLS certificate expired"));
}

#[test]
fn a_list_of_many_incidents_shows_the_selected_one() {
    let mut fixture = Fixture::live();
    fixture.pass(1_000);
    let one = incidents().incidents.remove(1);
    let many = (0..30).map(|n| Incident { path: format!("app/c{n}").into(), ..one.clone() });
    let many = Incidents { incidents: many.collect(), ..incidents() };
    fixture.answer(INCIDENTS, Answer::Incidents(many));
    fixture.keys("iG");
    assert!(fixture.screen(80, 24).contains("▸past  app/c29"));
    fixture.keys("g");
    assert!(fixture.screen(80, 24).contains("▸past  app/c0\n"));
}

#[test]
fn a_program_without_log_lines_is_not_asked_for_them() {
    let mut fixture = Fixture::live();
    fixture.app.info.log = false;
    fixture.keys("l");
    assert_eq!(fixture.effects(), []);
    assert!(fixture.app.panel_lines().0[0].text.contains("`Console::new().log_lines(lines)`"));
}

#[test]
fn a_tab_asks_for_its_own_answer_and_drops_those_of_others() {
    let mut fixture = Fixture::live();
    fixture.keys("e");
    let events = Query::Panel(Tab::Events, "app".into());
    assert_eq!(fixture.effects(), [Effect::Ask(events.clone())]);
    fixture.keys("d");
    fixture.send(Message::Answer(events, Ok(Answer::Events(Events::default()))));
    assert_eq!(fixture.app.panel_lines().0[0].text, "…");
    fixture.answer(Query::Panel(Tab::Letters, String::new()), Answer::Letters(Letters::default()));
    assert_eq!(fixture.app.panel_lines().0[0].text, "no dead letters");
    fixture.keys("P");
    fixture.answer(
        Query::Panel(Tab::Plan, String::new()),
        Answer::Plan(Plan { text: "a\nb\x1b[2J".into() }),
    );
    assert_eq!(fixture.app.panel_lines().0.len(), 2);
    // The plan is made once, not after each interval.
    fixture.pass(60_000);
    assert_eq!(fixture.effects(), [Effect::Ask(Query::Snapshot)]);
    fixture.keys("P");
    assert_eq!(fixture.effects().len(), 1);
}

#[test]
fn lists_have_the_newest_entry_at_the_top() {
    let mut fixture = Fixture::live();
    fixture.keys("e");
    let event = |seconds: u64, text: &str| Entry {
        path: "app/db".into(),
        last_at_ms: NOON - seconds * 1_000,
        text: text.into(),
        ..Entry::default()
    };
    let events = Events {
        entries: vec![event(9, "old"), event(2, "new")],
        dropped_before_ms: Some(Some(NOON - 60_000)),
        ..Events::default()
    };
    fixture.answer(Query::Panel(Tab::Events, "app".into()), Answer::Events(events));
    let lines: Vec<_> = fixture.app.panel_lines().0.into_iter().map(|line| line.text).collect();
    assert_eq!(
        lines,
        ["    2s ago  app/db#0 new", "    9s ago  app/db#0 old", "older than 11:59:00: dropped"]
    );
}
