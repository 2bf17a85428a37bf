//! What belongs together of `examples/web`: the book's chapter and the program, the template and the manifest.

use toml::{Table, Value};

const CHAPTER: &str = include_str!("../../book/src/production.md");
const MAIN: &str = include_str!("../../examples/web/src/main.rs");
const MANIFEST: &str = include_str!("../../examples/web/Cargo.toml");
const TEMPLATE: &str = include_str!("../../examples/web/Cargo.toml.liquid");
const GENERATE: &str = include_str!("../../examples/web/cargo-generate.toml");

#[test]
fn the_listing_of_the_chapter_is_the_program() {
    let (_, listing) = CHAPTER.split_once("```rust,ignore\n").unwrap();
    let (listing, _) = listing.split_once("```").unwrap();
    assert_eq!(listing, MAIN);
    let events = CHAPTER.rsplit_once("```rust,ignore\n").unwrap().1.split_once("```").unwrap().0;
    assert!(include_str!("../../examples/web/src/http/routes.rs").contains(events), "{events}");
    assert!(MAIN.lines().count() < 80, "a `main.rs` that fits on one page");
}

#[test]
fn the_tree_of_the_chapter_is_that_of_the_program() {
    let tree = include_str!("../../examples/web/src/tree.rs");
    let (_, drawn) = tree.split_once("//! ```text\n").unwrap();
    let (drawn, _) = drawn.split_once("//! ```\n").unwrap();
    let drawn: String =
        drawn.lines().map(|line| line.trim_start_matches("//! ").to_owned() + "\n").collect();
    assert!(CHAPTER.contains(&format!("```text\n{drawn}```")), "{drawn}");
}

/// Each dependency but verger, with its version and features; verger with its features.
fn dependencies(manifest: &str) -> Vec<(String, Value)> {
    let manifest: Table = manifest.parse().unwrap();
    let tables =
        ["dependencies", "dev-dependencies"].map(|name| manifest[name].as_table().unwrap().clone());
    let without_place = |mut value: Value| {
        if let Some(table) = value.as_table_mut().filter(|table| table.contains_key("path")) {
            table.remove("path");
            table.insert("version".into(), "0.1".into());
        }
        value
    };
    tables.into_iter().flatten().map(|(name, value)| (name, without_place(value))).collect()
}

#[test]
fn the_template_depends_on_what_the_example_depends_on() {
    let generated = TEMPLATE.replace("{{project-name}}", "my-service");
    assert_eq!(dependencies(&generated), dependencies(MANIFEST));
    let generated: Table = generated.parse().unwrap();
    assert_eq!(generated["package"]["name"].as_str(), Some("my-service"));
    assert!(!generated.to_string().contains("workspace"), "it is a project of its own");
    let generate: Table = GENERATE.parse().unwrap();
    assert_eq!(generate["template"]["include"], Value::from(vec!["Cargo.toml"]));
    assert_eq!(generate["template"]["ignore"], Value::from(vec!["tests/deployment.rs"]));
}
