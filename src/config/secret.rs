//! Secrets: values of a configuration that are never shown.
//!
//! A [`Secret`] knows its value. It tells our deserializer which value of a file it was read from.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// What is shown in place of a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// The name by which our deserializer recognises a secret.
pub(super) const NAME: &str = "$verger::config::Secret";

thread_local! {
    /// Whether a secret was read, maybe by a deserializer other than ours, such as that of a flattened
    /// table. The innermost value of ours around it takes the flag.
    static WAS_READ: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a secret was read since the last call.
pub(super) fn take_was_read() -> bool {
    WAS_READ.replace(false)
}

/// The texts of the secrets in a value. Each message about the value passes [`hide`](Self::hide).
#[derive(Clone, Debug, Default)]
pub(super) struct SecretTexts(Vec<String>);

impl SecretTexts {
    /// Also hides this text, as it is and as `Debug` writes it.
    pub(super) fn add(&mut self, text: &str) {
        let escaped = text.escape_debug().to_string();
        if escaped != text {
            self.0.push(escaped);
        }
        self.0.push(text.to_owned());
    }

    /// Replaces each secret in a message.
    pub(super) fn hide(&self, message: impl fmt::Display) -> String {
        let message = message.to_string();
        self.0.iter().fold(message, |message, text| message.replace(text, REDACTED))
    }
}

/// A value that isn't shown in logs, errors or comparisons, such as a password.
///
/// `Debug`, `Display` and `Serialize` write `[redacted]`. Use it in the type of a child's own section.
///
/// ```
/// use verger::config::Secret;
///
/// #[derive(Debug, serde::Deserialize)]
/// struct Database {
///     user: String,
///     password: Secret<String>,
/// }
///
/// let text = r#"{ "user": "feed", "password": "hunter2" }"#;
/// let database: Database = serde_json::from_str(text)?;
/// assert_eq!(database.password.expose(), "hunter2");
/// let shown = format!("{database:?}");
/// assert_eq!(shown, r#"Database { user: "feed", password: [redacted] }"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value. Don't log it.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Returns the value by value. Don't log it.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(REDACTED)
    }
}

impl<T> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Inner<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Inner<T> {
            type Value = Secret<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a secret")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Secret<T>, D::Error> {
                // Not earlier: serde also asks for the value of a key that is missing.
                WAS_READ.set(true);
                T::deserialize(deserializer).map(Secret)
            }
        }

        deserializer.deserialize_newtype_struct(NAME, Inner(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_and_never_shown() {
        let secret: Secret<String> = serde_json::from_str("\"hunter2\"").unwrap();
        assert_eq!(secret, Secret::from("hunter2".to_owned()));
        assert_eq!(secret.expose(), "hunter2");
        let shown = [format!("{secret}"), format!("{secret:?}"), format!("{secret:#?}")];
        assert_eq!(shown, [REDACTED; 3]);
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"[redacted]\"");
        assert_eq!(secret.into_inner(), "hunter2");
    }
}
