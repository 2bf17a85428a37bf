//! Suggestions in place of a misspelt word, and lists of words for messages.

/// Returns the word that `word` misspells.
pub(super) fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|known| (distance(word, known), *known)).min()?;
    // A third of the letters may differ: otherwise short words would be similar to everything.
    (near.0 <= near.1.chars().count().div_ceil(3)).then_some(near.1)
}

/// Returns the `count` words that are most similar to `word`.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str], count: usize) -> Vec<&'a str> {
    let mut nearest = known.to_vec();
    nearest.sort_by_key(|known| distance(word, known));
    nearest.truncate(count);
    nearest
}

/// Returns the words in backticks: `a`, `b` or `c`.
pub(super) fn list(words: &[&str], conjunction: &str) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match &*words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

/// The Levenshtein distance of two words, of which only the first characters are compared.
fn distance(a: &str, b: &str) -> usize {
    const MOST: usize = 64;
    let cut = |word: &str| word.char_indices().nth(MOST).map_or(word.len(), |(end, _)| end);
    strsim::levenshtein(&a[..cut(a)], &b[..cut(b)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_few_mistakes_has_a_suggestion() {
        let words = ["strategy", "restart", "watchdog", "on_leak"];
        assert_eq!(closest("stratgy", &words), Some("strategy"));
        assert_eq!(closest("restrat", &words), Some("restart"));
        assert_eq!(closest("onleak", &words), Some("on_leak"));
        assert_eq!(closest("colour", &words), None);
        assert_eq!(closest("x", &["id"]), None);
        assert_eq!(closest("x", &[]), None);
        assert_eq!(nearest("restrat", &words, 2), ["restart", "strategy"]);
    }

    #[test]
    fn the_distance_counts_changed_letters() {
        for (a, b, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3)]
        {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }

    #[test]
    fn a_list_has_a_conjunction_before_the_last_word() {
        assert_eq!(list(&["a"], "or"), "`a`");
        assert_eq!(list(&["a", "b", "c"], "or"), "`a`, `b` or `c`");
    }
}
