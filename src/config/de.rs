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
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;

use super::access::{NodeReader, ReadState, address};
use super::location::Location;
use super::mistake::Mistake;
use super::node::{Node, Value, element, join};
use super::read_error::{Kind, ReadError};
use super::secret::{self, REDACTED};
use crate::panic::{PanicMessage, collect, panic_message};

/// The most mistakes of one value.
const MOST: usize = 100;

/// A value that was read.
#[derive(Debug)]
pub(crate) struct Decoded<T> {
    pub(crate) value: T,
    /// The keys of secrets, as [`Node::flatten`] writes them.
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
    let mut problems = Problems::new(node);
    for _ in 0..MOST {
        match read::<T>(node, &state) {
            Ok(Ok(value)) if problems.found.is_empty() && problems.broken.is_empty() => {
                let secrets = state.secrets.borrow();
                let secrets = index(node, key).into_iter().filter(|it| secrets.contains(&it.0));
                let mut secrets: Vec<_> = secrets.map(|(_, place)| place.key).collect();
                secrets.sort();
                return Ok(Decoded { value, secrets });
            }
            Ok(Ok(_)) => break,
            Ok(Err(error)) => {
                if !problems.add(Problem::Error(error), &state) {
                    break;
                }
            }
            Err(panic) => {
                let at = state.innermost.get();
                if !problems.add(Problem::Panic(panic, at), &state) {
                    break;
                }
            }
        }
    }
    Err(problems.mistakes(key, &state.secrets.borrow()))
}

fn read<T: DeserializeOwned>(
    node: &Node,
    state: &ReadState,
) -> Result<Result<T, ReadError>, PanicMessage> {
    secret::take_was_read();
    state.innermost.set(address(node));
    let read = || T::deserialize(NodeReader { node, state });
    // The message is located while the panics of this thread are collected.
    let (value, _) = collect(|| catch_unwind(AssertUnwindSafe(read)).map_err(panic_message));
    value
}

enum Problem {
    Error(ReadError),
    Panic(PanicMessage, usize),
}

/// The problems so far.
struct Problems<'a> {
    root: &'a Node,
    found: Vec<(usize, Problem)>,
    /// Hidden values that would have had a meaning. An unknown key has none.
    broken: HashSet<usize>,
    /// The node above each node. Filled at the first problem.
    above: HashMap<usize, usize>,
}

impl<'a> Problems<'a> {
    fn new(root: &'a Node) -> Self {
        Self { root, found: Vec::new(), broken: HashSet::new(), above: HashMap::new() }
    }

    /// Records a problem, and hides its node. Returns whether it makes sense to read again.
    fn add(&mut self, problem: Problem, state: &ReadState) -> bool {
        if self.above.is_empty() {
            self.above = above(self.root);
        }
        let root = address(self.root);
        let at = match &problem {
            Problem::Error(error) => error.at.unwrap_or(root),
            Problem::Panic(_, at) => *at,
        };
        let is_unknown_key = match &problem {
            Problem::Error(ReadError { kind: Kind::UnknownKey(_), is_key, .. }) => *is_key,
            _ => false,
        };
        let is_consequence = match &problem {
            Problem::Error(ReadError { kind: Kind::Missing(key), .. }) => self.is_hidden(at, key),
            Problem::Error(error) => !error.is_key && self.has_broken(at),
            Problem::Panic(..) => self.has_broken(at),
        };
        if !is_consequence {
            self.found.push((at, problem));
        }
        if !is_unknown_key {
            self.broken.insert(at);
        }
        at != root && state.hidden.borrow_mut().insert(at)
    }

    /// Returns whether the table at an address has a broken value with this key.
    fn is_hidden(&self, at: usize, key: &str) -> bool {
        let inside = self.broken.iter().filter(|broken| self.above.get(broken) == Some(&at));
        let inside: HashSet<_> = inside.collect();
        if inside.is_empty() {
            return false;
        }
        let place = find(self.root, at).and_then(|node| node.get(key));
        place.is_some_and(|node| inside.contains(&address(node)))
    }

    /// Returns whether a value within the node is broken.
    fn has_broken(&self, at: usize) -> bool {
        self.broken.iter().any(|&broken| self.around(broken).any(|above| above == at))
    }

    /// Returns the nodes around a node, the innermost first.
    fn around(&self, at: usize) -> impl Iterator<Item = usize> {
        let above = |at: &usize| self.above.get(at).copied();
        iter::successors(above(&at), above)
    }

    fn mistakes(self, key: &str, secrets: &HashSet<usize>) -> Vec<Mistake> {
        let places = index(self.root, key);
        let is_secret =
            |at: usize| iter::once(at).chain(self.around(at)).any(|at| secrets.contains(&at));
        let hidden = Hidden::new(secrets.iter().filter_map(|at| places.get(at)));
        let mistake = |(at, problem): &(usize, Problem)| {
            let place = places.get(at)?;
            let (message, is_key) = match problem {
                Problem::Error(error) if is_secret(*at) => (error.without_value(), error.is_key),
                Problem::Error(error) => (hidden.text(error), error.is_key),
                Problem::Panic(..) if is_secret(*at) => (
                    "reading it panicked; the message isn't shown, because the value is a secret"
                        .to_owned(),
                    false,
                ),
                Problem::Panic(panic, _) => {
                    (hidden.text(format_args!("reading it panicked: {panic}")), false)
                }
            };
            let location = if is_key { place.key_location } else { place.node.location.as_ref() };
            let location = location.or(place.key_location);
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
    node: &'a Node,
}

/// Returns the places of all nodes, by their addresses.
fn index<'a>(root: &'a Node, key: &str) -> HashMap<usize, Place<'a>> {
    let mut places = HashMap::new();
    let mut open = vec![Place { key: key.to_owned(), key_location: None, node: root }];
    while let Some(place) = open.pop() {
        match &place.node.value {
            Value::Array(nodes) => {
                open.extend(nodes.iter().enumerate().map(|(number, node)| Place {
                    key: element(&place.key, number),
                    key_location: None,
                    node,
                }));
            }
            Value::Table(table) => open.extend(table.iter().map(|(name, entry)| {
                let key = match entry.alias {
                    Some(alias) if place.key.is_empty() => alias.to_owned(),
                    Some(alias) => format!("{}.{alias}", place.key),
                    None => join(&place.key, name),
                };
                Place { key, key_location: entry.location.as_ref(), node: &entry.node }
            })),
            _ => {}
        }
        places.insert(address(place.node), place);
    }
    places
}

/// Returns the node around each node, by their addresses.
fn above(root: &Node) -> HashMap<usize, usize> {
    let mut above = HashMap::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        let inside = node.inside();
        above.extend(inside.iter().map(|it| (address(it), address(node))));
        open.extend(inside);
    }
    above
}

fn find(root: &Node, at: usize) -> Option<&Node> {
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if address(node) == at {
            return Some(node);
        }
        open.extend(node.inside());
    }
    None
}
