//! The book as one whole: its chapters, their order in `SUMMARY.md`, the doctests, and the programs that its chapters show.

use std::collections::BTreeSet;

use crate::files::{assert_none, files, read, write, writes};

/// A chapter has at least so many words besides its listings.
const FEWEST_WORDS: usize = 150;

/// The programs of the tutorial, by their names, which are also those of their chapters.
const TUTORIAL: [&str; 5] = ["loop", "child", "stopping", "inside", "config"];

/// Returns whether a text begins like a message, in which `{…}` stands for any text.
fn begins_like(text: &str, message: &str) -> bool {
    let mut rest = text;
    for (number, part) in message.split('{').enumerate() {
        let part = if number == 0 { part } else { part.split_once('}').unwrap().1 };
        let Some(at) = rest.find(part) else { return false };
        if number == 0 && at != 0 {
            return false;
        }
        rest = &rest[at + part.len()..];
    }
    message.ends_with('}') || rest.is_empty() || rest.starts_with([' ', '\n'])
}

/// Returns the chapters of the book, as paths below `book/src`. What a chapter includes isn't a chapter.
fn chapters() -> BTreeSet<String> {
    let files = files("book/src", &["md"]);
    let mut chapters: BTreeSet<_> =
        files.iter().filter_map(|file| file.strip_prefix("book/src/")).map(str::to_owned).collect();
    chapters.remove("SUMMARY.md");
    for file in &files {
        for included in read(file).split("{{#include ").skip(1) {
            chapters.remove(included.split("}}").next().unwrap().trim());
        }
    }
    chapters
}

/// Returns the chapters and the README, from the root of the repository.
fn pages() -> impl Iterator<Item = String> {
    let chapters = chapters().into_iter().map(|chapter| format!("book/src/{chapter}"));
    chapters.chain(["README.md".to_owned()])
}

/// Returns the text of a page without its code blocks, and the info strings of these blocks.
fn parts_of(page: &str) -> (String, Vec<&str>) {
    let (mut text, mut blocks) = (String::new(), Vec::new());
    let mut is_code = false;
    for line in page.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            if !is_code {
                blocks.push(info.trim());
            }
            is_code = !is_code;
        } else if !is_code {
            text.push_str(line);
            text.push('\n');
        }
    }
    (text, blocks)
}

/// Returns whether rustdoc compiles a block with this info string.
fn is_doctest(info: &str) -> bool {
    let mut words = info.split([',', ' ']).map(str::trim);
    (info.is_empty() || words.clone().any(|word| word == "rust"))
        && !words.any(|word| word == "ignore")
}

/// Returns the code blocks of a page: the info string of each, and its lines.
fn blocks_of(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let code = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
            blocks.push((info.trim(), code.collect()));
        }
    }
    blocks
}

fn listing_of(page: &str, begin: &str) -> String {
    let rest = page.split_once(&format!("\n```{begin}\n")).expect("the listing").1;
    rest.split_once("\n```").expect("the end of the listing").0.to_owned()
}

#[test]
fn the_summary_names_each_chapter_once() {
    let summary = read("book/src/SUMMARY.md");
    let links = summary.split("](").skip(1).map(|rest| rest.split(')').next().unwrap().to_owned());
    let links: Vec<_> = links.collect();
    let named: BTreeSet<_> = links.iter().cloned().collect();
    assert_eq!(links.len(), named.len(), "a chapter is named twice");
    assert_eq!(named, chapters(), "left: named in SUMMARY.md, right: in book/src");
}

#[test]
fn each_listing_of_the_book_is_a_doctest() {
    let (listed, chapters) = (read("src/book.rs"), chapters());
    for chapter in &chapters {
        let page = read(&format!("book/src/{chapter}"));
        let has_doctests = parts_of(&page).1.into_iter().any(is_doctest);
        let line = format!("#[doc = include_str!(\"../book/src/{chapter}\")]");
        // A page whose blocks are all text may be there.
        assert!(
            !has_doctests || listed.contains(&line),
            "{chapter} has listings: write `{line}` into src/book.rs"
        );
    }
    let named = listed.split("include_str!(\"../book/src/").skip(1);
    for chapter in named.map(|rest| rest.split('"').next().unwrap()) {
        assert!(chapters.contains(chapter), "src/book.rs has `{chapter}`, which is no chapter");
    }
}

#[test]
fn a_listing_that_is_no_doctest_is_part_of_an_example() {
    let mut faults = Vec::new();
    let examples: Vec<_> = files("examples", &["rs"]).iter().map(|file| read(file)).collect();
    for path in pages() {
        let page = read(&path);
        for (info, code) in blocks_of(&page) {
            let mut words = info.split([',', ' ']).map(str::trim);
            let is_ignored = words.clone().any(|word| word.starts_with("ignore"));
            if !is_ignored || !words.any(|word| word == "rust") {
                continue;
            }
            // Shown as it is, and not with `{{#include}}`, which only the rendered book resolves.
            let listing = code.join("\n");
            if !examples.iter().any(|example| example.contains(&listing)) {
                faults.push(format!(
                    "{path}: this listing is in no example; remove `ignore`, or show code of an example:\n{listing}"
                ));
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn no_chapter_is_a_stub() {
    for chapter in chapters() {
        let page = read(&format!("book/src/{chapter}"));
        assert!(page.starts_with("# "), "{chapter} begins without a title");
        let words = parts_of(&page).0.split_whitespace().count();
        assert!(words >= FEWEST_WORDS, "{chapter} has {words} words besides its listings");
    }
}

#[test]
fn the_chapters_of_the_tutorial_show_their_programs() {
    for name in TUTORIAL {
        let program = read(&format!("examples/tutorial/{name}.rs"));
        let (first, code) = program.split_once('\n').unwrap();
        assert!(
            first.starts_with("//! "),
            "examples/tutorial/{name}.rs begins without its comment"
        );
        let path = format!("book/src/tutorial/{name}.md");
        let page = read(&path);
        let listing = listing_of(&page, "rust,no_run");
        if writes() {
            write(&path, &page.replace(&listing, code.trim_end()));
            continue;
        }
        assert_eq!(
            listing,
            code.trim_end(),
            "book/src/tutorial/{name}.md shows something else than examples/tutorial/{name}.rs"
        );
        let words = page.split_whitespace().count();
        assert!((400..=1_500).contains(&words), "book/src/tutorial/{name}.md has {words} words");
    }
    let config = read("book/src/tutorial/config.md");
    let listings = blocks_of(&config).into_iter().filter(|(info, _)| *info == "toml");
    let listings: Vec<_> = listings.map(|(_, code)| code.join("\n")).collect();
    assert_eq!(listings.len(), 2, "the line for `Cargo.toml`, and the file");
    assert_eq!(listings[1], read("examples/tutorial/station.toml").trim_end());
}

#[test]
fn the_first_pages_are_short() {
    for (page, limit) in [("book/src/introduction.md", 1_000), ("book/src/first-tree.md", 600)] {
        let words = read(page).split_whitespace().count();
        assert!(words <= limit, "{page} has {words} words; at most {limit}");
    }
}

#[test]
fn each_log_line_that_the_book_shows_is_one_of_the_sources() {
    let known = crate::log_table::lines();
    let mut unknown = Vec::new();
    for page in pages().filter(|page| !page.ends_with("log-lines.md")) {
        let text = read(&page);
        for shown in text.lines().filter(|line| !line.starts_with('|')) {
            let levels = [" INFO ", " WARN ", "ERROR ", "DEBUG "];
            let Some(at) =
                shown.find("verger::").filter(|_| levels.iter().any(|it| shown.contains(it)))
            else {
                continue;
            };
            let Some((target, message)) = shown[at..].split_once(": ") else { continue };
            let is_known = known.iter().any(|line| {
                let text = line.message.trim_matches(['`', '*', ' ']);
                line.target == target && begins_like(message, text)
            });
            if !is_known {
                unknown.push(format!("{page}: {shown}"));
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "no line of the sources, see log-lines.md:\n{}",
        unknown.join("\n")
    );
}

#[test]
fn readme_and_introduction_show_the_first_example_which_fits_on_one_screen() {
    let program = read("examples/hello.rs");
    let hello: Vec<_> = program.lines().skip_while(|line| line.starts_with("//!")).collect();
    let hello = hello.join("\n");
    for page in ["README.md", "book/src/introduction.md"] {
        let text = read(page);
        let blocks = blocks_of(&text);
        let shown: Vec<_> = blocks.iter().filter(|(info, _)| *info == "rust,no_run").collect();
        let [(_, shown)] = shown[..] else {
            panic!(
                "{page}: one block `rust,no_run` is examples/hello.rs, and there are {}",
                shown.len()
            )
        };
        assert_eq!(shown.join("\n"), hello, "{page}: left, and examples/hello.rs: right");
    }
    let lines = hello.lines().count();
    assert!(lines <= 24, "examples/hello.rs has {lines} lines besides its comment; at most 24");
}
