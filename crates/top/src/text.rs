//! Text: strings from the server, times, durations.
//!
//! Knows nothing of trees or terminals.
//!
//! # Invariants
//!
//! 1. A [`Text`] has no control character and no character that changes the direction of the text, so it can be
//!    written to a terminal. It is one line.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, UNIX_EPOCH};

use serde::Deserialize;

/// A string from the server, cleaned when it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Text(String);

impl<S: AsRef<str>> From<S> for Text {
    fn from(text: S) -> Self {
        Self(clean(text.as_ref()))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Returns the text as one line without control characters. A line break or a tab becomes a space.
pub(crate) fn clean(text: &str) -> String {
    let visible = text.chars().filter_map(|c| match c {
        '\n' | '\t' => Some(' '),
        c if is_unsafe(c) => None,
        c => Some(c),
    });
    visible.collect()
}

/// Returns the text without control characters, except for its line breaks.
pub(crate) fn clean_lines(text: &str) -> String {
    text.chars().filter(|&c| c == '\n' || !is_unsafe(c)).collect()
}

/// Whether a terminal may interpret the character, or shows nothing for it.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Writes a duration with at most two units: `4.2s`, `38s`, `2h15m`, `3d4h`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 if ms < 100 => format!("{ms}ms"),
        0..10 if ms.is_multiple_of(1_000) => format!("{seconds}s"),
        0..10 => format!("{seconds}.{}s", ms % 1_000 / 100),
        10..60 => format!("{seconds}s"),
        60..3_600 => two(seconds, 60, 'm', 's'),
        3_600..86_400 => two(seconds / 60, 60, 'h', 'm'),
        _ => two(seconds / 3_600, 24, 'd', 'h'),
    }
}

fn two(value: u64, per: u64, large: char, small: char) -> String {
    match value % per {
        0 => format!("{}{large}", value / per),
        rest => format!("{}{large}{rest}{small}", value / per),
    }
}

/// Writes a point in time in UTC: `2026-01-31T12:00:00Z`.
pub(crate) fn time(epoch_ms: u64) -> String {
    // The formatter fails for years after 9999.
    let at = UNIX_EPOCH + Duration::from_millis(epoch_ms.min(253_402_300_799_999));
    humantime::format_rfc3339_seconds(at).to_string()
}

/// Writes the time of day in UTC: `12:00:00`.
pub(crate) fn time_of_day(epoch_ms: u64) -> String {
    let seconds = epoch_ms / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Writes a number with its noun: `1 child`, `2 children`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Writes a value behind a prefix, if there is one.
pub(crate) fn after(prefix: &str, value: Option<impl fmt::Display>) -> String {
    value.map(|value| format!("{prefix}{value}")).unwrap_or_default()
}

/// Cuts the text to `width` characters, the last of which is then `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain((width > 0).then_some('…')).collect()
}

/// Cuts out the middle of the text if it is longer than `width`: `a-long…name`.
pub(crate) fn cut_in_the_middle(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let tail = width.saturating_sub(1) / 2;
    let head = width.saturating_sub(1) - tail;
    let (head, tail) = (text.chars().take(head), text.chars().skip(length - tail));
    head.chain((width > 0).then_some('…')).chain(tail).collect()
}

/// Cuts the text into pieces of at most `width` characters, between words if possible.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut pieces = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    loop {
        let end = match rest.len() {
            all if all <= width => all,
            _ => rest[..=width]
                .iter()
                .rposition(|&c| c == ' ')
                .filter(|&at| at > width / 3)
                .unwrap_or(width),
        };
        let after = rest.split_off(end);
        pieces.push(rest.into_iter().collect());
        rest = after.into_iter().skip_while(|&c| c == ' ').collect();
        if rest.is_empty() {
            return pieces;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_overrides_of_direction_are_removed() {
        assert_eq!(clean("a\x1b[31mb\u{9b}c\u{202e}d\r\ne\tf\u{7f}"), "a[31mbcd e f");
        assert_eq!(clean_lines("a\x1b]0;x\x07\nb\r\n"), "a]0;x\nb\n");
        let text: Text = serde_json::from_str(r#""x\u001b[2Jy""#).unwrap();
        assert_eq!(&*text, "x[2Jy");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        let written =
            [0, 99, 4_200, 9_000, 59_999, 60_000, 61_000, 8_100_000, 273_600_000].map(duration);
        assert_eq!(written, ["0ms", "99ms", "4.2s", "9s", "59s", "1m", "1m1s", "2h15m", "3d4h"]);
    }

    #[test]
    fn times_are_in_utc() {
        assert_eq!(time(1_769_860_800_123), "2026-01-31T12:00:00Z");
        assert_eq!(time_of_day(1_769_860_861_000), "12:01:01");
        assert_eq!(time(u64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn a_cut_text_ends_with_an_ellipsis() {
        assert_eq!([cut("abc", 3), cut("abcd", 3), cut("abc", 0)], ["abc", "ab…", ""]);
    }

    #[test]
    fn a_long_name_keeps_both_of_its_ends() {
        let cuts = [10, 5, 1, 0].map(|width| cut_in_the_middle("sensor-42", width));
        assert_eq!(cuts, ["sensor-42", "se…42", "…", ""]);
    }

    #[test]
    fn long_texts_are_wrapped_between_words() {
        let pieces = wrap("connection refused by abcdefghijklmnop", 15);
        assert_eq!(pieces, ["connection", "refused by", "abcdefghijklmno", "p"]);
        assert_eq!(wrap("", 20), [""]);
    }
}
