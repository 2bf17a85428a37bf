//! Characters that can't be seen, and change what can: line breaks, terminal commands, marks that reverse
//! the direction of writing.
//!
//! Names don't contain them, and texts of users' errors are shown with them escaped, so that no error
//! forges a line of a log or clears a terminal.

use std::fmt::{self, Display, Write};

/// Returns whether `c` is a control character, a line separator, or a mark without width.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
        )
}

/// Displays a value in one line, with invisible characters escaped as in Rust.
pub(crate) struct Visible<T>(pub(crate) T);

impl<T: Display> Display for Visible<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for part in s.split_inclusive(is_invisible) {
            match part.chars().next_back().filter(|&c| is_invisible(c)) {
                None => self.0.write_str(part)?,
                Some(c) => {
                    self.0.write_str(&part[..part.len() - c.len_utf8()])?;
                    write!(self.0, "{}", c.escape_default())?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_invisible_is_escaped_and_nothing_else() {
        let shown = |text: &str| Visible(text).to_string();
        assert_eq!(shown("é, 日本, e\u{301}: \"a\\b\""), "é, 日本, e\u{301}: \"a\\b\"");
        assert_eq!(shown("a\nb\r\tc"), "a\\nb\\r\\tc");
        assert_eq!(shown("\u{1b}[2J\u{7}"), "\\u{1b}[2J\\u{7}");
        assert_eq!(shown("\u{202e}\u{2028}\u{200b}"), "\\u{202e}\\u{2028}\\u{200b}");
    }
}
