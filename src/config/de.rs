//! Reading a value of any type from a node, with all of its mistakes.
//!
//! It knows nodes, what serde asks for, and the places of mistakes. It doesn't know what the values mean.
//!
//! serde stops at the first error. So a value is read again without the key of each error, until
//! nothing is left to find.
//!
//! # Invariants
//!
//! 1. Each round hides one more node, and there are at most [`MOST`] rounds, so reading ends.
//! 2. An error that may be the consequence of a hidden value isn't reported.
//! 3. Neither a message nor a line that is shown contains the text of a secret that was found.
//! 4. A hidden node isn't read: its key or its place in an array is left out.
//! 5. A text is read as a number or a boolean where one of these is expected, because keys and the values of
//!    environment variables are texts. Nothing else is converted.
//! 6. Every node is read [`within`](NodeReader::within) itself, so each error, panic and secret belongs to the
//!    innermost node.
//! 7. No cell is borrowed while code of the user's runs, which may panic.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, btree_map};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{iter, ptr};

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::mistake::{Location, Mistake};
use super::node::{Entry, Value, ValueNode};
use super::read_error::{Kind, ReadError};
use super::secret::{self, SecretTexts};
use crate::panic::{collect, panic_message};

/// The most mistakes of one value.
const MOST: usize = 100;

/// A value that was read.
#[derive(Debug)]
pub(crate) struct Decoded<T> {
    pub(crate) value: T,
    /// The keys of secrets below the value, as [`ValueNode::flatten`] writes them, in no particular order.
    pub(crate) secrets: Vec<String>,
    /// What no message about the value may show.
    pub(super) texts: SecretTexts,
}

/// Reads a value. `key` is what the keys of mistakes begin with, such as `"app/writer".config`.
///
/// # Errors
///
/// All mistakes, in the order in which they were found.
pub(crate) fn decode<T: DeserializeOwned>(
    node: &ValueNode,
    key: &str,
) -> Result<Decoded<T>, Vec<Mistake>> {
    let state = ReadState::default();
    let mut problems = Problems::default();
    for _ in 0..MOST {
        match read(node, &state) {
            Ok(value) if problems.found.is_empty() => {
                let secrets = state.secrets.borrow();
                let places = if secrets.is_empty() { HashMap::new() } else { index(node, "") };
                let secrets: Vec<_> = places
                    .into_iter()
                    .filter(|it| secrets.contains(&it.0))
                    .map(|it| it.1)
                    .collect();
                let texts = Hidden::new(secrets.iter()).texts;
                let secrets = secrets.into_iter().map(|it| it.key).collect();
                return Ok(Decoded { value, secrets, texts });
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

fn read<T: DeserializeOwned>(node: &ValueNode, state: &ReadState) -> Result<T, ReadError> {
    secret::take_was_read();
    let read = || NodeReader { node, key: None, state }.read(PhantomData);
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
            let message =
                if is_secret(*at) { error.without_value() } else { hidden.texts.hide(error) };
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
    texts: SecretTexts,
    lines: Vec<(&'a Location, std::ops::RangeInclusive<usize>)>,
}

impl<'a> Hidden<'a> {
    fn new<'b: 'a>(secrets: impl Iterator<Item = &'a Place<'b>>) -> Self {
        let (mut texts, mut lines) = (SecretTexts::default(), Vec::new());
        for place in secrets {
            let mut open = vec![place.node];
            while let Some(node) = open.pop() {
                match &node.value {
                    Value::String(text) if !text.is_empty() => texts.add(text),
                    // A shorter number is in too many messages.
                    Value::Integer(number @ 1000..) => texts.add(&number.to_string()),
                    _ => {}
                }
                open.extend(node.inside());
                let location = node.location.as_ref();
                lines.extend(location.map(|it| (it, it.line()..=it.last_line())));
            }
        }
        Self { texts, lines }
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
    node: &'a ValueNode,
}

/// Returns the places of all nodes, by their addresses.
fn index<'a>(root: &'a ValueNode, key: &str) -> HashMap<usize, Place<'a>> {
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

/// What is known about the nodes while one value is read, by their addresses.
#[derive(Debug, Default)]
struct ReadState {
    hidden: RefCell<HashSet<usize>>,
    secrets: RefCell<HashSet<usize>>,
    /// The node that is being read: the place of a panic.
    innermost: Cell<usize>,
}

impl ReadState {
    fn shows(&self, node: &ValueNode) -> bool {
        !self.hidden.borrow().contains(&address(node))
    }
}

/// The address of a node, by which it is recognised.
fn address(node: &ValueNode) -> usize {
    ptr::from_ref(node).addr()
}

/// Reads one node, or its key.
#[derive(Clone, Copy)]
struct NodeReader<'a> {
    node: &'a ValueNode,
    /// The key of the node in its table, if that is read and not the node.
    key: Option<&'a str>,
    state: &'a ReadState,
}

impl<'de> NodeReader<'de> {
    /// Reads a value.
    ///
    /// The type of the value may check it after our deserializer has returned.
    fn read<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        self.within(|reader| seed.deserialize(reader))
    }

    /// Calls `read`, and attributes its errors, panics and secrets to this node.
    fn within<T>(self, read: impl FnOnce(Self) -> Result<T, ReadError>) -> Result<T, ReadError> {
        let address = address(self.node);
        let outer = self.state.innermost.replace(address);
        let value = read(self).map_err(|error| error.at(address));
        // Not restored after a panic.
        self.state.innermost.set(outer);
        if secret::take_was_read() {
            self.state.secrets.borrow_mut().insert(address);
        }
        value
    }

    fn text(&self) -> Option<&'de str> {
        match (self.key, &self.node.value) {
            (Some(key), _) => Some(key),
            (None, Value::String(text)) => Some(text),
            _ => None,
        }
    }

    fn wrong_type(self, expected: &dyn Expected) -> ReadError {
        let found = match (self.key, &self.node.value) {
            (Some(key), _) => Unexpected::Str(key),
            (_, Value::Bool(value)) => Unexpected::Bool(*value),
            (_, Value::Integer(value)) => Unexpected::Signed(*value),
            (_, Value::Float(value)) => Unexpected::Float(*value),
            (_, Value::String(text)) => Unexpected::Str(text),
            (_, Value::Array(_)) => Unexpected::Seq,
            (_, Value::Table(_)) => Unexpected::Map,
        };
        ReadError::invalid_type(found, expected)
    }
}

/// The methods that read a number, also from a text.
macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            match self.text() {
                Some(text) => number(text, visitor),
                None => self.deserialize_any(visitor),
            }
        }
    )*};
}

fn number<'de, V: Visitor<'de>>(text: &'de str, visitor: V) -> Result<V::Value, ReadError> {
    let word = text.trim();
    if let Ok(number) = word.parse::<i64>() {
        visitor.visit_i64(number)
    } else if let Ok(number) = word.parse::<u64>() {
        visitor.visit_u64(number)
    } else {
        // `inf` and `nan` are words here.
        match word.parse::<f64>().ok().filter(|number| number.is_finite()) {
            Some(number) => visitor.visit_f64(number),
            None => visitor.visit_borrowed_str(text),
        }
    }
}

impl<'de> Deserializer<'de> for NodeReader<'de> {
    type Error = ReadError;

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match (self.key, &self.node.value) {
            (Some(key), _) => visitor.visit_borrowed_str(key),
            (_, Value::Bool(value)) => visitor.visit_bool(*value),
            (_, Value::Integer(value)) => visitor.visit_i64(*value),
            (_, Value::Float(value)) => visitor.visit_f64(*value),
            (_, Value::String(text)) => visitor.visit_borrowed_str(text),
            (_, Value::Array(nodes)) => {
                visitor.visit_seq(Elements { nodes: nodes.iter(), state: self.state })
            }
            (_, Value::Table(table)) => {
                visitor.visit_map(Entries { entries: table.iter(), value: None, state: self.state })
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let value = match self.key {
            Some(key) => key.parse().ok(),
            None => self.node.as_bool(),
        };
        match value {
            Some(value) => visitor.visit_bool(value),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.node.table() {
            Some(table) if self.key.is_none() && table.is_empty() => visitor.visit_unit(),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name == secret::NAME && self.key.is_none() {
            // The whole value, before a part of it takes the flag of a secret.
            self.state.secrets.borrow_mut().insert(address(self.node));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match (self.key, &self.node.value) {
            (None, Value::Array(nodes))
                if nodes.len() != len && nodes.iter().all(|node| self.state.shows(node)) =>
            {
                Err(ReadError::invalid_length(nodes.len(), &visitor))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        // The visitor of a struct also takes an array, which has no keys that could be checked.
        if self.key.is_some() || self.node.table().is_none() {
            return Err(self.wrong_type(&visitor));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if let Some(key) = self.key {
            return BorrowedStrDeserializer::new(key).deserialize_enum(name, variants, visitor);
        }
        let choice = match &self.node.value {
            Value::String(word) => Some((word, None)),
            Value::Table(table) if table.len() == 1 => {
                let mut shown = table.iter().filter(|(_, entry)| self.state.shows(&entry.node));
                shown.next().map(|(word, entry)| (word, Some(&entry.node)))
            }
            _ => None,
        };
        let (word, value) = choice.ok_or_else(|| self.wrong_type(&visitor))?;
        visitor.visit_enum(Choice { word, value, of: self })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit seq map identifier
    }
}

struct Elements<'de> {
    nodes: std::slice::Iter<'de, ValueNode>,
    state: &'de ReadState,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let state = self.state;
        let next = self.nodes.find(|node| state.shows(node));
        next.map(|node| NodeReader { node, key: None, state }.read(seed)).transpose()
    }
}

struct Entries<'de> {
    entries: btree_map::Iter<'de, String, Box<Entry>>,
    value: Option<&'de ValueNode>,
    state: &'de ReadState,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let state = self.state;
        // Not filtered ahead: a table can be large, and is read again after each mistake.
        let next = self.entries.find(|(_, entry)| state.shows(&entry.node));
        let Some((key, entry)) = next else { return Ok(None) };
        self.value = Some(&entry.node);
        let key = seed.deserialize(NodeReader { node: &entry.node, key: Some(key), state });
        key.map(Some).map_err(|error| error.at_key(address(&entry.node)))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let value = self.value.take();
        let node = value.ok_or_else(|| ReadError::custom("a value was read before its key"))?;
        NodeReader { node, key: None, state: self.state }.read(seed)
    }
}

/// A variant of an enum: a word, or a table with one key.
struct Choice<'de> {
    word: &'de str,
    value: Option<&'de ValueNode>,
    of: NodeReader<'de>,
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let word = BorrowedStrDeserializer::new(self.word);
        let variant = seed.deserialize(word).map_err(|error: ReadError| match self.value {
            Some(value) => error.at_key(address(value)),
            None => error,
        })?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.value {
            Some(node) if node.table().is_none_or(|table| !table.is_empty()) => {
                let word = self.word;
                let error = format!("`{word}` has no value; write \"{word}\" instead");
                Err(ReadError::custom(error).at(address(node)))
            }
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        self.value()?.read(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.value()?.within(|value| value.deserialize_tuple(len, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.value()?.within(|value| value.deserialize_struct("", fields, visitor))
    }
}

impl<'de> Choice<'de> {
    fn value(&self) -> Result<NodeReader<'de>, ReadError> {
        let node = self.value.ok_or_else(|| {
            let word = self.word;
            let error = format!("`{word}` needs a value; write {{ {word} = … }}");
            ReadError::custom(error).at(address(self.of.node))
        })?;
        Ok(NodeReader { node, ..self.of })
    }
}
