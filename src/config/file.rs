//! Configuration files in TOML: bytes in, nodes with locations out.
//!
//! It knows the file system and TOML, as no other part of the module does. It doesn't know what a section is.
//!
//! # Invariants
//!
//! 1. A file that can't be read is a configuration with one mistake, which names the file.
//! 2. A text is read as far as its syntax allows. All errors of the syntax are mistakes, unless the text is
//!    large: then only the first one is, because each takes memory.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(unix)]
use rustix::fs::OFlags;
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue, Error};

use super::Config;
use super::mistake::{KEPT, Location, Mistake, Source, may_hold_secret};
use super::node::{Entry, NodeTable, Value, ValueNode, out_of_range};
use crate::Application;

/// The largest file that is read.
const LARGEST: u64 = 16 * 1024 * 1024;

impl Config {
    /// Reads a configuration from a text in TOML. `name` is shown with the lines of mistakes.
    ///
    /// It never fails: [`check`](Self::check) returns the mistakes.
    ///
    /// ```
    /// use verger::config::Config;
    ///
    /// let config = Config::from_toml("[\"app/writer\"]\nshutdown = \"10s\"\n", "feed.toml");
    /// assert!(config.check().is_ok());
    /// ```
    #[must_use]
    pub fn from_toml(text: &str, name: &str) -> Self {
        // Editors on Windows begin a file with a mark that isn't part of the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = Source::new(text, name);
        let (root, syntax, mistakes) = parse(&source);
        Self::from_node(root, syntax, mistakes)
    }

    /// Reads a configuration file in TOML, up to 16 MiB.
    ///
    /// It never fails: [`check`](Self::check) returns the mistakes, also of a file that can't be read. It
    /// blocks the thread while it reads.
    #[must_use]
    pub fn read(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let name = path.display().to_string();
        match text(path) {
            Ok(text) => Self::from_toml(&text, &name),
            Err(message) => {
                Self { mistakes: vec![Mistake::of_file(&name, message)], ..Self::default() }
            }
        }
    }
}

impl Application {
    /// Reads the configuration from a TOML file, at the start and at each reload.
    ///
    /// A relative path is that of the working directory at that moment. See [`config`](Self::config) for what
    /// reloads it.
    pub fn config_file(self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.config(move || Config::read(&path))
    }
}

fn text(path: &Path) -> Result<String, String> {
    // First by its path: to open a device may have an effect.
    ordinary(path.metadata())?;
    opened(path)
}

/// Reads what is at the path now, which may be a different file.
fn opened(path: &Path) -> Result<String, String> {
    let mut options = OpenOptions::new();
    options.read(true);
    // Without it, `open` waits until a pipe is written.
    #[cfg(unix)]
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path).map_err(|error| unreadable(&error))?;
    ordinary(file.metadata())?;
    let mut bytes = Vec::new();
    // The size in the metadata may be that of a moment ago.
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > LARGEST {
        return Err("the file is larger than 16 MiB; split it, or check its path".to_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("the file isn't valid UTF-8 in line {line}; save it as UTF-8")
    })
}

/// Refuses anything but a file, whose bytes have a last one.
fn ordinary(metadata: io::Result<Metadata>) -> Result<(), String> {
    let metadata = metadata.map_err(|error| unreadable(&error))?;
    // Some systems open a directory as a file.
    if metadata.is_dir() {
        return Err(unreadable(&ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        let message =
            "this is a pipe or a device, which may never end; write the path of an ordinary file";
        return Err(message.to_owned());
    }
    Ok(())
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            "the file doesn't exist; create it, or check its path".to_owned()
        }
        ErrorKind::IsADirectory => {
            "this is a directory; write the path of a file in it".to_owned()
        }
        ErrorKind::PermissionDenied => {
            "the file can't be read, because its permissions don't allow it; run chmod u+r on it, or \
             run the program as its owner"
                .to_owned()
        }
        _ => format!("the file can't be read: {error}; check its path and its file system"),
    }
}

/// The largest text of which all errors are reported.
const RECOVERED: usize = 1024 * 1024;

/// How much of a large text is looked at first.
const LOOKED_AT: usize = 64 * 1024;
/// More errors than a value has that is cut.
const MANY: usize = 100;

/// Reads a text. Returns a table, the mistakes of the syntax, and those of values.
pub(super) fn parse(source: &Arc<Source>) -> (ValueNode, Vec<Mistake>, Vec<Mistake>) {
    let text = source.text();
    let (table, errors) = if text.len() <= RECOVERED {
        DeTable::parse_recoverable(text)
    } else if let Some(errors) = nonsense(text) {
        (Spanned::new(0..0, DeTable::new()), errors)
    } else {
        match DeTable::parse(text) {
            Ok(table) => (table, Vec::new()),
            Err(error) => (Spanned::new(0..0, DeTable::new()), vec![error]),
        }
    };
    let syntax = errors.iter().take(KEPT).map(|error| mistake(source, error));
    let syntax = syntax.collect();
    let mut reader = Reader { source, mistakes: Vec::new() };
    let table = reader.table(table.get_ref());
    (ValueNode::new(Value::Table(table.into())), syntax, reader.mistakes)
}

/// Returns the errors at the beginning of a large text if there are many. The parser remembers those of the whole
/// text, whose memory is many times the text's.
fn nonsense(text: &str) -> Option<Vec<Error>> {
    let end = text.as_bytes().iter().take(LOOKED_AT).rposition(|byte| *byte == b'\n')?;
    let (_, errors) = DeTable::parse_recoverable(&text[..end]);
    // A value that is cut at the end is a few errors.
    (errors.len() > MANY).then_some(errors)
}

fn mistake(source: &Arc<Source>, error: &Error) -> Mistake {
    let end = source.text().len()..source.text().len();
    let location = Location::new(source, error.span().unwrap_or(end));
    let mistake = Mistake::new(Some(&location), "", error.message());
    if may_hold_secret(&location) { mistake.hide_line() } else { mistake }
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn location<T>(&self, of: &Spanned<T>) -> Option<Location> {
        Some(Location::new(self.source, of.span()))
    }

    fn table(&mut self, table: &DeTable<'_>) -> NodeTable {
        let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
            let entry = Entry { location: self.location(key), alias: None, node: self.node(value) };
            (String::from(&**key.get_ref()), Box::new(entry))
        };
        table.iter().map(entry).collect()
    }

    /// Converts a value. The parser limits how deep values can be.
    fn node(&mut self, written: &Spanned<DeValue<'_>>) -> ValueNode {
        let value = match written.get_ref() {
            DeValue::String(text) => Value::String(text.clone().into_owned()),
            DeValue::Integer(number) => {
                integer(number).unwrap_or_else(|| self.out_of_range(written, &out_of_range(number)))
            }
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(float) if float.is_finite() || !number.as_str().contains(char::is_numeric) => {
                    Value::Float(float)
                }
                _ => self.out_of_range(
                    written,
                    &format!("the number {number} is out of range; write one up to 1e308"),
                ),
            },
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(time) => Value::String(time.to_string()),
            DeValue::Array(values) => {
                Value::Array(values.iter().map(|value| self.node(value)).collect())
            }
            DeValue::Table(table) => Value::Table(self.table(table).into()),
        };
        ValueNode { value, location: self.location(written) }
    }

    fn out_of_range(&mut self, written: &Spanned<DeValue<'_>>, message: &str) -> Value {
        let location = self.location(written);
        self.mistakes.push(Mistake::new(location.as_ref(), "", message));
        Value::Integer(0)
    }
}

fn integer(number: &DeInteger<'_>) -> Option<Value> {
    i64::from_str_radix(number.as_str(), number.radix()).ok().map(Value::Integer)
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_pipe_that_takes_the_place_of_the_file_does_not_hang_the_reload() {
        let directory = std::env::temp_dir().join(format!("verger-pipe-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("app.toml");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        // The step after the path has been found to lead to a file.
        let refused = opened(&path).unwrap_err();
        std::fs::remove_dir_all(&directory).unwrap();
        let expected =
            "this is a pipe or a device, which may never end; write the path of an ordinary file";
        assert_eq!(refused, expected);
    }
}
