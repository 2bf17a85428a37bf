//! The table of all keys, for the book, made from the types that read them.

use std::fmt::Write as _;

use serde::de::value::Error as Captured;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use crate::config::keys;
use crate::config::section::{OF_RESTART, RestartTable, SectionTable};
use crate::policy::option_table::{OPTIONS, OptionOf, TakesEffect};

/// Captures the keys of a struct, and fails.
struct Capture<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for Capture<'_> {
    type Error = Captured;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Captured> {
        Err(Captured::custom("only a struct has keys"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Captured> {
        self.0.extend(fields);
        Err(Captured::custom("the keys are captured"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn keys_of<T: for<'de> Deserialize<'de>>() -> Vec<&'static str> {
    let mut keys = Vec::new();
    assert!(T::deserialize(Capture(&mut keys)).is_err());
    keys
}

/// How each key is written.
pub(super) fn written(key: &str) -> &'static str {
    match key {
        "strategy" => "`\"one_for_one\"`, `\"one_for_all\"`, `\"rest_for_one\"`",
        "auto_shutdown" => "`\"never\"`, `\"any_significant\"`, `\"all_significant\"`",
        "start" => "`\"sequential\"`, `\"concurrent\"`",
        "max_restarts" => "a whole number, with `period`",
        "period" => "a duration such as `\"60s\"`, or `\"infinity\"`, with `max_restarts`",
        "intensity" => "`{ max = 5, period = \"60s\" }`, `{ max = 5.0, half_life = \"30s\" }`",
        "unlimited_restarts" => "`true`, in place of a limit",
        "count_failed_starts" | "enabled" => "`true`, `false`",
        "on_exhausted" => {
            "`\"escalate\"`, `\"park\"`, `\"stop_child\"`, `\"remove\"`, `{ pause = \"15s\" }`, \
             `{ exit = 3 }`"
        }
        "leak_timeout" | "activation_timeout" | "watchdog" | "run_time_limit" | "min_backoff"
        | "failing_for" => "a duration above zero",
        "stop_deadline" | "max_backoff" | "auto_reset" => "a duration such as `\"5s\"`",
        "drain" => "a duration such as `\"10s\"`, in place of `shutdown`",
        "max_children" | "min_ready" | "max_retries" | "consecutive_restarts" => "a whole number",
        "restart" | "when" => "a restart type such as `\"on_failure\"`, or a table",
        "shutdown" => "a duration, `\"brutal_kill\"`, `\"infinity\"`",
        "on_leak" => "`\"restart\"`, `\"park\"`",
        "mailbox" => "`{ capacity = 1000 }`",
        "config" => "the child's own values",
        "factor" => "a number of at least 1",
        "backoff" => "a table such as `{ min = \"200ms\", max = \"30s\", jitter = 0.2 }`",
        "failure_log" => "a table such as `{ level = \"info\" }`",
        "own_restarts" => "`{ max = 12, period = \"5m\" }`",
        key => panic!("`{key}` is new; write here what it takes"),
    }
}

fn reference() -> String {
    let mut table = "| key | of | what it is written as |\n| --- | --- | --- |\n".to_owned();
    let mut row = |key: &str, of: &str, written: &str| {
        writeln!(table, "| `{key}` | {of} | {written} |").expect("a string takes all");
    };
    for option in OPTIONS {
        let of = match option.of {
            OptionOf::Supervisor => "a supervisor",
            OptionOf::OrderedSupervisor => "a supervisor that isn't dynamic",
            OptionOf::DynamicSupervisor => "a dynamic supervisor",
            OptionOf::Child => "a child",
            OptionOf::Worker => "a worker",
        };
        row(option.key, of, written(option.key));
    }
    for key in keys_of::<RestartTable>() {
        row(key, "`restart`", written(key));
    }
    table
}

#[test]
fn the_lists_of_keys_are_those_of_the_type_that_reads_them() {
    let (supervisors, children) = keys();
    assert_eq!(keys_of::<SectionTable>(), [supervisors, children].concat());
    let known = [supervisors, children, &OF_RESTART].concat();
    let unknown: Vec<_> =
        keys_of::<RestartTable>().into_iter().filter(|key| !known.contains(key)).collect();
    assert_eq!(unknown, [""; 0], "the value of an unknown key isn't shown");
}

#[test]
fn the_book_has_all_keys() {
    let page = include_str!("../../../book/src/config-keys.md");
    let (_, rest) = page.split_once("<!-- keys -->\n").expect("the first marker");
    let (table, _) = rest.split_once("<!-- end of keys -->").expect("the second marker");
    let reference = reference();
    assert!(table == reference, "replace the table by:\n{reference}");
}

#[test]
fn the_book_says_what_a_plan_says_of_each_option() {
    let page = include_str!("../../../book/src/reloading.md");
    // The time at which a child reads its own values is the child's.
    for option in OPTIONS.iter().filter(|option| option.key != "config") {
        let key = match option.key {
            "restart" => "everything below `restart`".to_owned(),
            key => format!("`{key}`"),
        };
        let row = page.lines().find(|line| {
            let cell = line.strip_prefix("| ").and_then(|line| line.split(" |").next());
            cell.is_some_and(|cell| cell.split(", ").any(|it| it == key))
        });
        let row = row.unwrap_or_else(|| panic!("{key} is missing in *What changes when*"));
        let says = match option.takes_effect {
            TakesEffect::Live => "live",
            TakesEffect::AtNextFailure => "at the next failure",
        };
        assert_eq!(row.split(" | ").nth(1), Some(says), "{key}");
    }
}
