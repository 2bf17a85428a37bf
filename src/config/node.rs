//! Nodes: the values of a configuration, whatever format they were read from.
//!
//! A [`ValueNode`] knows its value and where it was written. It knows neither sections nor settings. A clone shares
//! what is in it, because a reload of a large file copies most of its tables unchanged.
//!
//! # Invariants
//!
//! 1. Equality ignores locations, and NaN is equal to itself, so that a file that didn't change is equal.
//! 2. `Display` is valid TOML in one line. `Debug` shows no value, because any value may be a secret.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::mistake::Location;
use super::plan::joined;
use crate::invisible::is_invisible;

/// A value with its location.
#[derive(Clone)]
pub(crate) struct ValueNode {
    pub(crate) value: Value,
    pub(crate) location: Option<Location>,
}

#[derive(Clone)]
pub(crate) enum Value {
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    Array(Arc<[ValueNode]>),
    Table(Arc<NodeTable>),
}

/// The values of a table by their keys, in the order of the keys.
pub(crate) type NodeTable = BTreeMap<String, Box<Entry>>;

/// A value of a table.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Where the key is.
    pub(crate) location: Option<Location>,
    /// The key as it is written, if it stands for a different one.
    pub(crate) alias: Option<&'static str>,
    pub(crate) node: ValueNode,
}

impl Entry {
    /// Appends the key `name` of this value to a path of keys, as it is written.
    pub(crate) fn key(&self, path: &str, name: &str) -> String {
        match self.alias {
            Some(alias) if path.is_empty() => alias.to_owned(),
            Some(alias) => format!("{path}.{alias}"),
            None => join(path, name),
        }
    }
}

impl ValueNode {
    pub(crate) const fn new(value: Value) -> Self {
        Self { value, location: None }
    }

    pub(crate) fn table(&self) -> Option<&NodeTable> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Returns the table to change it. What others share stays as it is.
    pub(crate) fn table_mut(&mut self) -> Option<&mut NodeTable> {
        match &mut self.value {
            Value::Table(table) => Some(Arc::make_mut(table)),
            _ => None,
        }
    }

    /// Returns the value of a key, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// Returns where a key is, such as `feed.toml:12`, or its value if the key has no location.
    pub(crate) fn place(&self, key: &str) -> Option<Arc<str>> {
        let Entry { location, node, .. } = self.entry(key)?;
        let location = location.as_ref().or(node.location.as_ref())?;
        Some(location.to_string().into())
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.table()?.get(key).map(|entry| &**entry)
    }

    /// Returns the boolean that this is. It may be quoted, as the values of environment variables are.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        match &self.value {
            Value::Bool(value) => Some(*value),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Returns the values in this table or array.
    pub(crate) fn inside(&self) -> Vec<&Self> {
        match &self.value {
            Value::Array(nodes) => nodes.iter().collect(),
            Value::Table(table) => table.values().map(|entry| &entry.node).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns this table without some of its keys.
    pub(crate) fn without(&self, keys: &[&str]) -> Self {
        let mut node = self.clone();
        if let Some(table) = node.table_mut() {
            table.retain(|key, _| !keys.contains(&key.as_str()));
        }
        node
    }

    /// Returns the value at keys that are separated by dots.
    #[cfg(test)]
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, ValueNode::get)
    }

    /// Returns these values over those beneath: tables are merged key by key, all else is replaced.
    pub(crate) fn merge(mut self, beneath: &Self) -> Self {
        let Some(beneath) = beneath.table().filter(|beneath| !beneath.is_empty()) else {
            return self;
        };
        if let Some(own) = self.table_mut() {
            for (key, below) in beneath {
                match own.get_mut(key) {
                    None => {
                        own.insert(key.clone(), below.clone());
                    }
                    Some(entry) => {
                        entry.node = std::mem::take(&mut entry.node).merge(&below.node);
                    }
                }
            }
        }
        self
    }

    /// Lists the values that are no tables, and empty tables, with their keys.
    pub(crate) fn flatten(&self, prefix: &str) -> Vec<(String, &Self)> {
        let mut leaves = Vec::new();
        let mut open = vec![(prefix.to_owned(), self)];
        while let Some((path, node)) = open.pop() {
            match node.table() {
                Some(table) if !table.is_empty() => {
                    let entries = table.iter().rev();
                    open.extend(entries.map(|(key, it)| (join(&path, key), &it.node)));
                }
                _ => leaves.push((path, node)),
            }
        }
        leaves
    }
}

/// Appends a key to a path of keys, in quotes if it has to be.
pub(crate) fn join(path: &str, key: &str) -> String {
    let quoted = QuotedKey(key);
    if path.is_empty() { quoted.to_string() } else { format!("{path}.{quoted}") }
}

/// Displays a key as in TOML.
pub(crate) struct QuotedKey<'a>(pub(crate) &'a str);

impl fmt::Display for QuotedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !self.0.is_empty() && self.0.chars().all(bare) {
            return f.write_str(self.0);
        }
        write_text(f, self.0)
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            c if is_invisible(c) => write!(f, "\\U{:08X}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

impl fmt::Display for ValueNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Float(value) if value.is_nan() => f.write_str("nan"),
            // Unlike `Display`, it has a fraction or an exponent.
            Value::Float(value) => write!(f, "{value:?}"),
            Value::String(text) => write_text(f, text),
            Value::Array(nodes) => {
                write!(f, "[{}]", joined(nodes, ", "))
            }
            Value::Table(table) if table.is_empty() => f.write_str("{}"),
            Value::Table(table) => {
                for (index, (key, entry)) in table.iter().enumerate() {
                    let before = if index == 0 { "{ " } else { ", " };
                    write!(f, "{before}{} = {}", QuotedKey(key), entry.node)?;
                }
                f.write_str(" }")
            }
        }
    }
}

impl fmt::Debug for ValueNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Bool(_) => f.write_str("a boolean"),
            Value::Integer(_) | Value::Float(_) => f.write_str("a number"),
            Value::String(_) => f.write_str("a string"),
            Value::Array(nodes) => write!(f, "an array of {}", nodes.len()),
            Value::Table(table) => write!(f, "a table with {:?}", table.keys()),
        }
    }
}

/// An empty table.
impl Default for ValueNode {
    fn default() -> Self {
        Self::new(Value::Table(Arc::default()))
    }
}

impl PartialEq for ValueNode {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Integer(a), Self::Integer(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Table(a), Self::Table(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

/// A node, or nothing for a null.
struct Written(Option<ValueNode>);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

/// Reads a node without locations. A null in a table or an array is left out.
impl<'de> Deserialize<'de> for ValueNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written(node) = Written::deserialize(deserializer)?;
        Ok(node.unwrap_or_default())
    }
}

/// Says that an integer has no place in a [`Value`].
pub(super) fn out_of_range(number: impl fmt::Display) -> String {
    let (least, most) = (i64::MIN, i64::MAX);
    format!("the number {number} is out of range; write one from {least} to {most}")
}

struct NodeVisitor;

impl NodeVisitor {
    fn integer<E: Error>(number: impl TryInto<i64> + fmt::Display + Copy) -> Result<Written, E> {
        let value = number.try_into().map_err(|_| E::custom(out_of_range(number)))?;
        Ok(Self::node(Value::Integer(value)))
    }

    const fn node(value: Value) -> Written {
        Written(Some(ValueNode::new(value)))
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean, a number, a string, an array or a table")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Written, E> {
        Ok(Self::node(Value::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Written, E> {
        Self::integer(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Written, E> {
        Self::integer(value)
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Written, E> {
        Self::integer(value)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Written, E> {
        Self::integer(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Written, E> {
        Ok(Self::node(Value::Float(value)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Written, E> {
        Ok(Self::node(Value::String(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Written, E> {
        Ok(Written(None))
    }

    fn visit_none<E: Error>(self) -> Result<Written, E> {
        Ok(Written(None))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Written, D::Error> {
        Written::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Written, D::Error> {
        Written::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Written, A::Error> {
        let mut nodes = Vec::new();
        while let Some(Written(node)) = seq.next_element()? {
            nodes.extend(node);
        }
        Ok(Self::node(Value::Array(nodes.into())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
        let mut table = NodeTable::new();
        while let Some((key, Written(node))) = map.next_entry::<String, _>()? {
            let entry = |node| Box::new(Entry { location: None, alias: None, node });
            table.extend(node.map(|node| (key, entry(node))));
        }
        // The `toml` crate has tables with one such key for dates and times.
        if let Some(entry) = table.remove("$__toml_private_datetime") {
            return Ok(Self::node(entry.node.value));
        }
        Ok(Self::node(Value::Table(table.into())))
    }
}
