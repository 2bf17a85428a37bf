//! `examples/README.md` lists each example and each directory of `crates`, and its commands select the features that the example needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::files::{read, root};

const INDEX: &str = "examples/README.md";

/// The rows of the index: the file or directory, what it shows, how to break it, and the command.
fn rows() -> BTreeMap<String, [String; 3]> {
    let mut rows = BTreeMap::new();
    for line in read(INDEX).lines().filter(|line| line.starts_with("| [")) {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [program, shows, breaks, command] = cells[..] else { panic!("four columns: {line}") };
        let target = program.split_once("](").and_then(|(_, rest)| rest.strip_suffix(')'));
        let target = target.unwrap_or_else(|| panic!("write a link, such as [`a`](a.rs): {line}"));
        let cells = [shows, breaks, command].map(str::to_owned);
        assert_eq!(rows.insert(target.to_owned(), cells), None, "{target} is listed twice");
    }
    rows
}

/// Returns the files and directories in a directory, each after this prefix. A `/` follows the name of a directory.
fn entries(directory: &str, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(directory)).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let end = if entry.file_type().unwrap().is_dir() { "/" } else { "" };
        format!("{prefix}{name}{end}")
    });
    entries.collect()
}

/// Returns the files and directories that no row names. A directory is named by a link to it or to a file in it.
fn unlisted(rows: &BTreeMap<String, [String; 3]>) -> Vec<String> {
    let mut names: BTreeSet<String> = entries("examples", "").into_iter().collect();
    names.extend(entries("crates", "../crates/"));
    let is_listed = |name: &&String| match name.strip_suffix('/') {
        // A part of the example of the same name.
        Some(part) if names.contains(&format!("{part}.rs")) => true,
        Some(_) => rows.keys().any(|target| target.starts_with(*name)),
        None => !name.ends_with(".rs") || rows.contains_key(*name),
    };
    names.iter().filter(|name| !is_listed(name)).cloned().collect()
}

/// A feature and all that it turns on.
fn closure(features: &toml::Table, names: &[&str]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut open: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    while let Some(name) = open.pop() {
        let turned_on = features.get(&name).and_then(toml::Value::as_array);
        open.extend(
            turned_on.into_iter().flatten().filter_map(|it| it.as_str()).map(str::to_owned),
        );
        all.insert(name);
    }
    all
}

/// Returns what a command has after this word.
fn word_after<'a>(command: &'a str, word: &str) -> Option<&'a str> {
    let mut words = command.split_whitespace().map(|it| it.trim_end_matches(';'));
    words.find(|it| *it == word)?;
    words.next()
}

/// Asserts that the command selects the features that its example needs.
fn assert_features(manifest: &toml::Table, command: &str) {
    let features = manifest["features"].as_table().unwrap();
    let name = word_after(command, "--example").unwrap();
    let selected = word_after(command, "--features").unwrap_or_default();
    let selected: Vec<_> = selected.split(',').chain(["default"]).collect();
    let selected = closure(features, &selected);
    let examples = manifest["example"].as_array().unwrap();
    let entry = examples.iter().find(|it| it["name"].as_str() == Some(name));
    let needed = entry.and_then(|it| it.get("required-features")?.as_array());
    for feature in needed.into_iter().flatten().filter_map(toml::Value::as_str) {
        assert!(selected.contains(feature), "`{command}` lacks the feature `{feature}`");
    }
}

#[test]
fn the_index_lists_each_example_and_crate_and_nothing_else() {
    let rows = rows();
    let directory = root().join("examples");
    for target in rows.keys() {
        assert!(directory.join(target).exists(), "{INDEX} lists {target}, which doesn't exist");
    }
    let unlisted = unlisted(&rows);
    assert!(unlisted.is_empty(), "add a row to {INDEX} for each of {unlisted:?}");
}

#[test]
fn each_row_says_how_to_break_its_example_and_has_a_command_that_cargo_accepts() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    for (target, [shows, breaks, command]) in rows() {
        assert!(!shows.is_empty() && !breaks.is_empty(), "{target} has an empty cell");
        let command = command.trim_matches('`');
        let Some(name) = target.strip_suffix(".rs").filter(|name| !name.contains('/')) else {
            assert!(!command.is_empty(), "{target} has no command");
            continue;
        };
        assert_eq!(word_after(command, "--example"), Some(name), "{target}: {command}");
        assert_features(&manifest, command);
    }
}

#[test]
fn the_commands_in_the_comments_of_the_examples_select_their_features() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    for target in rows().keys().filter(|target| target.ends_with(".rs")) {
        for line in read(&format!("examples/{target}")).lines() {
            let command = line
                .strip_prefix("//! ")
                .and_then(|line| line.find("cargo run ").map(|at| &line[at..]));
            if let Some(command) = command.filter(|it| it.contains("--example ")) {
                assert_features(&manifest, command);
            }
        }
    }
}
