//! Reading a value of any type from a node, with all of its mistakes.
//!
//! It knows nodes and the places of mistakes. It doesn't know what the values mean.
//!
//! serde stops at the first error. So a value is read again without the key of each error, until
//! nothing is left to find.
//!
//! # Invariants
//!
//! 1. Each round hides one more node, and there are at most [`MOST`] rounds, so reading ends.
//! 2. An error that may be the consequence of a hidden value isn't reported.
//! 3. Neither a message nor a line that is shown contains the text of a secret that was found.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::iter;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;

use super::access::{NodeReader, ReadState, address};
use super::location::Location;
use super::mistake::Mistake;
use super::node::{Node, Value};
use super::read_error::{Kind, ReadError};
use super::secret::{self, REDACTED};
use crate::panic::{collect, panic_message};

/// The most mistakes of one value.
const MOST: usize = 100;

/// A value that was read.
#[derive(Debug)]
pub(crate) struct Decoded<T> {
    pub(crate) value: T,
    /// The keys of secrets below the value, as [`Node::flatten`] writes them, in no particular order.
    pub(crate) secrets: Vec<String>,
}

/// Reads a value. `key` is what the keys of mistakes begin with, such as `"app/writer".config`.
///
/// # Errors
///
/// All mistakes, in the order in which they were found.
pub(crate) fn decode<T: DeserializeOwned>(
    node: &Node,
    key: &str,
) -> Result<Decoded<T>, Vec<Mistake>> {
    let state = ReadState::default();
    let mut problems = Problems::default();
    for _ in 0..MOST {
        match read(node, &state) {
            Ok(value) if problems.found.is_empty() => {
                let secrets = state.secrets.borrow();
                let places = if secrets.is_empty() { HashMap::new() } else { index(node, "") };
                let secrets = places.into_iter().filter(|it| secrets.contains(&it.0));
                return Ok(Decoded { value, secrets: secrets.map(|(_, it)| it.key).collect() });
            }
            Ok(_) => break,
            Err(error) => {
                if problems.found.is_empty() {
                    problems.places = index(node, key);
                }
                let at = error.at.unwrap_or(address(node));
                problems.add(at, error);
                // Without the whole value, there is nothing to read.
                if at == address(node) || !state.hidden.borrow_mut().insert(at) {
                    break;
                }
            }
        }
    }
    Err(problems.mistakes(&state.secrets.borrow()))
}

fn read<T: DeserializeOwned>(node: &Node, state: &ReadState) -> Result<T, ReadError> {
    secret::take_was_read();
    let read = || NodeReader { node, state }.read(PhantomData);
    // The message is located while the panics of this thread are collected.
    let (value, _) = collect(|| catch_unwind(AssertUnwindSafe(read)).map_err(panic_message));
    value.unwrap_or_else(|panic| Err(ReadError::of_panic(&panic, state.innermost.get())))
}

/// The problems so far.
#[derive(Default)]
struct Problems<'a> {
    places: HashMap<usize, Place<'a>>,
    found: Vec<(usize, ReadError)>,
    /// Hidden values that would have had a meaning. An unknown key has none.
    broken: HashSet<usize>,
}

impl Problems<'_> {
    /// Records a problem of the node at an address, unless it is a consequence.
    fn add(&mut self, at: usize, error: ReadError) {
        let is_consequence = match error.kind {
            Kind::Missing(key) => self.is_broken(at, key),
            _ => !error.is_key && self.has_broken(at),
        };
        if !(error.is_key && matches!(error.kind, Kind::UnknownKey(_))) {
            self.broken.insert(at);
        }
        if !is_consequence {
            self.found.push((at, error));
        }
    }

    /// Returns whether the table at an address has a broken value with this key.
    fn is_broken(&self, at: usize, key: &str) -> bool {
        let value = self.places.get(&at).and_then(|place| place.node.get(key));
        value.is_some_and(|value| self.broken.contains(&address(value)))
    }

    /// Returns whether a value within the node is broken.
    fn has_broken(&self, at: usize) -> bool {
        self.broken.iter().any(|&broken| self.around(broken).any(|above| above == at))
    }

    /// Returns the nodes around a node, the innermost first.
    fn around(&self, at: usize) -> impl Iterator<Item = usize> {
        let above = |at: &usize| self.places.get(at)?.above;
        iter::successors(above(&at), above)
    }

    fn mistakes(self, secrets: &HashSet<usize>) -> Vec<Mistake> {
        let is_secret =
            |at: usize| iter::once(at).chain(self.around(at)).any(|at| secrets.contains(&at));
        let hidden = Hidden::new(secrets.iter().filter_map(|at| self.places.get(at)));
        let mistake = |(at, error): &(usize, ReadError)| {
            let place = self.places.get(at)?;
            let message = if is_secret(*at) { error.without_value() } else { hidden.text(error) };
            let value = place.node.location.as_ref().filter(|_| !error.is_key);
            let location = value.or(place.key_location);
            let mistake = Mistake::new(location, &*place.key, message);
            Some(if hidden.is_on_line(location) { mistake.hide_line() } else { mistake })
        };
        self.found.iter().filter_map(mistake).collect()
    }
}

/// The texts and the lines of secrets.
struct Hidden<'a> {
    texts: Vec<&'a str>,
    lines: Vec<(&'a Location, std::ops::RangeInclusive<usize>)>,
}

impl<'a> Hidden<'a> {
    fn new<'b: 'a>(secrets: impl Iterator<Item = &'a Place<'b>>) -> Self {
        let (mut texts, mut lines) = (Vec::new(), Vec::new());
        for place in secrets {
            let mut open = vec![place.node];
            while let Some(node) = open.pop() {
                if let Value::String(text) = &node.value
                    && !text.is_empty()
                {
                    texts.push(&**text);
                }
                open.extend(node.inside());
                let location = node.location.as_ref();
                lines.extend(location.map(|it| (it, it.line()..=it.last_line())));
            }
        }
        Self { texts, lines }
    }

    fn text(&self, message: impl Display) -> String {
        let message = message.to_string();
        self.texts.iter().fold(message, |message, text| message.replace(text, REDACTED))
    }

    fn is_on_line(&self, location: Option<&Location>) -> bool {
        let Some(location) = location else { return false };
        let line = location.line();
        self.lines.iter().any(|(at, lines)| at.file() == location.file() && lines.contains(&line))
    }
}

/// Where a node is.
struct Place<'a> {
    key: String,
    key_location: Option<&'a Location>,
    /// The node around it.
    above: Option<usize>,
    node: &'a Node,
}

/// Returns the places of all nodes, by their addresses.
fn index<'a>(root: &'a Node, key: &str) -> HashMap<usize, Place<'a>> {
    let mut places = HashMap::new();
    let key = key.to_owned();
    let mut open = vec![Place { key, key_location: None, above: None, node: root }];
    while let Some(place) = open.pop() {
        let above = Some(address(place.node));
        match &place.node.value {
            Value::Array(nodes) => open.extend(nodes.iter().enumerate().map(|(number, node)| {
                let key = format!("{}[{number}]", place.key);
                Place { key, key_location: None, above, node }
            })),
            Value::Table(table) => open.extend(table.iter().map(|(name, entry)| {
                let key = entry.key(&place.key, name);
                Place { key, key_location: entry.location.as_ref(), above, node: &entry.node }
            })),
            _ => {}
        }
        places.insert(address(place.node), place);
    }
    places
}
