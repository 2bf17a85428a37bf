//! The serialised form of the types at the root, and what the forms of all folders are written with.
//!
//! Each folder has one module `serde` with the forms of its types, so a program without the feature `serde` compiles none of
//! them. Modules whose feature turns `serde` on derive the forms of their types instead.
//!
//! # Invariants
//!
//! 1. A form lists each field and each variant of its type. A new one doesn't compile until its form lists it.
//! 2. A field whose name ends in `_ms` has whole milliseconds: of a duration, or since the Unix epoch. An earlier instant is zero.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(test)]
mod tests;

/// Implements `Serialize`.
///
/// A struct lists its fields in the order in which they are written, and after a semicolon those that aren't:
///
/// ```text
/// serialize!(Letter { path, at in ms, length as size, error unless Option::is_none, name = name(); payload });
/// ```
///
/// * `at in ms`: the field `at_ms`, in [milliseconds](Millis).
/// * `length as size`: the field `size`.
/// * `error unless Option::is_none`: left out if the function returns `true`.
/// * `name = value`: this value. All fields are in scope as references.
///
/// `Letter unless is_default { … }` leaves each field out for which the function returns `true`.
///
/// An enum whose variants are tables has the word of the variant in a field, such as `event`. An enum without fields is written as
/// its word. Any other type is written as a value, or with fields that are computed:
///
/// ```text
/// serialize!(Kind by event { Lost as lost { reason } Found as found {} });
/// serialize!(Level: Info as info, Warn as warn);
/// serialize!(|token: Token| token.get());
/// serialize!(|exit: Exit| { kind = exit.kind(), message = exit.to_string() });
/// ```
macro_rules! serialize {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident as $name:ident $(in ms)?) => { stringify!($name) };
    (@name $field:ident in ms) => { concat!(stringify!($field), "_ms") };

    (@value $field:ident) => { $field };
    (@value $field:ident in ms) => { &$crate::serde::Millis::millis($field) };
    (@value $field:ident = $value:expr) => { &$value };

    (@is_written $field:ident) => { true };
    (@is_written $field:ident $is_absent:path) => { !$is_absent($field) };

    (@table $serializer:ident $type:ident $(
        $field:ident $(as $name:ident)? $(in $unit:ident)? $(unless $is_absent:path)? $(= $value:expr)?,
    )*) => {{
        use ::serde::ser::SerializeStruct as _;

        let fields = 0 $(+ usize::from($crate::serde::serialize!(@is_written $field $($is_absent)?)))*;
        let mut table = $serializer.serialize_struct(stringify!($type), fields)?;
        $(
            let name = $crate::serde::serialize!(@name $field $(as $name)? $(in $unit)?);
            if $crate::serde::serialize!(@is_written $field $($is_absent)?) {
                table.serialize_field(name, $crate::serde::serialize!(@value $field $(in $unit)? $(= $value)?))?;
            } else {
                table.skip_field(name)?;
            }
        )*
        table.end()
    }};

    (@impl ($($generic:tt)*) $type:ty, $this:ident, $serializer:ident, $body:expr) => {
        impl $($generic)* ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, $serializer: S) -> Result<S::Ok, S::Error> {
                let $this = self;
                $body
            }
        }
    };

    (|$this:ident: $type:ident| {
        $($field:ident $(unless $is_absent:path)? = $value:expr),+ $(,)?
    }) => {
        $crate::serde::serialize!(@impl () $type, $this, serializer, {
            $(let $field = &$value;)+
            $crate::serde::serialize!(@table serializer $type $($field $(unless $is_absent)?,)+)
        });
    };

    (|$this:ident: $type:ident| $value:expr) => {
        $crate::serde::serialize!(@impl () $type, $this, serializer, ::serde::Serialize::serialize(&$value, serializer));
    };

    ($type:ident: $($variant:ident as $word:ident),+) => {
        $crate::serde::serialize!(@impl () $type, this, serializer, {
            let word = match this { $($type::$variant => stringify!($word),)+ };
            serializer.serialize_unit_variant(stringify!($type), *this as u32, word)
        });
    };

    ($type:ident by $tag:ident { $($variant:ident as $word:ident {
        $($field:ident $(as $name:ident)? $(in $unit:ident)? $(= $value:expr)?),*
    })+ }) => {
        $crate::serde::serialize!(@impl () $type, this, serializer, match this {$(
            $type::$variant { $($field),* } => $crate::serde::serialize!(
                @table serializer $type
                $tag = stringify!($word), $($field $(as $name)? $(in $unit)? $(= $value)?,)*
            ),
        )+});
    };

    ($type:ident unless $is_absent:ident { $($field:ident),+ $(,)? $(; $omitted:ident)? }) => {
        $crate::serde::serialize!($type { $($field unless $is_absent),+ $(; $omitted)? });
    };

    ($type:ident $(<$generic:tt $(: $bound:path)?>)? {
        $($field:ident $(as $name:ident)? $(in $unit:ident)? $(unless $is_absent:path)? $(= $value:expr)?),+ $(,)?
        $(; $omitted:ident)?
    }) => {
        $crate::serde::serialize!(@impl ($(<$generic $(: $bound)?>)?) $type $(<$generic>)?, this, serializer, {
            let $type { $($field,)+ $($omitted: _)? } = this;
            $crate::serde::serialize!(
                @table serializer $type
                $($field $(as $name)? $(in $unit)? $(unless $is_absent)? $(= $value)?,)+
            )
        });
    };
}

/// Implements `Deserialize` of a type that is made of another one, such as a table, or isn't.
macro_rules! deserialize {
    ($type:ident: |$read:ident: $from:ty| $value:expr) => {
        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                let $read = <$from>::deserialize(deserializer)?;
                $value.map_err(::serde::de::Error::custom)
            }
        }
    };
}

/// Implements `Serialize` and `Deserialize` of enums that are displayed and parsed as one word.
macro_rules! words {
    ($($type:ident),+ $(,)?) => {$(
        $crate::serde::serialize!(|this: $type| this.word());
        $crate::serde::deserialize!($type: |word: std::borrow::Cow<'de, str>| word.parse());
    )+};
}

pub(crate) use {deserialize, serialize, words};

/// For fields that are left out unless they were set.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A duration, or the time since the Unix epoch, in whole milliseconds.
pub(crate) trait Millis {
    type Number: Serialize;

    fn millis(&self) -> Self::Number;
}

impl Millis for Duration {
    type Number = u64;

    fn millis(&self) -> u64 {
        u64::try_from(self.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Millis for SystemTime {
    type Number = u64;

    fn millis(&self) -> u64 {
        self.duration_since(UNIX_EPOCH).unwrap_or_default().millis()
    }
}

impl<T: Millis> Millis for Option<T> {
    type Number = Option<T::Number>;

    fn millis(&self) -> Self::Number {
        self.as_ref().map(T::millis)
    }
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "crate::lifecycle::Lifecycle", rename_all = "snake_case")]
enum Lifecycle {
    Discovered,
    Resolved,
    Activating,
    Active,
    Errored,
    Restarting,
    Deactivating,
    Stopped,
}

impl Serialize for crate::lifecycle::Lifecycle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Lifecycle::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for crate::lifecycle::Lifecycle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Lifecycle::deserialize(deserializer)
    }
}
