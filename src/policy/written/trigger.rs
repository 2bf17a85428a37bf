//! A trigger: the word of a restart type, or a table with exceptions to it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::is_false;
use crate::exit::ExitKind;
use crate::policy::{OnExit, RestartType, Trigger};

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    #[serde(rename = "type")]
    restart: RestartType,
    #[serde(skip_serializing_if = "is_false")]
    activation_only: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    on_exit: BTreeMap<ExitKind, OnExit>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "refuse")]
    on_error: Vec<Question>,
}

/// A question about errors of one type, by name.
#[derive(Serialize)]
struct Question {
    error: &'static str,
    then: OnExit,
}

fn refuse<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Question>, D::Error> {
    IgnoredAny::deserialize(deserializer)?;
    Err(de::Error::custom(
        "`on_error` can't be read from a file: a question about an error is code; remove it, and \
         write `Trigger::on_error` where the child is described",
    ))
}

impl Serialize for Trigger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let question = |(error, then)| Question { error, then };
        let table = Table {
            restart: self.restart,
            activation_only: self.activation_only,
            on_exit: self.exceptions.by_kind().collect(),
            on_error: self.exceptions.by_error().map(question).collect(),
        };
        if !table.activation_only && table.on_exit.is_empty() && table.on_error.is_empty() {
            return table.restart.serialize(serializer);
        }
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Trigger;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a restart type such as \"transient\", or a table such as \
                     { type = \"transient\", on_exit = { panicked = \"fail_supervisor\" } }",
                )
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Trigger, E> {
                word.parse::<RestartType>().map(Trigger::from).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Trigger, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(map))?;
                let mut trigger = Trigger::from(table.restart);
                trigger.activation_only = table.activation_only;
                let exceptions = table.on_exit.into_iter();
                Ok(exceptions.fold(trigger, |trigger, (kind, then)| trigger.on(kind, then)))
            }
        }

        deserializer.deserialize_any(Any)
    }
}
