//! Texts with at most so many bytes, without a part of a character.

/// The most bytes of a text that comes from a child, wherever that is kept or written.
pub(crate) const TEXT: usize = 2 * 1024;

const MARK: char = '…';

/// Returns the longest start of a text with at most so many bytes.
pub(crate) fn start_of(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or_default()]
}

/// Returns the start of a text with a mark that it goes on, within so many bytes. Without room for the mark,
/// nothing is left.
pub(crate) fn start_with_mark(mut text: String, bytes: usize) -> String {
    let room = bytes.checked_sub(MARK.len_utf8());
    text.truncate(room.map_or("", |room| start_of(&text, room)).len());
    text.extend(room.map(|_| MARK));
    text
}

/// Discards what exceeds [`TEXT`] bytes, and marks that with `…`.
pub(crate) fn cut(text: String) -> String {
    if text.len() <= TEXT {
        return text;
    }
    let mut start = start_with_mark(text, TEXT);
    start.shrink_to_fit();
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_has_whole_characters() {
        for (bytes, start, marked) in [
            (0, "", ""),
            (2, "a", ""),
            (3, "aä", "…"),
            (4, "aä", "a…"),
            (5, "aäö", "a…"),
            (9, "aäö", "aäö…"),
        ] {
            assert_eq!(start_of("aäö", bytes), start);
            assert_eq!(start_with_mark("aäö".to_owned(), bytes), marked);
        }
    }
}
