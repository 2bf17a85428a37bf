//! Configuration files: bytes in, a configuration out.
//!
//! It knows the file system. It is the only part of the module that does.
//!
//! # Invariant
//!
//! A file that can't be read is a configuration with one mistake, which names the file.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::location::Source;
use super::mistake::Mistake;
use super::{Config, toml};
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
        let (root, syntax, mistakes) = toml::parse(&source);
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
    let mut bytes = Vec::new();
    // Some systems open a directory as a file.
    let metadata = path.metadata().map_err(|error| unreadable(&error))?;
    if metadata.is_dir() {
        return Err(unreadable(&ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        let message =
            "this is a pipe or a device, which may never end; write the path of an ordinary file";
        return Err(message.to_owned());
    }
    let file = File::open(path).map_err(|error| unreadable(&error))?;
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
