//! The advice that the book must contain, besides what its listings show.

const WHEN_NOT: &str = include_str!("../../book/src/when-not.md");
const WAITS: &str = include_str!("../../book/src/waits.md");
const JITTER: &str = include_str!("../../book/src/jitter.md");
const RETRIES: &str = include_str!("../../book/src/retries.md");

/// Returns the headings of a page.
fn headings(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("## ")).collect()
}

#[test]
fn seed0_51_the_book_says_when_not_to_use_backoff() {
    let headings = headings(WHEN_NOT);
    for unfit in
        ["A bug that is the same each time", "Backoff in a backoff", "Work that is lost in a start"]
    {
        assert!(headings.contains(&unfit), "{headings:?}");
    }
}

#[test]
fn seed0_54_the_book_names_the_tools_for_other_cases() {
    for tool in ["`retry`", "`CircuitBreaker`", "`delays`"] {
        assert!(RETRIES.contains(tool), "{tool}");
    }
    assert!(RETRIES.starts_with("# Retries and circuit breakers\n"));
    assert!(headings(WHEN_NOT).contains(&"One call that fails"));
}

#[test]
fn seed1_20_each_curve_has_its_purpose() {
    for advice in [
        "**Exponential** for what has to *recover*",
        "**Linear** for what has to *adapt*",
        "**The longest wait**",
    ] {
        assert!(WAITS.contains(advice), "{advice}");
    }
    assert!(JITTER.starts_with("# Jitter and ceilings\n"));
}
