//! What the documentation says about the package is what cargo resolves: its features, and the Rust that it needs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::process::Command;

use serde_json::Value;

const FRONT_PAGE: &str = include_str!("../src/lib.rs");
const TARGET: &str = "x86_64-unknown-linux-gnu";
const MANIFEST: &str = include_str!("../Cargo.toml");

/// What cargo prints for a command that only reads the lockfile.
fn cargo(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([command, "--locked", "--offline"])
        .args(arguments)
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names of packages are UTF-8")
}

/// What `cargo tree` prints of the library with `features`: a line for each package, by `format`.
fn tree(features: &str, format: &str, depth: &str) -> BTreeSet<String> {
    let library = ["--package", "verger", "--no-default-features", "--features", features];
    let lines = ["--target", TARGET, "--edges", "normal", "--prefix", "none", "--depth", depth];
    let text = cargo("tree", &[&library[..], &lines, &["--format", format]].concat());
    // The same crate in two versions is two crates. ` (…)` is a path, ` (*)`, or what the crate is.
    text.lines().map(|line| line.split(" (").next().unwrap_or(line).to_owned()).collect()
}

/// The names of the crates at the first level.
fn direct(features: &str) -> BTreeSet<String> {
    let named = |package: String| package.split(' ').next().map(str::to_owned);
    tree(features, "{p}", "1").into_iter().filter_map(named).collect()
}

/// The features of the library that `features` turn on, with themselves.
fn turned_on(features: &str) -> BTreeSet<String> {
    let lines = tree(features, "{f}", "0");
    lines.iter().flat_map(|line| line.split(',')).map(str::to_owned).collect()
}

fn quoted(names: impl IntoIterator<Item = String>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// All but the second column, which describes the feature.
#[derive(Debug, PartialEq)]
struct Row {
    feature: String,
    turns_on: String,
    direct: String,
    crates: String,
}

impl Row {
    fn computed(feature: &str) -> Self {
        let (all, directly) = (tree("", "{p}", "99"), direct(""));
        let also = turned_on(feature).into_iter().filter(|other| other != feature);
        Self {
            feature: feature.to_owned(),
            turns_on: quoted(also),
            direct: quoted(direct(feature).difference(&directly).cloned()),
            crates: tree(feature, "{p}", "99").difference(&all).count().to_string(),
        }
    }

    fn written(line: &str) -> Option<Self> {
        let cells: Vec<_> =
            line.strip_prefix("//! | `")?.trim_end_matches(" |").split(" |").collect();
        let [feature, _, turns_on, direct, crates] = cells[..] else { return None };
        Some(Self {
            feature: feature.split('`').next()?.to_owned(),
            turns_on: turns_on.trim().to_owned(),
            direct: direct.trim().to_owned(),
            crates: crates.trim().to_owned(),
        })
    }
}

/// The features in `Cargo.toml`, and those of them that are on by default.
fn manifest() -> (BTreeSet<String>, BTreeSet<String>) {
    let manifest: toml::Table = MANIFEST.parse().expect("the manifest is TOML");
    let features = manifest["features"].as_table().expect("a table of features");
    let default = features["default"].as_array().expect("a list of features").iter();
    let default = default.filter_map(|feature| feature.as_str()).map(str::to_owned).collect();
    (features.keys().filter(|name| *name != "default").cloned().collect(), default)
}

#[test]
fn the_table_of_features_has_what_cargo_resolves() {
    let written: Vec<_> = FRONT_PAGE.lines().filter_map(Row::written).collect();
    let computed: Vec<_> = written.iter().map(|row| Row::computed(&row.feature)).collect();
    assert_eq!(written, computed);
}

#[test]
fn each_feature_has_a_row_and_the_defaults_are_marked() {
    let (features, default) = manifest();
    let written: BTreeSet<_> =
        FRONT_PAGE.lines().filter_map(Row::written).map(|row| row.feature).collect();
    assert_eq!(written, features);
    let marked: BTreeSet<_> =
        FRONT_PAGE.lines().filter(|line| line.contains("` (default) |")).collect();
    let marked: BTreeSet<_> =
        marked.into_iter().filter_map(Row::written).map(|row| row.feature).collect();
    assert_eq!(marked, default);
}

#[test]
fn full_turns_on_every_other_feature() {
    assert_eq!(turned_on("full"), manifest().0);
}

#[test]
fn the_sentence_above_the_table_counts_the_crates() {
    let (features, _) = manifest();
    let all = features.into_iter().collect::<Vec<_>>().join(",");
    // verger itself is in the tree.
    let (none, all) = (tree("", "{p}", "99").len() - 1, tree(&all, "{p}", "99").len() - 1);
    let sentence = format!("adds {none} other crates to a program; with all of them, {all}.");
    assert!(FRONT_PAGE.contains(&sentence), "write in `src/lib.rs`: {sentence}");
}

/// A version of Rust, such as `1.88`. A package without one is taken to need none.
fn rust_version(package: &Value) -> (u32, u32) {
    let version = package["rust_version"].as_str().unwrap_or("1.0");
    let mut parts = version.split('.').map(|part| part.parse().expect("a version has numbers"));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[test]
fn no_dependency_needs_a_newer_rust_than_the_library() {
    let text = cargo(
        "metadata",
        &["--format-version", "1", "--all-features", "--filter-platform", TARGET],
    );
    let metadata: Value = serde_json::from_str(&text).expect("cargo writes JSON");
    let packages: HashMap<_, _> = list(&metadata["packages"]).map(|it| (&it["id"], it)).collect();
    let nodes: HashMap<_, _> =
        list(&metadata["resolve"]["nodes"]).map(|node| (&node["id"], node)).collect();
    let library = list(&metadata["packages"])
        .find(|package| package["name"] == "verger")
        .expect("this package is listed");
    let limit = rust_version(library);

    let mut newer = Vec::new();
    let (mut seen, mut todo) = (HashSet::new(), vec![&library["id"]]);
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        if rust_version(packages[id]) > limit {
            newer.push(id);
        }
        // Dependencies of tests are of the kind `dev`.
        let needed = |it: &&Value| list(&it["dep_kinds"]).any(|kind| kind["kind"] != "dev");
        todo.extend(list(&nodes[id]["deps"]).filter(needed).map(|dependency| &dependency["pkg"]));
    }
    assert_eq!(newer, Vec::<&Value>::new(), "these need more than Rust {limit:?}");
    // The library, its macros, and what the front page counts.
    assert!(seen.len() > 98, "only {} packages were found", seen.len());
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}
