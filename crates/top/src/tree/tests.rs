//! Snapshots and changes in, rows out.

use super::*;
use crate::text::Text;

pub(crate) fn node(path: &str, lifecycle: &str) -> Node {
    let kind = Text::from("worker");
    let restart = Text::from("permanent");
    Node {
        path: path.into(),
        kind,
        restart,
        lifecycle: lifecycle.into(),
        incarnation: 1,
        ..Node::default()
    }
}

pub(crate) fn supervisor(path: &str, children: Vec<Node>) -> Node {
    let supervisor = crate::model::Supervisor {
        strategy: "one_for_one".into(),
        max_restarts: Some(5),
        period_ms: 60_000,
        ..Default::default()
    };
    Node {
        kind: "supervisor".into(),
        supervisor: Some(supervisor),
        children,
        ..node(path, "active")
    }
}

pub(crate) fn status(seq: u64, root: Node) -> Status {
    Status { seq, captured_at_ms: seq, root, ..Status::default() }
}

fn sample() -> Node {
    let ingest = vec![node("app/ingest/reader", "active"), node("app/ingest/writer", "restarting")];
    supervisor(
        "app",
        vec![
            node("app/db", "active"),
            supervisor("app/ingest", ingest),
            node("app/http", "active"),
        ],
    )
}

fn tree() -> Tree {
    let mut tree = Tree::default();
    tree.load(status(10, sample()));
    tree
}

fn shown(tree: &Tree) -> Vec<String> {
    let rows = tree.rows().iter();
    rows.map(|&row| {
        format!("{}{}:{:b}", " ".repeat(row.depth), tree.at(row).unwrap().name(), row.more)
    })
    .collect()
}

#[test]
fn rows_are_in_start_order_and_know_which_levels_go_on() {
    assert_eq!(
        shown(&tree()),
        ["app:0", " db:1", " ingest:1", "  reader:11", "  writer:10", " http:0"]
    );
}

#[test]
fn a_folded_supervisor_hides_its_children_until_it_is_unfolded_or_filtered() {
    let mut tree = tree();
    tree.fold("app/ingest");
    assert_eq!(shown(&tree), ["app:0", " db:1", " ingest:1", " http:0"]);
    assert_eq!(tree.hidden(tree.rows()[2]), 2);
    tree.load(status(11, sample()));
    assert_eq!(shown(&tree).len(), 4);
    tree.set_filter("WRIT");
    assert_eq!(shown(&tree), ["app:0", " ingest:0", "  writer:0"]);
    tree.set_filter("restarting");
    assert_eq!(shown(&tree).len(), 3);
    tree.set_filter("");
    tree.fold("app/ingest");
    assert_eq!(shown(&tree).len(), 6);
}

#[test]
fn a_change_updates_adds_and_removes_children() {
    let mut tree = tree();
    let change = Change {
        seq: 11,
        captured_at_ms: Some(11),
        children: vec![node("app/db", "errored"), node("app/ingest/spare", "active")],
        removed: vec!["app/http".into(), "app/ingest/reader".into(), "app/unknown".into()],
        ..Change::default()
    };
    assert!(tree.apply(change));
    assert_eq!(shown(&tree), ["app:0", " db:1", " ingest:0", "  writer:1", "  spare:0"]);
    assert_eq!(tree.node("app/db").unwrap().state(), "ERRORED");
}

#[test]
fn a_child_below_an_unknown_supervisor_needs_a_snapshot() {
    let children = vec![node("app/new/a", "active")];
    assert!(!tree().apply(Change { seq: 11, children, ..Change::default() }));
    assert!(!tree().apply(Change { seq: 11, resync: true, ..Change::default() }));
    assert!(!Tree::default().apply(Change::default()));
}

#[test]
fn a_snapshot_does_not_undo_a_newer_change() {
    let mut tree = tree();
    let removed = vec!["app/http".into()];
    tree.apply(Change {
        seq: 12,
        children: vec![node("app/db", "errored")],
        removed,
        ..Change::default()
    });
    tree.load(status(11, sample()));
    assert_eq!(tree.node("app/db").unwrap().state(), "ERRORED");
    assert_eq!(tree.node("app/http"), None);
    tree.load(status(12, sample()));
    assert_eq!(tree.node("app/db").unwrap().state(), "active");
    assert!(tree.node("app/http").is_some());
}

#[test]
fn another_process_starts_afresh() {
    let mut tree = tree();
    tree.apply(Change { seq: 12, children: vec![node("app/db", "errored")], ..Change::default() });
    let program = Program { pid: 2, ..Program::default() };
    tree.load(Status { program, ..status(1, sample()) });
    assert_eq!(tree.node("app/db").unwrap().state(), "active");
}

#[test]
fn dynamic_children_are_in_the_order_in_which_they_were_added() {
    let child = |path, created| Node { created_at_ms: Some(created), ..node(path, "active") };
    let mut root =
        supervisor("app", vec![child("app/c#3", 3), child("app/c#1", 1), child("app/c#2", 2)]);
    root.supervisor.as_mut().unwrap().strategy = "dynamic".into();
    let mut tree = Tree::default();
    tree.load(status(1, root));
    assert_eq!(shown(&tree), ["app:0", " c#1:1", " c#2:1", " c#3:0"]);
}

#[test]
fn a_deep_tree_needs_no_stack() {
    let mut root = node("a", "active");
    for _ in 0..1_000 {
        root = supervisor("a", vec![root]);
    }
    let mut tree = Tree::default();
    tree.load(status(1, root));
    assert_eq!(tree.rows().len(), 1_001);
}
