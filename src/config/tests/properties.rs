//! Properties: no text makes reading panic, the text of a node is the node, and merging is lawful.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::merged;
use crate::config::mistake::Source;
use crate::config::node::{Entry, NodeTable, Value, ValueNode};
use crate::config::{Config, Section, file};

fn keys() -> impl Strategy<Value = String> {
    prop_oneof!["[abc]", ".{0,3}", Just("restart".to_owned())]
}

fn nodes() -> impl Strategy<Value = ValueNode> {
    let leaves = prop_oneof![
        any::<bool>().prop_map(|value| ValueNode::new(Value::Bool(value))),
        any::<i64>().prop_map(|value| ValueNode::new(Value::Integer(value))),
        any::<f64>().prop_map(|value| ValueNode::new(Value::Float(value))),
        ".{0,5}".prop_map(|value| ValueNode::new(Value::String(value))),
    ];
    leaves.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|nodes| ValueNode::new(Value::Array(nodes.into()))),
            table(inner),
        ]
    })
}

fn table(values: impl Strategy<Value = ValueNode>) -> impl Strategy<Value = ValueNode> {
    btree_map(keys(), values, 0..4).prop_map(|values| {
        let entry = |(key, node)| (key, Box::new(Entry { location: None, alias: None, node }));
        ValueNode::new(Value::Table(values.into_iter().map(entry).collect::<NodeTable>().into()))
    })
}

/// Texts that look like a configuration.
fn texts() -> impl Strategy<Value = String> {
    let words = proptest::sample::select(vec![
        "[",
        "]",
        "[[",
        "\"app/a\"",
        "common",
        "restart",
        "when",
        "backoff",
        "system",
        "*",
        ".",
        " = ",
        "\n",
        "{",
        "}",
        ",",
        "\"5s\"",
        "\"",
        "'''",
        "\"\"\"",
        "5",
        "-1",
        "true",
        "# x",
        "é",
        "\t",
        "inf",
        "config",
        "min_backoff",
        "intensity",
        "max",
        "1979-05-27",
        "strategy",
        "\\",
        "\u{0}",
        "\r",
    ]);
    vec(words, 0..40).prop_map(|words| words.concat())
}

fn check(text: &str) {
    let config = Config::from_toml(text, "x");
    if let Err(error) = config.check() {
        assert!(!error.mistakes().is_empty());
        for mistake in error.mistakes() {
            let shown = mistake.to_string();
            assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
        }
    }
    let (sections, twice) = config.sections("app");
    if twice.is_empty() {
        for path in sections.keys() {
            drop(Section::read(&merged(&config, path), path));
        }
    }
}

proptest! {
    #![proptest_config(crate::random_cases::cases(64))]

    #[test]
    fn no_text_makes_reading_panic(text in ".{0,60}", like in texts(), any in any::<String>()) {
        check(&text);
        check(&like);
        check(&any);
    }

    #[test]
    fn the_text_of_a_node_is_read_as_the_same_node(node in nodes()) {
        let text = format!("value = {node}\n");
        let (root, syntax, other) = file::parse(&Source::new(&text, "x"));
        prop_assert!(syntax.is_empty() && other.is_empty(), "{text}: {syntax:?}");
        prop_assert_eq!(root.get("value").map(ToString::to_string), Some(node.to_string()));
        prop_assert!(root.get("value") == Some(&node), "{}", text);
    }

    #[test]
    fn own_values_win(a in table(nodes()), b in table(nodes())) {
        let merged = a.clone().merge(&b);
        let leaves = merged.flatten("");
        for (key, leaf) in a.flatten("").iter().filter(|(_, leaf)| leaf.table().is_none()) {
            prop_assert!(leaves.iter().any(|(other, it)| other == key && it == leaf), "{key}");
        }
        prop_assert!(a.clone().merge(&ValueNode::default()) == a);
    }

    /// It isn't where a key is a table in one layer and no table in a different one.
    #[test]
    fn merging_is_associative_where_the_same_keys_are_tables(
        a in regular(3),
        b in regular(3),
        c in regular(3),
    ) {
        let left = a.clone().merge(&b.clone().merge(&c));
        let right = a.merge(&b).merge(&c);
        prop_assert!(left == right, "{left} {right}");
    }
}

/// A table in which the keys tell which values are tables.
fn regular(depth: u32) -> BoxedStrategy<ValueNode> {
    let leaf = any::<i64>().prop_map(|value| ValueNode::new(Value::Integer(value)));
    let leaves = btree_map("[abc]", leaf, 0..3);
    let tables = if depth == 0 {
        Just(Default::default()).boxed()
    } else {
        btree_map("[xyz]", regular(depth - 1), 0..3).boxed()
    };
    let both = (leaves, tables).prop_map(|(leaves, tables)| {
        let entry = |(key, node)| (key, Box::new(Entry { location: None, alias: None, node }));
        ValueNode::new(Value::Table(
            leaves.into_iter().chain(tables).map(entry).collect::<NodeTable>().into(),
        ))
    });
    both.boxed()
}
