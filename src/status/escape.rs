//! Texts of users' in the syntax of a view: SVG, DOT, Mermaid.
//!
//! It knows which characters have a meaning in each syntax. The callers make a text one line first, without
//! invisible characters.
//!
//! # Invariants
//!
//! 1. An escaped text is one token of its syntax: it closes no string and opens no element.
//! 2. A renderer shows an escaped text as it was, apart from two characters that XML can't hold, and from names
//!    of icons in Mermaid (`fa:fa-car`).

use std::fmt::{self, Display, Write};

/// A text between the tags of an SVG, or in an attribute with double quotes.
pub(super) struct Xml<T>(pub(super) T);

/// A text in a label of DOT, between double quotes. A label has escapes of its own, and entities of HTML.
pub(super) struct Dot<T>(pub(super) T);

/// A text in a label of Mermaid, between double quotes. `%%` begins a directive and `$$` a formula, also inside
/// of a label.
pub(super) struct Mermaid<T>(pub(super) T);

impl<T: Display> Display for Xml<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |c| {
            Some(match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                // No XML document contains these, not even as a reference.
                '\u{fffe}' | '\u{ffff}' => "\u{fffd}",
                _ => return None,
            })
        };
        write!(Escaping { f, escape }, "{}", self.0)
    }
}

impl<T: Display> Display for Dot<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |c| {
            Some(match c {
                '\\' => "\\\\",
                '"' => "\\\"",
                '&' => "&amp;",
                _ => return None,
            })
        };
        write!(Escaping { f, escape }, "{}", self.0)
    }
}

impl<T: Display> Display for Mermaid<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |c| {
            Some(match c {
                '#' => "#35;",
                '$' => "#36;",
                '%' => "#37;",
                '"' => "#quot;",
                '&' => "#amp;",
                '<' => "#lt;",
                '>' => "#gt;",
                // Marks of Markdown.
                '`' => "#96;",
                '*' => "#42;",
                '\\' => "#92;",
                _ => return None,
            })
        };
        write!(Escaping { f, escape }, "{}", self.0)
    }
}

/// A writer that replaces the characters for which `escape` returns a text.
struct Escaping<'a, 'b, E> {
    f: &'a mut fmt::Formatter<'b>,
    escape: E,
}

impl<E: Fn(char) -> Option<&'static str>> Write for Escaping<'_, '_, E> {
    #[inline]
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, c) in s.char_indices() {
            if let Some(escaped) = (self.escape)(c) {
                self.f.write_str(&s[plain..at])?;
                self.f.write_str(escaped)?;
                plain = at + c.len_utf8();
            }
        }
        self.f.write_str(&s[plain..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"a "b" <script>&amp; \n #1 100% $2 `c` *d* {e} ü日"##;

    #[test]
    fn what_has_a_meaning_in_a_syntax_is_escaped_and_nothing_else() {
        assert_eq!(
            Xml(TEXT).to_string(),
            r##"a &quot;b&quot; &lt;script&gt;&amp;amp; \n #1 100% $2 `c` *d* {e} ü日"##
        );
        assert_eq!(
            Dot(TEXT).to_string(),
            r##"a \"b\" <script>&amp;amp; \\n #1 100% $2 `c` *d* {e} ü日"##
        );
        assert_eq!(
            Mermaid(TEXT).to_string(),
            "a #quot;b#quot; #lt;script#gt;#amp;amp; #92;n #35;1 100#37; #36;2 #96;c#96; #42;d#42; {e} ü日"
        );
    }

    #[test]
    fn a_text_that_ends_with_a_backslash_does_not_escape_the_quote_behind_it() {
        assert_eq!(format!("\"{}\"", Dot("a\\")), r#""a\\""#);
        assert_eq!(format!("\"{}\"", Dot("a\\\"")), r#""a\\\"""#);
    }

    #[test]
    fn characters_that_xml_cannot_hold_are_replaced() {
        assert_eq!(Xml("a\u{fffe}b\u{ffff}").to_string(), "a\u{fffd}b\u{fffd}");
    }
}
