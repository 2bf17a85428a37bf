//! Suggestions in place of a misspelt word, and lists of words for messages.

use std::fmt::Display;

/// Returns the word that `word` misspells.
pub(crate) fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|known| (distance(word, known), *known)).min()?;
    may_mean(near).then_some(near.1)
}

/// Returns the words that `word` may misspell, the most similar first, at most `count`.
pub(crate) fn similar<'a>(
    word: &str,
    known: impl Iterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let letters = word.chars().count();
    // Cheaper than the distance, which is at least this.
    let differs = |known: &str| known.chars().count().abs_diff(letters);
    let known = known.filter(|known| may_mean((differs(known), known)));
    let mut near: Vec<_> = known.map(|known| (distance(word, known), known)).collect();
    // One letter in place of another is a different name.
    near.retain(|&near| may_mean(near) && near.0 < letters.max(near.1.chars().count()));
    near.sort_unstable();
    near.dedup();
    near.truncate(count);
    near.into_iter().map(|(_, known)| known).collect()
}

/// Whether a word at this distance may be meant.
///
/// A third of the letters may differ: otherwise short words would be similar to everything.
fn may_mean((distance, known): (usize, &str)) -> bool {
    distance <= known.chars().count().div_ceil(3)
}

/// Returns the `count` words that are most similar to `word`.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str], count: usize) -> Vec<&'a str> {
    let mut nearest = known.to_vec();
    // Not `sort_by_key`, which would compute each distance several times.
    nearest.sort_by_cached_key(|known| distance(word, known));
    nearest.truncate(count);
    nearest
}

/// Returns the words in backticks: `a`, `b` or `c`.
pub(crate) fn list(words: &[impl Display], conjunction: &str) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match &*words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

/// How many letters of one word to change, add, remove or swap with the next for the other. Only the first
/// characters are compared.
fn distance(a: &str, b: &str) -> usize {
    const MOST: usize = 64;
    let cut = |word: &str| word.char_indices().nth(MOST).map_or(word.len(), |(end, _)| end);
    strsim::osa_distance(&a[..cut(a)], &b[..cut(b)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_may_be_meant_are_in_order() {
        let words = ["writer", "waiter", "reader", "write", "w"];
        let similar = |word, count| similar(word, words.into_iter(), count);
        assert_eq!(similar("writer", 3), ["writer", "waiter", "write"]);
        assert_eq!(similar("wirter", 3), ["writer", "waiter", "write"]);
        assert_eq!(similar("wirter", 1), ["writer"]);
        assert_eq!((similar("colour", 3), similar("v", 3)), (Vec::new(), Vec::new()));
    }

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
            [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("wirter", "writer", 1)]
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
