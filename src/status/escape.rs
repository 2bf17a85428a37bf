//! Texts of users in an SVG. The callers first make a text one line without invisible characters.
//!
//! # Invariants
//!
//! 1. An escaped text closes no attribute and opens no element.
//! 2. A renderer shows an escaped text as it was, apart from two characters that XML can't hold.

use std::fmt::{self, Display, Write};

/// A text between the tags of an SVG, or in an attribute with double quotes.
pub(super) struct Xml<T>(pub(super) T);

impl<T: Display> Display for Xml<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// A writer that escapes what it writes.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    #[inline]
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, c) in s.char_indices() {
            let escaped = match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                // No XML document contains these, not even as a reference.
                '\u{fffe}' | '\u{ffff}' => "\u{fffd}",
                _ => continue,
            };
            self.0.write_str(&s[plain..at])?;
            self.0.write_str(escaped)?;
            plain = at + c.len_utf8();
        }
        self.0.write_str(&s[plain..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_xml_is_escaped_and_nothing_else() {
        let text = r##"a "b" <script>&amp; \n #1 100% $2 `c` *d* {e} ü日"##;
        assert_eq!(
            Xml(text).to_string(),
            r##"a &quot;b&quot; &lt;script&gt;&amp;amp; \n #1 100% $2 `c` *d* {e} ü日"##
        );
    }

    #[test]
    fn characters_that_xml_cannot_hold_are_replaced() {
        assert_eq!(Xml("a\u{fffe}b\u{ffff}").to_string(), "a\u{fffd}b\u{fffd}");
    }
}
