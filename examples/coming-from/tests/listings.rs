//! Each listing of another system in the book is code that is compiled here.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files of `directory`, below this package, that end in one of `extensions`, with their texts.
fn files(directory: &str, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let entries =
        fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| extensions.iter().any(|extension| path.extension().unwrap() == *extension));
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Returns the blocks of `page` that begin with this fence.
fn blocks(page: &str, fence: &str) -> Vec<String> {
    let (mut blocks, mut block) = (Vec::new(), None::<String>);
    for line in page.lines() {
        match &mut block {
            None if line == fence => block = Some(String::new()),
            None => {}
            Some(_) if line == "```" => blocks.extend(block.take()),
            Some(block) => *block += &format!("{line}\n"),
        }
    }
    assert!(block.is_none(), "a block begins with {fence} and doesn't end");
    blocks
}

/// Asserts that each block is in a file, and returns how many blocks there are.
fn check(fence: &str, sources: &[(PathBuf, String)], is_in: fn(&str, &str) -> bool) -> usize {
    let mut count = 0;
    for (page, text) in files("../../book/src/coming", &["md"]) {
        for block in blocks(&text, fence) {
            count += 1;
            assert!(
                sources.iter().any(|(_, source)| is_in(source, &block)),
                "{} has a block {fence} that is in no compiled file; change the file and the page \
                 together:\n{block}",
                page.display(),
            );
        }
    }
    count
}

#[test]
fn every_listing_in_rust_is_a_part_of_a_file() {
    let count =
        check("```rust,ignore", &files("src", &["rs"]), |source, block| source.contains(block));
    assert_eq!(count, 12);
}

#[test]
fn every_listing_in_erlang_and_elixir_is_a_file() {
    let sources = files("erlang", &["erl", "exs"]);
    let is_file = |source: &str, block: &str| source == block;
    assert_eq!(check("```erlang", &sources, is_file), 3);
    assert_eq!(check("```elixir", &sources, is_file), 1);
}

/// Blocks with another spelling of the fence would be checked by nothing.
#[test]
fn no_listing_escapes_the_check() {
    for (page, text) in files("../../book/src/coming", &["md"]) {
        for fence in text.lines().filter(|line| line.starts_with("```") && *line != "```") {
            let known = [
                "rust",
                "rust,ignore",
                "erlang",
                "elixir",
                "scala",
                "typescript",
                "python",
                "toml",
            ];
            assert!(known.contains(&&fence[3..]), "{}: unknown fence {fence}", page.display());
        }
    }
}

/// Returns the crates that a manifest pins, with their versions.
fn pins(manifest: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest);
    let text = fs::read_to_string(path).unwrap();
    let pin = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        let (_, version) = rest.split_once("\"=")?;
        Some((name.to_owned(), version.split_once('"')?.0.to_owned()))
    };
    let mut pins: Vec<_> = text.lines().filter_map(pin).collect();
    pins.dedup();
    pins
}

#[test]
fn the_chapters_name_the_versions_that_are_compiled() {
    let pages = files("../../book/src/coming", &["md"]);
    let peers = pins("../../benches/peers/Cargo.toml");
    for (name, version) in pins("Cargo.toml") {
        let named = format!("{name} {version}");
        assert!(pages.iter().any(|(_, text)| text.contains(&named)), "no chapter is about {named}");
        let peer = peers.iter().find(|(peer, _)| *peer == name);
        assert!(peer.is_none_or(|peer| peer.1 == version), "benches/peers doesn't pin {named}");
    }
}
