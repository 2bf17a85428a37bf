//! One line, and the text that it is made of.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Debug, Write};
use std::time::SystemTime;

use tracing::field::{Field, Visit};

use crate::exit::with_causes;
use crate::invisible::Visible;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::policy::LogLevel;
use crate::start_of::{start_of, start_with_mark};

/// The bytes of message and fields that a line has at most.
const ROOM: usize = 2 * 1024;

/// A log line of a child.
///
/// Its texts are one line each. Line breaks, terminal commands and other characters that can't be seen are
/// escaped as in Rust. Message and fields have at most 2 KiB together; what was longer ends in `…`.
///
/// The example of [`log_lines`](crate::log_lines) reads some.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// When it was logged. In JSON `at_ms`, in milliseconds since the Unix epoch.
    pub at: SystemTime,
    /// Its level. In JSON one word, such as `"warn"`.
    pub level: LogLevel,
    /// Its target: by default, the module in which it was logged.
    pub target: Cow<'static, str>,
    /// The child that it belongs to.
    pub path: Path,
    /// The incarnation of the child that it belongs to.
    pub incarnation: u32,
    /// The message, without the fields.
    pub message: String,
    /// The fields as `k=v k2="a b"`. A value is quoted if it is empty, or if it contains a space, a quote or `=`.
    pub fields: String,
}

impl LogLine {
    /// Returns the memory that the line takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.message.len() + self.fields.len() + self.target.len()
    }
}

/// Writes level, target, message and fields, without the time and the child.
impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, target, message, fields, .. } = self;
        let space = if fields.is_empty() { "" } else { " " };
        write!(f, "{level} {target}: {message}{space}{fields}")
    }
}

/// Text up to a number of bytes. What exceeds it is discarded.
#[derive(Default)]
struct Text {
    text: String,
    is_cut: bool,
}

impl Text {
    /// Discards what exceeds `room` bytes, and marks that with `…`.
    fn finish(self, room: usize) -> String {
        match self.is_cut || self.text.len() > room {
            true => start_with_mark(self.text, room),
            false => self.text,
        }
    }
}

/// Never fails, since the `Display` of a user's type may not expect it.
impl Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if !self.is_cut {
            let start = start_of(s, ROOM.saturating_sub(self.text.len()));
            self.text.push_str(start);
            self.is_cut = start.len() < s.len();
        }
        Ok(())
    }
}

/// What a log line says: reads the fields of an event.
#[derive(Default)]
pub(super) struct FieldReader {
    message: Text,
    fields: Text,
    /// Reads these fields, too, since the line is one of verger.
    is_own: bool,
    pub(super) child: Option<String>,
    pub(super) incarnation: Option<u32>,
    /// The target of a line that comes from the crate `log`.
    pub(super) target: Option<String>,
}

impl FieldReader {
    pub(super) fn new(is_own: bool) -> Self {
        Self { is_own, ..Self::default() }
    }

    /// Returns message and fields.
    pub(super) fn finish(self) -> (String, String) {
        let message = self.message.finish(ROOM);
        let fields = self.fields.finish(ROOM - message.len());
        (message, fields)
    }

    fn read(&mut self, field: &Field, value: &dyn fmt::Display) {
        let mut text = Text::default();
        if catch_panic(|| write!(text, "{}", Visible(value))).is_none() {
            text.text = "(panicked)".to_owned();
        }
        self.take(field.name(), text);
    }

    fn take(&mut self, name: &str, value: Text) {
        match name {
            "message" => return self.message = value,
            "child" if self.is_own => return self.child = Some(value.text),
            "incarnation" if self.is_own => return self.incarnation = value.text.parse().ok(),
            "log.target" => return self.target = Some(value.text),
            name if name.starts_with("log.") => return,
            _ => {}
        }
        let space = if self.fields.text.is_empty() { "" } else { " " };
        let _ = write!(self.fields, "{space}{name}={}", Quoted(&value.text));
        self.fields.is_cut |= value.is_cut;
    }
}

impl Visit for FieldReader {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.read(field, &format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.read(field, &value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.read(field, &Chain(value));
    }
}

/// How many causes of an error a line shows. It is composed where the line is logged.
const CAUSES: usize = 32;

/// An error with its sources.
struct Chain<'a>(&'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in with_causes(self.0).take(1 + CAUSES).enumerate() {
            write!(f, "{}{error}", if index == 0 { "" } else { ": " })?;
        }
        Ok(())
    }
}

/// A value in quotes, if it needs them. A `Debug` of text has them already.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needs_quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '=');
        if is_quoted(self.0) || !self.0.is_empty() && !self.0.contains(needs_quotes) {
            return f.write_str(self.0);
        }
        f.write_char('"')?;
        for c in self.0.chars() {
            if c == '"' {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

/// Returns whether a text is one string literal.
fn is_quoted(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let Some(inner) = inner else { return false };
    let mut is_escaped = false;
    for c in inner.chars() {
        if c == '"' && !is_escaped {
            return false;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    !is_escaped
}
