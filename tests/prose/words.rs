//! Words and long sentences to avoid, which are still there as often as `words.md` says. A number only falls.

use crate::files::{assert_none, files, read, write, writes};
use crate::text::{Word, find, long_sentences, of_comments, of_markdown};

const TABLE: &str = "tests/prose/words.md";

/// The row of long sentences, which has no phrases.
const LONG: &str = "a sentence of the book with more than 45 words";
const MOST_WORDS: usize = 45;

/// A row of the table: what to avoid, what to write instead, and how often it is still there.
#[derive(Clone, Copy)]
struct Row<'a> {
    avoid: &'a str,
    instead: &'a str,
    budget: usize,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let cells: Vec<_> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [avoid, instead, budget] = cells[..] else { panic!("{TABLE}: three columns: {line}") };
        budget.parse().ok().map(|budget| Self { avoid, instead, budget })
    }

    fn phrases(self) -> impl Iterator<Item = &'a str> {
        self.avoid.split('`').skip(1).step_by(2)
    }

    /// Returns what is wrong if it is there more often or less often than the budget allows.
    fn problem(self, places: &[String]) -> Option<String> {
        let Self { avoid, instead, budget } = self;
        let count = places.len();
        if count < budget {
            return Some(format!(
                "{TABLE}: {avoid}: lower the budget to {count}, or run `VERGER_WRITE_BOOK=1 cargo test \
                 --all-features --test prose`"
            ));
        }
        let places = places.join("\n");
        (count > budget).then(|| {
            format!("{avoid}: {count} of at most {budget}; write instead: {instead}\n{places}")
        })
    }
}

/// A file and its prose.
struct Prose<'a> {
    path: &'a str,
    is_book: bool,
    paragraphs: Vec<Vec<Word<'a>>>,
}

impl<'a> Prose<'a> {
    fn new(path: &'a str, text: &'a str) -> Self {
        let is_markdown = path.ends_with(".md");
        let paragraphs = if is_markdown { of_markdown(text) } else { of_comments(text) };
        Self { path, is_book: path.starts_with("book/"), paragraphs }
    }
}

/// Returns the places where texts have what a row says to avoid.
fn places(row: Row<'_>, texts: &[Prose<'_>]) -> Vec<String> {
    let mut places = Vec::new();
    for Prose { path, is_book, paragraphs } in texts {
        let mut lines = Vec::new();
        if row.avoid == LONG && *is_book {
            let long = long_sentences(MOST_WORDS, paragraphs);
            lines.extend(long.iter().map(|(line, words)| (*line, format!("{words} words"))));
        }
        for phrase in row.phrases() {
            let found = find(phrase, paragraphs);
            lines.extend(found.iter().map(|line| (*line, format!("`{phrase}`"))));
        }
        lines.sort();
        places.extend(lines.iter().map(|(line, what)| format!("{path}:{line}: {what}")));
    }
    places
}

#[test]
fn words_to_avoid_and_long_sentences_only_become_fewer() {
    let mut paths = files("book/src", &["md"]);
    paths.push("README.md".to_owned());
    paths.extend(files("src", &["rs"]));
    paths.extend(files("macros/src", &["rs"]));
    paths.extend(files("crates/lease-postgres/src", &["rs"]));
    let texts: Vec<_> = paths.into_iter().map(|path| (read(&path), path)).collect();
    let texts: Vec<_> = texts.iter().map(|(text, path)| Prose::new(path, text)).collect();

    let (table, mut lowered, mut problems) = (read(TABLE), String::new(), Vec::new());
    for line in table.lines() {
        let row = Row::parse(line);
        let places = row.map(|row| places(row, &texts)).unwrap_or_default();
        match row {
            Some(Row { avoid, instead, budget }) if writes() && places.len() < budget => {
                lowered += &format!("| {avoid} | {instead} | {} |\n", places.len());
            }
            _ => {
                lowered += &format!("{line}\n");
                problems.extend(row.and_then(|row| row.problem(&places)));
            }
        }
    }
    if lowered != table {
        write(TABLE, &lowered);
    }
    assert!(table.contains(&format!("\n| {LONG} | ")), "{TABLE} has no row `{LONG}`");
    assert_none(&problems);
}

#[test]
fn a_phrase_more_is_shown_with_its_line_and_a_phrase_less_lowers_the_budget() {
    let row = Row::parse("| `at once`, `of * own` | *immediately*, or its | 2 |").unwrap();
    let page = "It stops at once.\nA task of its own stops\nat once.\n";
    let found = places(row, &[Prose::new("book/a.md", page)]);
    let shown = "`at once`, `of * own`: 3 of at most 2; write instead: *immediately*, or its\n\
        book/a.md:1: `at once`\nbook/a.md:2: `of * own`\nbook/a.md:3: `at once`";
    // The second `at once` is on two lines, and begins on the first of them.
    assert_eq!(row.problem(&found).as_deref(), Some(shown));
    assert_eq!(row.problem(&found[..2]), None);
    let less = row.problem(&found[..1]).unwrap();
    assert!(less.contains("lower the budget to 1, "), "{less}");

    let long = Row { avoid: LONG, instead: "", budget: 0 };
    let sentence = "word ".repeat(46);
    let texts = ["book/a.md", "README.md"].map(|path| Prose::new(path, &sentence));
    assert_eq!(places(long, &texts), ["book/a.md:1: 46 words"]);
}
