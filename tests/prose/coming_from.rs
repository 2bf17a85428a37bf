//! Each listing of another system in the chapters *Coming from …* is code of `examples/coming-from`, which compiles and runs it.

use crate::files::{files, read};

const CHAPTERS: &str = "book/src/coming";

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
fn check(fence: &str, sources: &[String], is_in: fn(&str, &str) -> bool) -> usize {
    let mut count = 0;
    for page in files(CHAPTERS, &["md"]) {
        for block in blocks(&read(&page), fence) {
            count += 1;
            assert!(
                sources.iter().any(|source| is_in(&read(source), &block)),
                "{page} has a block {fence} that is in no compiled file; change the file and the \
                 page together:\n{block}",
            );
        }
    }
    count
}

#[test]
fn every_listing_in_rust_is_a_part_of_a_file() {
    let count =
        check("```rust,ignore", &files("examples/coming-from/src", &["rs"]), |source, block| {
            source.contains(block)
        });
    assert_eq!(count, 12);
}

#[test]
fn every_listing_in_erlang_and_elixir_is_a_file() {
    let sources = files("examples/coming-from/erlang", &["erl", "exs"]);
    let is_file = |source: &str, block: &str| source == block;
    assert_eq!(check("```erlang", &sources, is_file), 3);
    assert_eq!(check("```elixir", &sources, is_file), 1);
}

/// Blocks with another spelling of the fence would be checked by nothing.
#[test]
fn no_listing_escapes_the_check() {
    for page in files(CHAPTERS, &["md"]) {
        for fence in read(&page).lines().filter(|line| line.starts_with("```") && *line != "```") {
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
            assert!(known.contains(&&fence[3..]), "{page}: unknown fence {fence}");
        }
    }
}

/// Returns the crates that a manifest pins, with their versions.
fn pins(manifest: &str) -> Vec<(String, String)> {
    let pin = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        let (_, version) = rest.split_once("\"=")?;
        Some((name.to_owned(), version.split_once('"')?.0.to_owned()))
    };
    let mut pins: Vec<_> = read(manifest).lines().filter_map(pin).collect();
    pins.dedup();
    pins
}

#[test]
fn the_chapters_name_the_versions_that_are_compiled() {
    let pages: Vec<_> = files(CHAPTERS, &["md"]).iter().map(|page| read(page)).collect();
    let peers = pins("benches/peers/Cargo.toml");
    for (name, version) in pins("examples/coming-from/Cargo.toml") {
        let named = format!("{name} {version}");
        assert!(pages.iter().any(|page| page.contains(&named)), "no chapter is about {named}");
        let peer = peers.iter().find(|(peer, _)| *peer == name);
        assert!(peer.is_none_or(|peer| peer.1 == version), "benches/peers doesn't pin {named}");
    }
}
