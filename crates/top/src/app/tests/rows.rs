//! Which children are shown, in which order, and which one is selected.

use super::*;

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
    assert_eq!(fixture.footer(), "filter: mqt  (esc shows the whole tree)");
    // Typed keys are no commands.
    assert_eq!(fixture.app.mode, Mode::Browse);
    fixture.press(KeyCode::Esc);
    assert_eq!(fixture.app.tree.rows().len(), 6);
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
fn problems_only_are_the_children_with_one_and_their_supervisors() {
    let mut fixture = Fixture::live();
    fixture.keys("x");
    assert_eq!(fixture.names(), ["app", "app/ingest", "app/ingest/mqtt", "app/http"]);
    assert_eq!(fixture.footer(), "problems only  (esc shows the whole tree)");
    fixture.keys("x");
    assert_eq!(fixture.names().len(), 6);
    fixture.load(supervisor("app", vec![node("app/db", "active")]));
    fixture.keys("x");
    assert!(fixture.screen(80, 24).contains("no child has a problem"));
}

#[test]
fn the_rows_are_sorted_by_each_column_in_turn() {
    let busy = |path, total_ms| Node {
        busy: Some(Busy { total_ms, ..Busy::default() }),
        ..node(path, "active")
    };
    let mut fixture = Fixture::live();
    let mut root = sample().root;
    root.children.extend([busy("app/idle", 0), busy("app/hot", 1_000)]);
    fixture.load(root.clone());
    root.children.last_mut().unwrap().busy.as_mut().unwrap().total_ms += 30_000;
    fixture.load(root);

    let mut first = |keys: &str| {
        fixture.keys(keys);
        let footer = fixture.footer();
        (fixture.names()[0].clone(), footer.split("  ").next().unwrap().to_owned())
    };
    let pair = |path: &str, words: &str| (path.to_owned(), words.to_owned());
    assert_eq!(first("o"), pair("app/ingest/mqtt", "by problem, latest first"));
    assert_eq!(first("o"), pair("app/ingest/mqtt", "by restarts, most first"));
    assert_eq!(first("o"), pair("app/hot", "by busy time, most first"));
    assert_eq!(first("o"), pair("app/ingest/writer", "by mailbox, fullest first"));
    assert_eq!(first("o"), pair("app/ingest/mqtt", "by time in the state, shortest first"));
    assert_eq!(first("o"), pair("app/ingest/mqtt", "by state, loudest first"));
    assert_eq!(first("o"), pair("app", "by path"));
    assert_eq!(first("O"), pair("app/ingest/writer", "by path, reversed"));
    assert!(first("o").1.starts_with("? help"));
    fixture.keys("ooo");
    let screen = fixture.screen(80, 24);
    assert!(screen.lines().nth(1).unwrap().starts_with("● hot           active"), "{screen}");
    assert!(screen.lines().nth(1).unwrap().ends_with("50 %"), "{screen}");
}

#[test]
fn many_dynamic_children_are_one_row_until_it_is_unfolded() {
    let conns = (0..20).map(|n| node(&format!("app/http/conn#{n}"), "active"));
    let mut conns: Vec<_> = conns.collect();
    conns[7] = Node {
        problems: vec![problem("restarting, attempt 1 in 2s, last: failed: broken pipe")],
        ..node("app/http/conn#7", "restarting")
    };
    let mut fixture = Fixture::live();
    fixture.load(supervisor("app", vec![supervisor("app/http", conns)]));
    let folded = ["app", "app/http", "app/http/conn#…", "app/http/conn#7"];
    assert_eq!(fixture.names(), folded);
    let screen = fixture.screen(80, 24);
    assert!(screen.contains("├─▸ conn#… ×20 19 active, 1 restarting"), "{screen}");

    fixture.keys("jj");
    assert_eq!(fixture.app.selected, "app/http/conn#…");
    assert_eq!(fixture.app.panel_lines().0[0].text, "several children; press space to list them");
    fixture.keys("r");
    assert_eq!(fixture.footer(), "this line is several children; press space to list them");
    fixture.keys(" ");
    assert_eq!(fixture.names().len(), 22);
    // From one of them, the line is folded again.
    fixture.keys("j ");
    assert_eq!(fixture.names(), folded);
    fixture.keys("/conn#1");
    assert_eq!(fixture.names().len(), 2 + 11);
}
