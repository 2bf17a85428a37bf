//! The book's tables of cargo features and of events are those of the sources. Log lines have a test of their own: `log_table`.

use crate::files::{read, write, writes};

const REMEDY: &str = "run `VERGER_WRITE_BOOK=1 cargo test --all-features --test prose`";

/// Compares the table between the marks of a chapter, or writes it if the environment says so.
pub(crate) fn check(chapter: &str, mark: &str, table: &str) {
    let text = read(chapter);
    let (begin, end) = (format!("<!-- {mark} -->\n\n"), format!("\n<!-- end of {mark} -->"));
    let (before, rest) = text.split_once(&begin).expect("the beginning of the table");
    let (there, after) = rest.split_once(&end).expect("the end of the table");
    if writes() {
        write(chapter, &format!("{before}{begin}{table}{end}{after}"));
        return;
    }
    let missing = table.lines().find(|&line| !there.lines().any(|it| it == line));
    assert_eq!(missing, None, "not in {chapter}; {REMEDY}");
    assert!(there == table, "{chapter} has a line more than the sources; {REMEDY}");
}

/// Returns the names in the array of a feature, with what they turn on.
fn turned_on(list: &str) -> String {
    let names = list.trim_matches(['[', ']']).split(',').map(|it| it.trim().trim_matches('"'));
    let names = names.filter(|name| !name.is_empty());
    // Features of this crate and of others, and then the crates that are added.
    let (crates, features): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("dep:"));
    let crates = crates.iter().map(|name| format!("crate `{}`", name.trim_start_matches("dep:")));
    let features = features.iter().map(|name| format!("`{name}`"));
    features.chain(crates).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_book_lists_each_cargo_feature() {
    let manifest = read("Cargo.toml");
    let features = manifest.split_once("\n[features]\n").unwrap().1.split("\n[").next().unwrap();
    let mut table = "| feature | what it is for | turns on |\n| --- | --- | --- |\n".to_owned();
    let (mut comment, mut defaults) = (String::new(), String::new());
    for line in features.lines().filter(|line| !line.is_empty()) {
        if let Some(text) = line.strip_prefix("# ") {
            comment = format!("{comment} {text}").trim().to_owned();
            continue;
        }
        let (name, list) =
            line.split_once(" = ").unwrap_or_else(|| panic!("one line each: {line}"));
        if name == "default" {
            list.clone_into(&mut defaults);
            continue;
        }
        assert!(!comment.is_empty(), "in Cargo.toml, a comment says what `{name}` is for");
        let default = if defaults.contains(&format!("\"{name}\"")) { ", default" } else { "" };
        let text = std::mem::take(&mut comment);
        table += &format!("| `{name}`{default} | {text} | {} |\n", turned_on(list));
    }
    check("book/src/features.md", "features", &table);
}

/// Returns the first sentence of a comment, with links as text.
fn sentence(comment: &str) -> String {
    let mut text = String::new();
    let mut rest = comment;
    while let Some((before, link)) = rest.split_once('[') {
        let (name, after) = link.split_once(']').expect("the end of a link");
        text += before;
        text += name;
        rest = match after.strip_prefix('(') {
            Some(target) => target.split_once(')').expect("the end of a target").1,
            None => after,
        };
    }
    text + rest
}

/// `LeaseGranted` as it is written in JSON.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text
}

#[test]
fn the_book_lists_each_event() {
    let source = read("src/status/event.rs");
    let body = source.split_once("pub enum EventKind {\n").unwrap().1;
    let body = body.split_once("\n}\n").unwrap().0;
    let mut table =
        "| event | in JSON | what has happened | fields |\n| --- | --- | --- | --- |\n".to_owned();
    let (mut comment, mut fields) = (String::new(), Vec::new());
    let mut row: Option<(String, String)> = None;
    for line in body.lines().map(str::trim_end) {
        let is_field = line.starts_with("        ");
        let line = line.trim_start();
        if let Some(text) = line.strip_prefix("/// ") {
            if !is_field {
                comment = format!("{comment} {text}").trim().to_owned();
            }
        } else if line.starts_with('#') {
        } else if is_field {
            let name = line.split(':').next().unwrap();
            fields.push(format!("`{name}`"));
        } else {
            if !line.starts_with('}') {
                let name = line.trim_end_matches([',', '{', ' ']).to_owned();
                row = Some((name, sentence(&std::mem::take(&mut comment))));
            }
            if line.ends_with(',') {
                let (name, text) = row.take().expect("the name of the event");
                let json = snake_case(&name);
                table += &format!("| `{name}` | `{json}` | {text} | {} |\n", fields.join(", "));
                fields.clear();
            }
        }
    }
    check("book/src/events.md", "events", &table);
}
