//! Mistakes of a configuration, the error that lists them, and where they are in the text of a file.
//!
//! A [`Location`] knows the file and a range of bytes, and a [`Mistake`] its location and its message. Neither knows
//! what a value means, or how the mistake was found.
//!
//! # Invariants
//!
//! 1. The line of a secret is never shown. Which fields the code declares as secrets isn't known here: a mistake may be
//!    why they can't be read.
//! 2. What is shown has no control characters, so no file can forge a line of a log or clear a terminal.
//! 3. The starts of the lines are computed once for each file, so a line is found by binary search.
//! 4. Every range is within the text and ends at character boundaries.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::plan::joined;
use super::section::{OF_RESTART, keys};
use crate::invisible::{Visible, is_invisible};
use crate::start_of::start_of;

/// The most characters of a line that are shown.
const WIDTH: usize = 160;
/// How many characters are shown before a caret in a line that is cut.
const BEFORE: usize = 60;
/// The most characters of a message.
const MESSAGE: usize = 2_000;
/// The most mistakes that are shown.
const SHOWN: usize = 50;
/// The most mistakes that are kept.
pub(super) const KEPT: usize = 1_000;

/// See [`Mistake::identity`].
pub(super) type Identity = (Option<usize>, String, String);

/// One mistake in a configuration: what is wrong, where, and what to write instead.
///
/// `Display` shows the line of the file, with the value underlined. `Debug` prints the same.
///
/// The example of [`Config`](crate::config::Config) reads one.
#[derive(Clone)]
pub struct Mistake {
    file: Option<Arc<str>>,
    location: Option<Location>,
    key: String,
    message: String,
    /// Whether the line contains a secret.
    is_secret: bool,
}

impl Mistake {
    pub(crate) fn new(
        location: Option<&Location>,
        key: impl Into<String>,
        message: impl fmt::Display,
    ) -> Self {
        let mut message = Visible(message).to_string();
        if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
            message.truncate(end);
            message.push('…');
        }
        let location = location.cloned();
        let file = location.as_ref().map(|location| Arc::clone(location.file()));
        Self { file, location, key: key.into(), message, is_secret: false }
    }

    /// Creates a mistake about a whole file.
    #[cfg(feature = "config-file")]
    pub(crate) fn of_file(name: &str, message: impl fmt::Display) -> Self {
        Self { file: Some(name.into()), ..Self::new(None, "", message) }
    }

    /// Keeps the line of the file from being shown.
    pub(super) fn hide_line(mut self) -> Self {
        self.is_secret = true;
        self
    }

    /// Returns what two mistakes of one configuration have in common if they are the same, although they were found
    /// in different sections: their place, or else the key below that of the section, and the message.
    pub(super) fn identity(&self, section: &str) -> Identity {
        let start = self.location.as_ref().map(Location::start);
        let key = start.is_none().then(|| self.key.strip_prefix(section).unwrap_or_default());
        (start, key.unwrap_or_default().to_owned(), self.message.clone())
    }

    /// Returns the name of the file, if the configuration was read from one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns the number of the line, counted from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.location.as_ref().map(Location::line)
    }

    /// Returns the number of the first character in its line, counted from 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.location.as_ref().map(Location::column)
    }

    /// Returns the keys that lead to the value, such as `"app/writer".restart.when`.
    ///
    /// It is empty for a mistake that is about the whole file, or about its syntax.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns what is wrong, and what to write instead.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The order of mistakes: by file, by place, by key.
    fn place(&self) -> (Option<&str>, Option<usize>, &str) {
        (self.file(), self.location.as_ref().map(Location::start), &self.key)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.location, &self.file) {
            (Some(at), _) => {
                write!(f, "{}:{}:{}: ", Visible(at.file()), at.line(), at.column())?;
            }
            (None, Some(file)) => write!(f, "{}: ", Visible(file))?,
            (None, None) => {}
        }
        f.write_str(&self.message)?;
        let mut indent = 2;
        if let Some(location) = self.location.as_ref().filter(|_| !self.is_secret) {
            let number = location.line().to_string();
            indent = number.len();
            let (line, caret) = excerpt(location);
            write!(f, "\n{:indent$} |\n{number} | {line}", "")?;
            write!(f, "\n{:indent$} | {caret}", "")?;
        }
        if !self.key.is_empty() {
            write!(f, "\n{:indent$} key: {}", "", Visible(&self.key))?;
        }
        Ok(())
    }
}

/// Returns the line of a location, cut around it, and the line with the carets.
fn excerpt(location: &Location) -> (String, String) {
    let (before, inside, after) = without_values(location);
    let plain = |c: char| if is_invisible(c) { ' ' } else { c };
    // From the end: a line can have millions of characters.
    let mut lead: Vec<char> = before.chars().rev().take(WIDTH).map(plain).collect();
    let rest = inside.chars().chain(after.trim_end().chars());
    let mut rest: Vec<char> = rest.take(WIDTH + 1).map(plain).collect();
    if lead.len() + rest.len() > WIDTH {
        let is_cut = lead.len() > BEFORE;
        lead.truncate(BEFORE);
        if is_cut {
            lead.push('…');
        }
        let room = WIDTH - lead.len();
        if rest.len() > room {
            rest.truncate(room - 1);
            rest.push('…');
        }
    }
    let column = lead.len();
    let carets = inside.chars().take(rest.len()).count().max(1);
    let line: String = lead.into_iter().rev().chain(rest).collect();
    (line.trim_end().to_owned(), " ".repeat(column) + &"^".repeat(carets))
}

impl fmt::Debug for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The mistakes of a configuration, all at once.
///
/// `Display` shows the first 50 of them, each with its line. `Debug` prints the same text, so that
/// `fn main() -> Result<(), ConfigError>` is enough.
///
/// The example of [`Config`](crate::config::Config) shows one.
#[derive(Clone)]
pub struct ConfigError {
    mistakes: Vec<Mistake>,
}

impl ConfigError {
    /// Sorts the mistakes by place. Returns `None` if there are none.
    pub(crate) fn new(mut mistakes: Vec<Mistake>) -> Option<Self> {
        mistakes.sort_by(|a, b| a.place().cmp(&b.place()));
        mistakes.truncate(KEPT);
        (!mistakes.is_empty()).then_some(Self { mistakes })
    }

    /// Creates an error with these mistakes, of which there is at least one.
    pub(crate) fn of_all(mistakes: Vec<Mistake>) -> Self {
        Self::new(mistakes).unwrap_or(Self { mistakes: Vec::new() })
    }

    /// Returns the mistakes in the order of their places. There are at most 1,000.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.mistakes[..self.mistakes.len().min(SHOWN)], "\n\n"))?;
        match self.mistakes.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more if self.mistakes.len() < KEPT => write!(f, "\n\n… and {more} more"),
            more => write!(f, "\n\n… and {more} more at least"),
        }
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConfigError {}

/// A file that was read.
pub(crate) struct Source {
    name: Arc<str>,
    text: Arc<str>,
    /// The byte at which each line begins.
    starts: Vec<usize>,
}

impl Source {
    pub(crate) fn new(text: &str, name: &str) -> Arc<Self> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect();
        Arc::new(Self { name: name.into(), text: text.into(), starts })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// A range of a file. Shown as `feed.toml:12`.
#[derive(Clone)]
pub(crate) struct Location {
    source: Arc<Source>,
    start: usize,
    end: usize,
}

impl Location {
    /// Creates a location. A range that isn't within the text is cut.
    pub(crate) fn new(source: &Arc<Source>, range: Range<usize>) -> Self {
        let boundary = |index| start_of(&source.text, index).len();
        let start = boundary(range.start);
        Self { source: Arc::clone(source), start, end: boundary(range.end).max(start) }
    }

    pub(crate) fn file(&self) -> &Arc<str> {
        &self.source.name
    }

    /// The first byte, which orders the locations of a file.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// The number of the line, from 1.
    pub(crate) fn line(&self) -> usize {
        self.source.starts.partition_point(|&start| start <= self.start)
    }

    /// The number of the line in which the range ends, from 1.
    pub(crate) fn last_line(&self) -> usize {
        // An exclusive end at the start of a line belongs to the line before.
        let last = self.end.saturating_sub(1).max(self.start);
        self.source.starts.partition_point(|&start| start <= last)
    }

    /// The number of the first character in its line, from 1.
    pub(crate) fn column(&self) -> usize {
        let line_start = self.source.starts[self.line() - 1];
        self.source.text[line_start..self.start].chars().count() + 1
    }

    /// The text before the line.
    pub(crate) fn text_before(&self) -> &str {
        &self.source.text[..self.source.starts[self.line() - 1]]
    }

    /// The text of the line before the range, the part of the range in this line, and the rest of the line.
    pub(crate) fn line_parts(&self) -> (&str, &str, &str) {
        let text = &*self.source.text;
        let line = self.line();
        let next = self.source.starts.get(line).map_or(text.len(), |&start| start - 1);
        // A location at the end of a line may be at its line break.
        let (line_start, start) = (self.source.starts[line - 1], self.start.min(next));
        let end = self.end.clamp(start, next);
        (&text[line_start..start], &text[start..end], &text[end..next])
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source.name, self.line())
    }
}

/// The same as `Display`: the text of the file may contain secrets.
impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Words in a line that holds a secret.
const SECRET_WORDS: [&str; 6] = ["passw", "secret", "token", "credential", "private", "key"];

/// Whether the line of a location may hold a secret: it belongs to a table `config`, or has a key that isn't
/// one of ours.
pub(super) fn may_hold_secret(location: &Location) -> bool {
    let (before, inside, after) = location.line_parts();
    let line = [before, inside, after].concat().to_lowercase();
    let header =
        location.text_before().lines().rev().find(|line| line.trim_start().starts_with('['));
    let is_header = line.trim_start().starts_with('[');
    if line.contains("config") && line.contains('=') {
        return true;
    }
    if is_header {
        return line.contains('=');
    }
    let is_ours = |key: &str| {
        let (of_supervisors, of_children) = keys();
        key.split('.').map(|part| part.trim().trim_matches(['"', '\''])).all(|part| {
            [of_supervisors, of_children, &OF_RESTART].iter().any(|keys| keys.contains(&part))
        })
    };
    let key = line.split_once('=').map(|(key, _)| key);
    header.is_some_and(|header| header.to_lowercase().contains("config"))
        || key.is_none_or(|key| !is_ours(key))
        || SECRET_WORDS.iter().any(|word| line.contains(word))
}

/// Returns the parts of a line without the values in it: what is before a location, in it, and after it.
fn without_values(location: &Location) -> (String, String, String) {
    let (before, inside, after) = location.line_parts();
    if !may_hold_secret(location) {
        return (before.to_owned(), inside.to_owned(), after.to_owned());
    }
    let is_key = |text: &str| match text.split_once('=') {
        Some((_, value)) => value.trim().is_empty(),
        None => true,
    };
    let before = if is_key(before) { before.to_owned() } else { "… ".to_owned() };
    let inside = match inside.split_once('=') {
        Some((key, _)) => format!("{key}= …"),
        None => inside.to_owned(),
    };
    let after = if after.trim().is_empty() { "" } else { " …" };
    (before, inside, after.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let source = Source::new("a = 1\nä€ = 2\n\nend", "x.toml");
        let at = |range: Range<usize>| {
            let location = Location::new(&source, range);
            (location.line(), location.column(), location.last_line())
        };
        assert_eq!(at(0..1), (1, 1, 1));
        assert_eq!(at(6..8), (2, 1, 2));
        assert_eq!(at(14..15), (2, 6, 2), "two characters of two and three bytes");
        assert_eq!(at(5..6), (1, 6, 1), "the line break");
        assert_eq!(at(16..16), (3, 1, 3), "an empty line");
        assert_eq!(at(17..20), (4, 1, 4));
        assert_eq!(at(99..120), (4, 4, 4), "beyond the end");
        assert_eq!(at(7..8), (2, 1, 2), "within a character");
        assert_eq!(Location::new(&source, 6..8).to_string(), "x.toml:2");
    }

    #[test]
    fn a_line_is_split_at_the_range() {
        let source = Source::new("a = 1\nä€ = 2 # x\n", "x.toml");
        let parts = |range| {
            let location = Location::new(&source, range);
            let (before, inside, after) = location.line_parts();
            [before, inside, after].map(str::to_owned)
        };
        assert_eq!(parts(14..15), ["ä€ = ", "2", " # x"]);
        assert_eq!(parts(4..12), ["a = ", "1", ""], "only the first line");
        assert_eq!(parts(5..6), ["a = 1", "", ""]);
        assert_eq!(parts(99..99), ["", "", ""]);
    }
}
