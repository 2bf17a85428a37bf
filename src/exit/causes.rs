//! The causes of an error.

use std::error::Error;

/// The most causes that are looked at. An error may be its own cause, by mistake.
const MAX_CAUSES: usize = 100;

/// Returns `error`, its cause, the cause of that, and so on.
pub(crate) fn with_causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source()).take(1 + MAX_CAUSES)
}

/// Joins the messages of `error` and its causes with `: `.
///
/// Many errors include the message of their cause. It isn't repeated then.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in with_causes(error).skip(1) {
        let message = cause.to_string();
        if !includes(&text, &message) {
            text.push_str(": ");
            text.push_str(&message);
        }
    }
    text
}

/// Whether `text` includes `words` as a message: up to its end, to a `:` or to the end of a parenthesis.
fn includes(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        let begins = words.is_empty() || !before.ends_with(char::is_alphanumeric);
        begins && (after.is_empty() || after.starts_with([':', ')']))
    })
}
