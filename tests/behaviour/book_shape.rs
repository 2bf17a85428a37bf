//! The book as one whole: its chapters, their order in `SUMMARY.md`, the doctests, and the programs that its chapters show.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|it| it == "md") {
            found.push(path);
        }
    }
}

/// Returns the chapters of the book, as paths below `book/src`. What a chapter includes isn't a chapter.
fn chapters() -> BTreeSet<String> {
    let book = root().join("book/src");
    let mut files = Vec::new();
    collect(&book, &mut files);
    let name = |file: &PathBuf| {
        let path = file.strip_prefix(&book).unwrap();
        path.components().map(|it| it.as_os_str().to_str().unwrap()).collect::<Vec<_>>().join("/")
    };
    let mut chapters: BTreeSet<_> = files.iter().map(name).collect();
    chapters.remove("SUMMARY.md");
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for included in text.split("{{#include ").skip(1) {
            chapters.remove(included.split("}}").next().unwrap().trim());
        }
    }
    chapters
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

/// Returns what is wrong with a block that rustdoc doesn't compile. `folder` is that of the page.
fn fault_of_ignored(folder: &Path, code: &[&str]) -> Option<String> {
    let [line] = code else {
        // Shown as it is, so that rustdoc and readers of the source see it, too.
        let listing = code.join("\n");
        let is_in = |file: &PathBuf| fs::read_to_string(file).unwrap().contains(&listing);
        let is_compiled = sources_below(&root().join("examples")).iter().any(is_in);
        let fault = "is in no example; remove `ignore`, or show code of an example";
        return (!is_compiled).then(|| fault.to_owned());
    };
    let included = line.strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}"));
    let Some((file, anchor)) = included.and_then(|included| included.rsplit_once(':')) else {
        return Some("is not `{{#include FILE:ANCHOR}}`".to_owned());
    };
    let path = folder.join(file);
    let is_example = path
        .canonicalize()
        .is_ok_and(|path| path.starts_with(root().canonicalize().unwrap().join("examples")));
    if !is_example {
        return Some(format!("includes `{file}`, which is no file below `examples`"));
    }
    let text = fs::read_to_string(path).unwrap();
    let has = |mark: &str| text.lines().any(|line| line.trim() == format!("// {mark}: {anchor}"));
    (!has("ANCHOR") || !has("ANCHOR_END"))
        .then(|| format!("includes `{file}`, which has no anchor `{anchor}`"))
}

/// Returns the Rust files below a directory.
fn sources_below(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let mut sources: Vec<_> =
        files.into_iter().filter(|file| file.extension().is_some_and(|it| it == "rs")).collect();
    let directories = directories.iter().filter(|it| !it.ends_with("target"));
    sources.extend(directories.flat_map(|directory| sources_below(directory)));
    sources
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
    let library = read("src/lib.rs");
    for chapter in chapters() {
        let page = read(&format!("book/src/{chapter}"));
        let has_doctests = parts_of(&page).1.into_iter().any(is_doctest);
        let line = format!("#[doc = include_str!(\"../book/src/{chapter}\")]");
        // A page whose blocks are all text may be there.
        assert!(
            !has_doctests || library.contains(&line),
            "{chapter} has listings: write `{line}` into the module `book` of src/lib.rs"
        );
    }
    let named = library.split("include_str!(\"../book/src/").skip(1);
    for chapter in named.map(|rest| rest.split('"').next().unwrap()) {
        assert!(chapters().contains(chapter), "src/lib.rs has `{chapter}`, which is no chapter");
    }
}

#[test]
fn a_listing_that_is_no_doctest_is_part_of_an_example() {
    let mut faults = Vec::new();
    let chapters = chapters().into_iter().map(|chapter| format!("book/src/{chapter}"));
    for path in chapters.chain(["README.md".to_owned()]) {
        let page = read(&path);
        let folder = root().join(&path).parent().unwrap().to_owned();
        for (info, code) in blocks_of(&page) {
            let mut words = info.split([',', ' ']).map(str::trim);
            let is_ignored = words.clone().any(|word| word.starts_with("ignore"));
            if !is_ignored || !words.any(|word| word == "rust") {
                continue;
            }
            if let Some(fault) = fault_of_ignored(&folder, &code) {
                faults.push(format!("{path}: the listing {code:?} {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
        if std::env::var_os("VERGER_WRITE_BOOK").is_some() {
            fs::write(root().join(&path), page.replace(&listing, code.trim_end())).unwrap();
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
    assert_eq!(listing_of(&config, "toml"), read("examples/tutorial/station.toml").trim_end());
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
    let known = super::log_table::lines();
    let mut pages: Vec<_> = chapters().iter().map(|it| format!("book/src/{it}")).collect();
    pages.push("README.md".to_owned());
    let mut unknown = Vec::new();
    for page in pages.iter().filter(|page| !page.ends_with("log-lines.md")) {
        let text = read(page);
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
