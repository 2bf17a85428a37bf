//! Nodes: merging, look-up, their text.

use crate::config::node::{ValueNode, join};

pub(super) fn node(json: &str) -> ValueNode {
    serde_json::from_str(json).expect(json)
}

#[test]
fn tables_are_merged_deeply_and_all_else_is_replaced() {
    let table = [
        // Own values, values beneath, both.
        (r#"{}"#, r#"{}"#, "{}"),
        (r#"{}"#, r#"{"a":1}"#, "{ a = 1 }"),
        (r#"{"a":2}"#, r#"{"a":1,"b":3}"#, "{ a = 2, b = 3 }"),
        (r#"{"a":{"x":1}}"#, r#"{"a":{"x":2,"y":{"z":3}}}"#, "{ a = { x = 1, y = { z = 3 } } }"),
        (r#"{"a":[1]}"#, r#"{"a":[2,3]}"#, "{ a = [1] }"),
        (r#"{"a":"never"}"#, r#"{"a":{"x":2}}"#, "{ a = \"never\" }"),
        (r#"{"a":{"x":2}}"#, r#"{"a":"never"}"#, "{ a = { x = 2 } }"),
        (r#"{"a":{}}"#, r#"{"a":{"x":2}}"#, "{ a = { x = 2 } }"),
    ];
    for (own, beneath, expected) in table {
        assert_eq!(node(own).merge(&node(beneath)).to_string(), expected, "{own} over {beneath}");
    }
}

#[test]
fn a_value_is_found_by_the_keys_that_lead_to_it() {
    let node = node(r#"{"a":{"b":{"c":1}},"d":2}"#);
    assert_eq!(node.at("a.b.c").unwrap().to_string(), "1");
    assert_eq!(node.at("d").unwrap().to_string(), "2");
    assert!(node.at("a.x").is_none() && node.at("d.e").is_none(), "a missing key is empty");
}

#[test]
fn the_text_of_a_node_is_toml_in_one_line() {
    let json =
        r#"{"a b":"x\"y\\z\n\u001b","f":1.0,"g":1e300,"t":true,"n":[1,"2",{}],"e":null,"":-1}"#;
    let expected = "{ \"\" = -1, \"a b\" = \"x\\\"y\\\\z\\n\\U0000001B\", f = 1.0, g = 1e300, \
                    n = [1, \"2\", {}], t = true }";
    assert_eq!(node(json).to_string(), expected);
}

#[test]
fn the_leaves_of_a_node_have_their_keys() {
    let node = node(r#"{"b":{"x y":1,"e":{}},"a":[1,2]}"#);
    let leaves = node.flatten("\"app/w\".config");
    let leaves: Vec<_> = leaves.iter().map(|(key, leaf)| format!("{key}={leaf}")).collect();
    let expected =
        ["\"app/w\".config.a=[1, 2]", "\"app/w\".config.b.e={}", "\"app/w\".config.b.\"x y\"=1"];
    assert_eq!(leaves, expected);
    assert_eq!(join("", "a"), "a");
}
