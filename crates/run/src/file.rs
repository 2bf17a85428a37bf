//! A file: text in, the definition of the tree out, or all of its mistakes.
//!
//! Each table `[process.NAME]` is split. What the process is, is read here, and is also the table `config` of the child
//! `app/NAME` in verger's own configuration. The rest, such as `restart`, is that child's policy.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::de::{DeString, DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Table, Value};
use verger::config::Config;

use crate::mistake::{InputError, Mistake, Places, Problem};
use crate::process::Process;
use crate::tree::ROOT;
use crate::{keys, reload, requirements};

/// What a file describes.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) settings: Settings,
    pub(crate) processes: BTreeMap<String, Process>,
    /// The policies by path.
    pub(crate) config: Config,
    pub(crate) places: Places,
}

/// The table `[run]`: the program itself.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct Settings {
    pub(crate) console: Option<SocketAddr>,
    pub(crate) console_actions: bool,
    pub(crate) probes: Option<SocketAddr>,
    /// How long a stop may take.
    #[serde(with = "humantime_serde")]
    pub(crate) shutdown: Option<Duration>,
}

/// Reads a file.
///
/// # Errors
///
/// [`InputError::Unreadable`], or [`InputError::Invalid`] with all mistakes that can be found without the tree.
pub(crate) fn read(path: &Path) -> Result<Definition, InputError> {
    let text = fs::read_to_string(path)
        .map_err(|source| InputError::Unreadable { path: path.to_owned(), source })?;
    parse(&path.display().to_string(), &text)
}

fn parse(file: &str, text: &str) -> Result<Definition, InputError> {
    let mut places = Places::new(file, text);
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => return Err(InputError::Invalid(vec![places.syntax(&error)])),
    };
    places.add("", &table);
    let mut reader = Reader {
        places: &places,
        mistakes: Vec::new(),
        settings: Settings::default(),
        processes: BTreeMap::new(),
        sections: Table::new(),
    };
    reader.file(&table);
    let Reader { mut mistakes, settings, processes, sections, .. } = reader;
    let names: Vec<_> = sections.keys().filter_map(|path| path.split('/').next_back()).collect();
    mistakes.extend(requirements::check(&places, &processes, &names));
    let config = Config::deserialize(sections).expect("reading a configuration never fails");
    if let Err(error) = config.check() {
        mistakes.extend(places.translate(&error));
    }
    if !mistakes.is_empty() {
        mistakes.sort_by_key(|mistake| mistake.place);
        return Err(InputError::Invalid(mistakes));
    }
    Ok(Definition { settings, processes, config, places })
}

struct Reader<'a> {
    places: &'a Places,
    mistakes: Vec<Mistake>,
    settings: Settings,
    processes: BTreeMap<String, Process>,
    /// By path, as verger's configuration has them.
    sections: Table,
}

impl Reader<'_> {
    fn file(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            match (&**key.get_ref(), value.get_ref()) {
                ("run", DeValue::Table(table)) => {
                    let known: Vec<_> = keys::RUN.iter().map(|key| key.name).collect();
                    for key in table.keys() {
                        self.known_key("run", key, &known);
                    }
                    self.settings = self.decode("run", value.clone()).unwrap_or_default();
                }
                ("process", DeValue::Table(processes)) => {
                    for (name, value) in processes {
                        self.process(name, value);
                    }
                }
                (name @ ("run" | "process"), _) => {
                    let (message, example) = ("this isn't a table".to_owned(), keys::example(name));
                    self.mistake(name, Problem::BadValue { message, example });
                }
                _ => self.known_key("", key, &["process", "run"]),
            }
        }
        if self.sections.is_empty() && self.mistakes.is_empty() {
            // A file that was emptied by mistake must not stop everything at a reload.
            self.mistake("", Problem::NoProcess);
        }
    }

    fn process(&mut self, key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) {
        let name = &**key.get_ref();
        let path = format!("process.{name}");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            return self.mistake(&path, Problem::BadName(name.to_owned()));
        }
        if name == reload::NAME {
            return self.mistake(&path, Problem::ReservedName);
        }
        let DeValue::Table(table) = value.get_ref() else {
            let (message, example) = ("this isn't a table".to_owned(), keys::example(&path));
            return self.mistake(&path, Problem::BadValue { message, example });
        };
        let (own, mut section) = self.split(&path, table);
        let own = Spanned::new(value.span(), DeValue::Table(own));
        let config: Option<Value> = self.decode(&path, own.clone());
        section.extend(config.map(|config| ("config".to_owned(), config)));
        self.sections.insert(format!("{ROOT}/{name}"), section.into());
        let Some(process) = self.decode::<Process>(&path, own) else { return };
        for (below, command) in process.commands() {
            if command.first().is_none_or(String::is_empty) {
                let path = format!("{path}.{below}");
                let problem = Problem::EmptyCommand(keys::example(&path));
                self.mistakes.push(self.places.mistake(&path, problem));
            }
        }
        self.processes.insert(name.to_owned(), process);
    }

    /// Returns what the process is, and its policy.
    fn split<'a>(&mut self, path: &str, table: &DeTable<'a>) -> (DeTable<'a>, Table) {
        let (mut own, mut section) = (DeTable::new(), Table::new());
        let known: Vec<_> = keys::of_process().collect();
        for (key, value) in table {
            let word = &**key.get_ref();
            if keys::POLICY.contains(&word) {
                let policy: Option<Value> = self.decode(path, value.clone());
                section.extend(policy.map(|policy| (word.to_owned(), policy)));
            } else if keys::RESTART.contains(&word) {
                self.mistake(&format!("{path}.{word}"), Problem::BelowRestart(path.to_owned()));
            } else if known.contains(&word) {
                own.insert(key.clone(), value.clone());
            } else {
                self.known_key(path, key, &known);
            }
        }
        (own, section)
    }

    /// Notes a mistake if the key isn't one of those that are known.
    fn known_key(&mut self, above: &str, key: &Spanned<DeString<'_>>, known: &[&str]) {
        let name = &**key.get_ref();
        if known.contains(&name) {
            return;
        }
        let similar = |it: &&&str| strsim::damerau_levenshtein(it, name) <= 2;
        let hint = match known.iter().find(similar) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("write {}", one_of(known)),
        };
        let dot = if above.is_empty() { "" } else { "." };
        self.mistake(&format!("{above}{dot}{name}"), Problem::UnknownKey(hint));
    }

    fn decode<T: DeserializeOwned>(
        &mut self,
        path: &str,
        value: Spanned<DeValue<'_>>,
    ) -> Option<T> {
        let decoded = T::deserialize(ValueDeserializer::from(value));
        decoded.map_err(|error| self.mistakes.push(self.places.bad_value(path, &error))).ok()
    }

    fn mistake(&mut self, path: &str, problem: Problem) {
        self.mistakes.push(self.places.mistake(path, problem));
    }
}

/// Returns `` `a`, `b` or `c` ``.
pub(crate) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
