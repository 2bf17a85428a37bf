//! The causes of an error, in one text.

use std::error::Error;
use std::iter::successors;

/// The most causes that are looked at. An error may be its own cause, by mistake.
const MAX_CAUSES: usize = 100;

/// Joins the messages of an error and of its causes with `: `.
///
/// Many errors include the message of their cause. It isn't repeated then.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in successors(error.source(), |&cause| cause.source()).take(MAX_CAUSES) {
        let message = cause.to_string();
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no connection")]
    struct Silent(#[source] io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("no connection: {0}")]
    struct Repeating(#[source] io::Error);

    #[test]
    fn a_cause_is_told_once() {
        let refused = || io::Error::other("refused");
        assert_eq!(chain(&Silent(refused())), "no connection: refused");
        assert_eq!(chain(&Repeating(refused())), "no connection: refused");
        assert_eq!(chain(&refused()), "refused");
    }
}
