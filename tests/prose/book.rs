//! The advice that the book must contain, besides what its listings show.

use crate::files::read;

/// Returns the sections of a page, by their headings.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let sections = page.split("\n## ").skip(1);
    sections.map(|section| section.split_once('\n').expect("a heading and a text")).collect()
}

/// Returns the listings of a section that are compiled and run, which are those without a word that forbids it.
fn listings(section: &str) -> Vec<&str> {
    let listings = section.split("\n```rust\n").skip(1);
    listings.map(|rest| rest.split("\n```").next().unwrap_or_default()).collect()
}

/// The other two bad fits, work that is lost and a backoff in a backoff, have tests in `tests/behaviour/chapters/giving_up.rs`.
#[test]
fn seed0_51_the_book_shows_with_a_listing_when_not_to_use_backoff() {
    let page = read("book/src/when-not.md");
    assert!(page.starts_with("# When not to use backoff\n"));
    assert!(read("book/src/SUMMARY.md").contains("(when-not.md)"));
    let sections = sections(&page);
    let (_, bug) =
        sections.iter().find(|(name, _)| *name == "A bug that is the same each time").unwrap();
    let [listing] = listings(bug)[..] else { panic!("one listing") };
    // A day of failures, and what ends them: a limit, or an error that is known.
    for line in ["runs(listener()).await, 2_887", "runs(thrice).await, 3", "runs(once).await, 1"] {
        assert!(listing.contains(&format!("assert_eq!({line});")), "{line}");
    }
}

/// Each tool is a row of the page's table, which links to a section with a listing that calls it.
#[test]
fn seed0_54_the_book_calls_the_tools_for_other_cases() {
    let page = read("book/src/retries.md");
    let sections = sections(&page);
    for (tool, call) in [
        ("retry", "retry(policy(), "),
        ("CircuitBreaker", "CircuitBreaker::new("),
        ("delays", ".delays();"),
    ] {
        let row = format!("\n| [`{tool}`](#{}) | ", tool.to_lowercase());
        assert!(page.contains(&row), "no row: {row}");
        let heading = format!("`{tool}`");
        let section = sections.iter().find(|(name, _)| *name == heading);
        let (_, section) = section.unwrap_or_else(|| panic!("no section {heading}"));
        let calls = listings(section).iter().any(|listing| listing.contains(call));
        assert!(calls, "no listing of {heading} that is run contains {call}");
    }
    // Plain supervision, and where the page on backoff leads to these.
    assert!(page.contains("\n| a child with a `backoff` | "));
    let when_not = read("book/src/when-not.md");
    for link in ["(retries.md#retry)", "(retries.md#circuitbreaker)"] {
        assert!(when_not.contains(link), "{link}");
    }
}
