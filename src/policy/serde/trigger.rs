//! The serialised form of `Trigger`: the word of a restart type, or a table with exceptions to it.

use std::collections::BTreeMap;

use serde::de::{self, Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize, Serializer};

use super::word_or_table::{WordOrTable, WordsAndTable};
use crate::exit::ExitKind;
use crate::policy::{OnExit, RestartType, Trigger, UnknownWord};
use crate::serde::deserialize;

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct TriggerTable {
    #[serde(rename = "type")]
    restart: RestartType,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    activation_only: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    on_exit: BTreeMap<ExitKind, OnExit>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "refuse")]
    on_error: Vec<WrittenPredicate>,
}

/// A predicate about errors, by the name of the error type.
#[derive(Serialize)]
struct WrittenPredicate {
    error: &'static str,
    then: OnExit,
}

impl WordsAndTable for TriggerTable {
    const EXPECTED: &'static str = "a restart type such as \"transient\", or a table such as \
                                    { type = \"transient\", on_exit = { panicked = \
                                    \"fail_supervisor\" } }";
}

fn refuse<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<WrittenPredicate>, D::Error> {
    IgnoredAny::deserialize(deserializer)?;
    Err(de::Error::custom(
        "`on_error` can't be read from a file, because a predicate about errors is code; remove \
         it, and call `Trigger::on_error` where the child is described",
    ))
}

impl Serialize for Trigger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of_kind = |&kind| Some((kind, self.exceptions.for_kind(kind)?));
        let table = TriggerTable {
            restart: self.restart,
            activation_only: self.activation_only,
            on_exit: ExitKind::ALL.iter().filter_map(of_kind).collect(),
            on_error: self
                .exceptions
                .by_error()
                .map(|(error, then)| WrittenPredicate { error, then })
                .collect(),
        };
        if !table.activation_only && table.on_exit.is_empty() && table.on_error.is_empty() {
            return table.restart.serialize(serializer);
        }
        table.serialize(serializer)
    }
}

impl TryFrom<WordOrTable<TriggerTable>> for Trigger {
    type Error = UnknownWord;

    fn try_from(written: WordOrTable<TriggerTable>) -> Result<Self, UnknownWord> {
        let table = match written {
            WordOrTable::Word(word) => return word.parse::<RestartType>().map(Self::from),
            WordOrTable::Table(table) => table,
        };
        let mut trigger = Self::from(table.restart);
        trigger.activation_only = table.activation_only;
        let exceptions = table.on_exit.into_iter();
        Ok(exceptions.fold(trigger, |trigger, (kind, then)| trigger.on(kind, then)))
    }
}

deserialize!(Trigger: |written: WordOrTable<TriggerTable>| written.try_into());
