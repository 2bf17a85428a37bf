//! Files in TOML: text in, nodes with locations out.
//!
//! It knows TOML. It doesn't know what a section is.
//!
//! # Invariant
//!
//! A text is read as far as its syntax allows. All errors of the syntax are mistakes, unless the text is
//! large: then only the first one is, because each takes memory.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue, Error};

use super::location::{Location, Source};
use super::mistake::Mistake;
use super::node::{Entry, Node, Table, Value};
use super::shown::may_hold_secret;

/// The largest text of which all errors are reported.
const RECOVERED: usize = 1024 * 1024;

/// How much of a large text is looked at first.
const LOOKED_AT: usize = 64 * 1024;
/// More errors than a value has that is cut.
const MANY: usize = 100;

/// Reads a text. Returns a table, the mistakes of the syntax, and those of values.
pub(super) fn parse(source: &Arc<Source>) -> (Node, Vec<Mistake>, Vec<Mistake>) {
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
    let syntax = errors.iter().take(super::mistake::KEPT).map(|error| mistake(source, error));
    let syntax = syntax.collect();
    let mut reader = Reader { source, mistakes: Vec::new() };
    let table = reader.table(table.get_ref());
    (Node::new(Value::Table(table.into())), syntax, reader.mistakes)
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

    fn table(&mut self, table: &DeTable<'_>) -> Table {
        let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
            let entry = Entry { location: self.location(key), alias: None, node: self.node(value) };
            (String::from(&**key.get_ref()), Box::new(entry))
        };
        table.iter().map(entry).collect()
    }

    /// Converts a value. The parser limits how deep values can be.
    fn node(&mut self, written: &Spanned<DeValue<'_>>) -> Node {
        let value = match written.get_ref() {
            DeValue::String(text) => Value::String(text.clone().into_owned()),
            DeValue::Integer(number) => integer(number).unwrap_or_else(|| {
                let message = format!(
                    "the number {number} is out of range; write one from {} to {}",
                    i64::MIN,
                    i64::MAX
                );
                self.out_of_range(written, &message)
            }),
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
        Node { value, location: self.location(written) }
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
