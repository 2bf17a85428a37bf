//! Our deserializer of nodes, and of the keys of tables.
//!
//! It knows nodes and what serde asks for. Places and messages are made by `de`.
//!
//! # Invariants
//!
//! 1. A hidden node isn't read: its key or its place in an array is left out.
//! 2. A text is read as a number or a boolean where one of these is expected, because keys and the values of
//!    environment variables are texts. Nothing else is converted.
//! 3. Every node is read [`within`](NodeReader::within) itself, so each error, panic and secret belongs to the
//!    innermost node.
//! 4. No cell is borrowed while code of the user's runs, which may panic.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, btree_map};
use std::ptr;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::node::{Entry, Node, Value};
use super::read_error::ReadError;
use super::secret;

/// What is known about the nodes while one value is read, by their addresses.
#[derive(Debug, Default)]
pub(super) struct ReadState {
    pub(super) hidden: RefCell<HashSet<usize>>,
    pub(super) secrets: RefCell<HashSet<usize>>,
    /// The node that is being read: the place of a panic.
    pub(super) innermost: Cell<usize>,
}

impl ReadState {
    fn shows(&self, node: &Node) -> bool {
        !self.hidden.borrow().contains(&address(node))
    }
}

/// The address of a node, by which it is recognised.
pub(super) fn address(node: &Node) -> usize {
    ptr::from_ref(node).addr()
}

/// Reads one node.
#[derive(Clone, Copy)]
pub(super) struct NodeReader<'a> {
    pub(super) node: &'a Node,
    pub(super) state: &'a ReadState,
}

impl<'de> NodeReader<'de> {
    /// Reads a value.
    ///
    /// The type of the value may check it after our deserializer has returned.
    pub(super) fn read<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
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
        match &self.node.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    fn wrong_type(self, expected: &dyn Expected) -> ReadError {
        let found = match &self.node.value {
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Integer(value) => Unexpected::Signed(*value),
            Value::Float(value) => Unexpected::Float(*value),
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        };
        ReadError::invalid_type(found, expected)
    }
}

/// The methods that read a number, also from a text.
macro_rules! numbers {
    () => {
        numbers! {
            deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
            deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
            deserialize_f32 deserialize_f64
        }
    };
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

    numbers! {}

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(nodes) => visitor.visit_seq(Elements { nodes: nodes.iter(), of: self }),
            Value::Table(table) => {
                visitor.visit_map(Entries { entries: table.iter(), value: None, of: self })
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.node.as_bool() {
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
            Some(table) if table.is_empty() => visitor.visit_unit(),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name == secret::NAME {
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
        match &self.node.value {
            Value::Array(nodes)
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
        if self.node.table().is_none() {
            return Err(self.wrong_type(&visitor));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::String(word) => visitor.visit_enum(Choice { word, value: None, of: self }),
            Value::Table(table) if table.len() == 1 => {
                let mut shown = table.iter().filter(|(_, entry)| self.state.shows(&entry.node));
                match shown.next() {
                    Some((word, entry)) => {
                        let value = Some(Self { node: &entry.node, ..self });
                        visitor.visit_enum(Choice { word, value, of: self })
                    }
                    None => Err(self.wrong_type(&visitor)),
                }
            }
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit seq map identifier
    }
}

/// Reads the key of a table.
struct KeyReader<'de>(&'de str);

impl<'de> KeyReader<'de> {
    fn text(&self) -> Option<&'de str> {
        Some(self.0)
    }
}

impl<'de> Deserializer<'de> for KeyReader<'de> {
    type Error = ReadError;

    numbers! {}

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0.parse() {
            Ok(value) => visitor.visit_bool(value),
            Err(_) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        BorrowedStrDeserializer::new(self.0).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

struct Elements<'de> {
    nodes: std::slice::Iter<'de, Node>,
    of: NodeReader<'de>,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let NodeReader { state, .. } = self.of;
        let next = self.nodes.find(|node| state.shows(node));
        next.map(|node| NodeReader { node, state }.read(seed)).transpose()
    }
}

struct Entries<'de> {
    entries: btree_map::Iter<'de, String, Box<Entry>>,
    value: Option<&'de Node>,
    of: NodeReader<'de>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let state = self.of.state;
        // Not filtered ahead: a table can be large, and is read again after each mistake.
        let next = self.entries.find(|(_, entry)| state.shows(&entry.node));
        let Some((key, entry)) = next else { return Ok(None) };
        self.value = Some(&entry.node);
        let key = seed.deserialize(KeyReader(key));
        key.map(Some).map_err(|error| error.at_key(address(&entry.node)))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let value = self.value.take();
        let node = value.ok_or_else(|| ReadError::custom("a value was read before its key"))?;
        NodeReader { node, ..self.of }.read(seed)
    }
}

/// A variant of an enum: a word, or a table with one key.
struct Choice<'de> {
    word: &'de str,
    value: Option<NodeReader<'de>>,
    of: NodeReader<'de>,
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let word: StrDeserializer<'_, ReadError> = self.word.into_deserializer();
        let variant = seed.deserialize(word).map_err(|error| match self.value {
            Some(value) => error.at_key(address(value.node)),
            None => error,
        })?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.value {
            Some(NodeReader { node, .. }) if node.table().is_none_or(|table| !table.is_empty()) => {
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
        self.value.ok_or_else(|| {
            let word = self.word;
            let error = format!("`{word}` needs a value; write {{ {word} = … }}");
            ReadError::custom(error).at(address(self.of.node))
        })
    }
}
