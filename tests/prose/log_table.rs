//! The book lists every log line and every span of verger, as the sources have them.

use std::collections::BTreeMap;

use crate::book_tables::check;
use crate::files::{files, read};

/// The names of all fields, so that one thing has one name.
const FIELDS: [&str; 74] = [
    "address",
    "at_most",
    "attempt",
    "available",
    "backtrace",
    "by",
    "call",
    "cause",
    "changes",
    "child",
    "children",
    "code",
    "count",
    "delay",
    "ending",
    "error",
    "event_type",
    "expires_within",
    "failed_in_a_row",
    "failing",
    "forced",
    "from",
    "grace_left",
    "graces",
    "hint",
    "holder",
    "hook",
    "incarnation",
    "late",
    "lease",
    "length",
    "limit",
    "line",
    "lived",
    "location",
    "lock",
    "lost_in",
    "missed",
    "name",
    "of",
    "panic",
    "path",
    "pause",
    "pid",
    "place",
    "problem",
    "reason",
    "remark",
    "requires",
    "restarted_with",
    "restarts",
    "retry_after",
    "service",
    "signal",
    "source",
    "stage",
    "stages",
    "still_running",
    "stream",
    "stuck",
    "task",
    "then",
    "to",
    "token",
    "took",
    "total",
    "trigger",
    "unchanged",
    "unlogged",
    "url",
    "usage",
    "value",
    "variable",
    "waited",
];

/// A line of the source: where it goes, and what it says.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    pub(crate) target: String,
    pub(crate) level: String,
    pub(crate) message: String,
    pub(crate) fields: Vec<String>,
}

/// The macros of `src/subscriber.rs` and `src/runtime/log.rs`, with the level of each.
const MACROS: [(&str, &str); 9] = [
    ("bounded", ""),
    ("restarting", ""),
    ("event", ""),
    ("error", "`ERROR`"),
    ("warn", "`WARN`"),
    ("info", "`INFO`"),
    ("debug", "`DEBUG`"),
    ("info_span", "span, `INFO`"),
    ("debug_span", "span, `DEBUG`"),
];

/// Returns the source without comments and tests, which also log.
fn code_of(source: &str) -> String {
    let source = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let source = source.split("\n#[cfg(all(test").next().unwrap();
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the parts of a list that ends with the bracket before which it begins.
fn parts_of(list: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut depth, mut in_text, mut is_escaped) = (0, false, false);
    for c in list.chars() {
        if in_text {
            in_text = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            part.push(c);
            continue;
        }
        match c {
            '"' => in_text = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    let parts = parts.iter().map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    parts.filter(|part| !part.is_empty()).collect()
}

/// Returns the text of a literal, with its line breaks taken out.
fn text_of(part: &str) -> Option<String> {
    let text = part.strip_prefix('"')?.strip_suffix('"')?;
    Some(text.replace("\\ ", ""))
}

fn field_of(part: &str) -> String {
    let name = part.split('=').next().unwrap().trim();
    name.trim_start_matches(['%', '?']).to_owned()
}

/// Returns the line of one call, whose arguments follow.
fn line_of(name: &str, level: &str, arguments: &str) -> Line {
    let mut parts = parts_of(arguments);
    let mut level = level.to_owned();
    let mut note = "";
    if name == "bounded" {
        parts.remove(0);
        level = format!("`{}`", parts.remove(0));
    } else if name == "event" {
        // Its level is a constant of the macro around it.
        level = "`WARN`, or as `failure_log` says".to_owned();
        parts.retain(|part| part != "$level");
    }
    let target =
        parts.iter().position(|part| part.starts_with("target:")).map(|at| parts.remove(at));
    let target = text_of(target.expect("a target").trim_start_matches("target:").trim()).unwrap();
    parts.retain(|part| !part.starts_with("parent:"));
    let message = parts.iter().position(|part| part.starts_with('"')).map(|at| parts.remove(at));
    let message =
        message.map(|it| text_of(&it).unwrap_or_else(|| panic!("{it}"))).unwrap_or_default();
    if message.contains("{note}") || name == "bounded" {
        note = "*";
    }
    let message = message.replace("{note}", "");
    let fields = parts.iter().map(|part| field_of(part)).collect();
    let message = match message.as_str() {
        "" => "(none)".to_owned(),
        message if message.contains('`') => format!("`` {message} ``{note}"),
        message => format!("`{message}`{note}"),
    };
    Line { target, level, message, fields }
}

pub(crate) fn lines() -> Vec<Line> {
    let mut lines = Vec::new();
    for file in files("src", &["rs"]) {
        let is_tests = file.split('/').any(|part| part == "tests" || part == "tests.rs");
        if is_tests || file == "src/subscriber.rs" {
            continue;
        }
        let code = code_of(&read(&file));
        for (name, level) in MACROS {
            for (at, call) in code.match_indices(&format!("{name}!(")) {
                let before = code[..at].chars().next_back().unwrap_or(' ');
                let arguments = &code[at + call.len()..];
                // The definitions of the macros in `runtime/log.rs`, and the calls that they consist of.
                let is_definition = arguments.trim_start().starts_with("target: $target");
                let is_level = name == "restarting";
                if before.is_alphanumeric() || before == '_' || is_definition || is_level {
                    continue;
                }
                lines.push(line_of(name, level, arguments));
            }
        }
    }
    lines.sort();
    lines.dedup();
    lines
}

fn table() -> String {
    let mut by_target: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for line in lines() {
        by_target.entry(line.target.clone()).or_default().push(line);
    }
    let mut table = "| target | level | message | fields |\n| --- | --- | --- | --- |\n".to_owned();
    for (target, lines) in by_target {
        for Line { level, message, fields, .. } in lines {
            let fields: Vec<_> = fields.iter().map(|field| format!("`{field}`")).collect();
            table += &format!("| `{target}` | {level} | {message} | {} |\n", fields.join(", "));
        }
    }
    table
}

#[test]
fn the_book_lists_each_log_line_with_its_fields() {
    check("book/src/log-lines.md", "lines", &table());
}

/// A span has a name instead, which is its message here.
#[test]
fn each_line_has_a_message() {
    let without = lines().into_iter().filter(|line| line.message == "(none)");
    assert_eq!(without.collect::<Vec<_>>(), []);
}

#[test]
fn each_field_has_one_name_and_a_line_about_an_incarnation_names_its_child_first() {
    for Line { target, message, fields, .. } in lines() {
        for field in &fields {
            assert!(FIELDS.contains(&field.as_str()), "{target} {message}: {field}");
        }
        let at = |name| fields.iter().position(|field| field == name);
        if let (Some(incarnation), Some(child)) = (at("incarnation"), at("child").or(at("path"))) {
            assert_eq!(incarnation, child + 1, "{target} {message}: {fields:?}");
        }
    }
}
