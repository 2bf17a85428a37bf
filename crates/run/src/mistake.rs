//! What is wrong with a file: each mistake with its place, and with what to write instead.

use std::ops::Range;
use std::path::PathBuf;
use std::{fmt, io};

use toml::de::{DeTable, DeValue};
use verger::BuildError;
use verger::config::{ApplyError, ConfigError};

use crate::tree::ROOT;

/// Why a file isn't used. No process was started or changed for it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("{}: the file can't be read: {source}; write the path of a TOML file", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("SIGHUP can't be received: {0}; free some of this machine's resources")]
    Signals(io::Error),
    #[error("{}", lines(.0))]
    Invalid(Vec<Mistake>),
    #[error("{file}: {source}")]
    Tree { file: String, source: BuildError },
    #[error("{file}: {source}")]
    NotApplied { file: String, source: ApplyError },
}

/// A mistake, and where it is.
#[derive(Debug)]
pub(crate) struct Mistake {
    file: String,
    /// The line and the column, from 1. They order the mistakes.
    pub(crate) place: (usize, usize),
    /// The keys that lead to the value, such as `process.web.command`. Empty for the whole file.
    path: String,
    problem: Problem,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("{0}; correct the TOML syntax")]
    Syntax(String),
    #[error(
        "no process is described; write, for example, [process.web] and below it command = [\"sleep\", \"10\"]"
    )]
    NoProcess,
    #[error("`{0}` can't be a name; write one of letters, digits, `-` and `_`")]
    BadName(String),
    #[error("the name is taken by the child that reloads this file; write a different one")]
    ReservedName,
    #[error("unknown key; {0}")]
    UnknownKey(String),
    #[error("this is a key of the table `restart`; write it below [{0}.restart]")]
    BelowRestart(String),
    #[error("{message}; write, for example, {example}")]
    BadValue { message: String, example: &'static str },
    #[error("the command is empty; write the program and its arguments, for example {0}")]
    EmptyCommand(&'static str),
    #[error("there is no process `{name}`; {instead}")]
    UnknownRequirement { name: String, instead: String },
    #[error("a process would wait for itself: {0}; remove one of these requirements")]
    Cycle(String),
    /// The text of verger's own configuration.
    #[error("{0}")]
    Policy(String),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.place;
        write!(f, "{}:{line}:{column}: ", self.file)?;
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        write!(f, "{}", self.problem)
    }
}

/// Writes each mistake on a line.
fn lines(mistakes: &[Mistake]) -> String {
    let lines: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Where each key of a file is.
#[derive(Debug)]
pub(crate) struct Places {
    file: String,
    text: String,
    keys: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    path: String,
    key: Range<usize>,
    value: Range<usize>,
}

impl Places {
    pub(crate) fn new(file: &str, text: &str) -> Self {
        Self { file: file.to_owned(), text: text.to_owned(), keys: Vec::new() }
    }

    /// Adds the keys of a table, and those below them.
    pub(crate) fn add(&mut self, above: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let dot = if above.is_empty() { "" } else { "." };
            let path = format!("{above}{dot}{}", key.get_ref());
            if let DeValue::Table(below) = value.get_ref() {
                self.add(&path, below);
            }
            self.keys.push(Place { path, key: key.span(), value: value.span() });
        }
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Returns a mistake about the key at a path, or about what is above it if the file doesn't have that key.
    pub(crate) fn mistake(&self, path: &str, problem: Problem) -> Mistake {
        let mut at = path;
        let start = loop {
            if let Some(place) = self.keys.iter().find(|place| place.path == at) {
                break place.key.start;
            }
            match at.rfind(['.', '[']) {
                Some(end) => at = &at[..end],
                None => break 0,
            }
        };
        self.mistake_at(start, path.to_owned(), problem)
    }

    /// Returns a mistake of the syntax.
    pub(crate) fn syntax(&self, error: &toml::de::Error) -> Mistake {
        let start = error.span().map_or(0, |span| span.start);
        self.mistake_at(start, String::new(), Problem::Syntax(error.message().to_owned()))
    }

    /// Returns a mistake about a value below the path `above` that has the wrong type or content.
    pub(crate) fn bad_value(&self, above: &str, error: &toml::de::Error) -> Mistake {
        let start = error.span().map_or(0, |span| span.start);
        // A key that serde doesn't know has no value of its own.
        let holds = |place: &&Place| place.value.contains(&start) || place.key.contains(&start);
        let below = self.keys.iter().filter(|place| place.path.starts_with(above));
        let found = below.filter(holds).min_by_key(|place| place.value.len());
        let path = found.map_or(above, |place| &place.path);
        // An environment may hold passwords, so the message of serde, which quotes the value, isn't used.
        let message = if path.split('.').nth(2) == Some("environment") {
            "expected a text in quotes for each variable".to_owned()
        } else {
            error.message().replace('\n', " ")
        };
        let problem = Problem::BadValue { message, example: crate::keys::example(path) };
        self.mistake_at(start, path.to_owned(), problem)
    }

    /// Translates mistakes of verger's configuration, whose keys are `"app/web".restart` and `"app/web".config.command`.
    pub(crate) fn translate(&self, error: &ConfigError) -> Vec<Mistake> {
        let translate = |key: &str| {
            let (name, below) = key.strip_prefix(&format!("\"{ROOT}/"))?.split_once('"')?;
            Some(format!("process.{name}{}", below.strip_prefix(".config").unwrap_or(below)))
        };
        let mistakes = error.mistakes().iter();
        let translated = mistakes.map(|mistake| {
            let path = translate(mistake.key()).unwrap_or_default();
            self.mistake(&path, Problem::Policy(mistake.message().to_owned()))
        });
        translated.collect()
    }

    fn mistake_at(&self, start: usize, path: String, problem: Problem) -> Mistake {
        let before = self.text.get(..start).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Mistake { file: self.file.clone(), place: (line, column), path, problem }
    }
}
