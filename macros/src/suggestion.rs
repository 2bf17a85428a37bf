//! What an error suggests in place of a misspelt word.

/// Returns what to write instead of `word`: the closest of the allowed words, or all of them and an
/// expression.
pub(crate) fn instead(word: &str, allowed: &[&str], expression: Option<&str>) -> String {
    if let Some(best) = closest(word, allowed) {
        return format!("did you mean `{best}`?");
    }
    if allowed.is_empty() {
        return "remove it".to_owned();
    }
    let expression = expression.map(|it| format!(", or an expression like `{it}`"));
    format!("write {}{}", list(allowed, "or"), expression.unwrap_or_default())
}

/// Returns the allowed word that `word` misspells, or has a part of.
pub(crate) fn closest<'a>(word: &str, allowed: &[&'a str]) -> Option<&'a str> {
    /// The similarity from which a word counts as misspelt, from 0 to 1.
    const SIMILAR: f64 = 0.8;
    /// The similarity from which a misspelling outranks a common part.
    const NEARLY_EQUAL: f64 = 0.95;

    let similarity = |other: &&str| {
        let is_part = |of: &str, part: &str| of.split('_').any(|word| word == part);
        let is_part = is_part(word, other) || is_part(other, word);
        let similarity = strsim::jaro_winkler(word, other);
        if similarity > NEARLY_EQUAL {
            similarity + 2.0
        } else {
            similarity + f64::from(u8::from(is_part))
        }
    };
    let best = allowed.iter().copied().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    best.filter(|best| similarity(best) > SIMILAR)
}

/// Returns the words in backticks, separated by commas and a conjunction: `a`, `b` or `c`.
pub(crate) fn list(words: &[&str], conjunction: &str) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match &*words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_nearly_right_is_answered_with_the_right_one() {
        let words = ["one_for_one", "one_for_all", "rest_for_one"];
        assert_eq!(instead("rest_for_on", &words, None), "did you mean `rest_for_one`?");
        assert_eq!(
            instead("simple", &words, None),
            "write `one_for_one`, `one_for_all` or `rest_for_one`",
        );
        assert_eq!(instead("x", &["signal"], None), "write `signal`");
        assert_eq!(
            instead("x", &["signal"], Some("f()")),
            "write `signal`, or an expression like `f()`"
        );
        assert_eq!(instead("x", &[], Some("f()")), "remove it");
        assert_eq!(instead("on_signal", &["on_start", "signal"], None), "did you mean `signal`?");
        let keys = ["restart", "restart_on_change"];
        assert_eq!(instead("restart_on_chagne", &keys, None), "did you mean `restart_on_change`?");
        assert_eq!(
            instead("kill", &["brutal_kill", "infinity"], None),
            "did you mean `brutal_kill`?"
        );
    }
}
