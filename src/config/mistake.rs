//! Mistakes of a configuration, and the error that lists them.
//!
//! A [`Mistake`] knows its place and its text. It doesn't know how it was found.
//!
//! # Invariants
//!
//! 1. The line of a secret is never shown.
//! 2. What is shown has no control characters, so no file can forge a line of a log or clear a terminal.

use std::fmt;
use std::sync::Arc;

use super::location::Location;
use super::shown::without_values;
use crate::invisible::{Visible, is_invisible};

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
        for (index, mistake) in self.mistakes.iter().take(SHOWN).enumerate() {
            write!(f, "{}{mistake}", if index == 0 { "" } else { "\n\n" })?;
        }
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
