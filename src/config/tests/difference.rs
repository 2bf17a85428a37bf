//! Which sections differ from those applied last.

use std::sync::Arc;

use crate::config::Config;
use crate::config::draft::{AppliedRecord, Difference, Recorded};
use crate::config::node::ValueNode;

/// Returns what is recorded once this was applied to a tree whose root is `app`.
fn record(text: &str) -> Arc<AppliedRecord> {
    let config = Config::from_toml(text, "old.toml");
    let sections = config.sections("app").0.into_iter().map(|(path, written)| {
        let own = written.node.clone();
        (path.into(), Arc::new(Recorded { own, ..Recorded::default() }))
    });
    let common = config.common.clone();
    Arc::new(AppliedRecord { common, sections: sections.collect(), ..AppliedRecord::default() })
}

fn difference(old: &str, new: &str, forced: bool) -> Difference {
    Difference::new("app", &Config::from_toml(new, "new.toml"), record(old), forced)
}

/// The changed paths, and how many sections are the same.
fn changed(old: &str, new: &str) -> (String, usize) {
    let difference = difference(old, new, false);
    let changed: Vec<_> = difference.changed.iter().map(String::as_str).collect();
    (changed.join(" "), difference.unchanged)
}

const OLD: &str = "[common]\nshutdown = \"1s\"\n[app]\nstrategy = \"one_for_all\"\n[\"g/*\"]\n\
                   enabled = true\n[\"g/a\"]\nenabled = true\n[\"g/a/x\"]\nenabled = true\n[b]\n";

#[test]
fn only_what_is_written_differently_differs() {
    assert_eq!(changed(OLD, OLD), (String::new(), 5));
    assert_eq!(changed(OLD, &format!("# moved\n\n{OLD}")), (String::new(), 5), "only its place");
    assert_eq!(changed(OLD, &OLD.replace("[b]", "[\"app/b\"]")), (String::new(), 5), "the root");
    let strategy = OLD.replace("one_for_all", "one_for_one");
    let difference = difference(OLD, &strategy, false);
    assert_eq!(difference.changed.into_iter().collect::<Vec<_>>(), [""], "the root's own section");
    assert!(!difference.all);
    assert_eq!(changed(OLD, &OLD.replace("[b]\n", "")), ("b".to_owned(), 4), "it is gone");
    assert_eq!(changed(OLD, &format!("{OLD}[c]\n")), ("c".to_owned(), 5), "it is new");
}

#[test]
fn what_is_beneath_a_section_counts() {
    let pattern = OLD.replace("[\"g/*\"]\nenabled = true", "[\"g/*\"]\nenabled = false");
    assert_eq!(changed(OLD, &pattern), ("g/* g/a".to_owned(), 3), "not what is further below");
    let gone = OLD.replace("[\"g/*\"]\nenabled = true\n", "");
    assert_eq!(changed(OLD, &gone), ("g/* g/a".to_owned(), 3));
    let common = difference(OLD, &OLD.replace("1s", "2s"), false);
    assert_eq!((common.changed.len(), common.unchanged, common.all), (5, 0, true));
    let forced = difference(OLD, OLD, true);
    assert_eq!((forced.changed.len(), forced.unchanged, forced.all), (5, 0, true));
}

#[test]
fn it_is_the_difference_from_one_record() {
    let before = record(OLD);
    let difference = Difference::new("app", &Config::new(), Arc::clone(&before), false);
    assert!(difference.is_since(&before));
    assert!(!difference.is_since(&record(OLD)), "another one was applied meanwhile");
    assert_eq!(
        difference.before.common.get("shutdown").map(ValueNode::to_string),
        Some("\"1s\"".into())
    );
}
