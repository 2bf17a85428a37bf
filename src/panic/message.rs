//! The message of a panic, with its location if that is known.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The message of a panic, and where it happened.
///
/// It dereferences to the message. The location is known if
/// [`install_panic_hook`](crate::install_panic_hook) was called before the panic. `Display` writes both:
/// `src/db.rs:10:5: no connection`.
///
/// ```
/// use verger::ExitReason;
///
/// let reason = ExitReason::Panicked("no connection".into());
/// assert!(matches!(&reason, ExitReason::Panicked(panic) if panic == "no connection"));
/// assert_eq!(reason.to_string(), "panicked: no connection");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PanicMessage {
    /// The location, `: `, and the message; or only the message.
    text: Arc<str>,
    /// Where the message begins.
    start: usize,
}

/// Between a location and a message.
const SEPARATOR: &str = ": ";

impl PanicMessage {
    pub(crate) fn new(message: &str, location: Option<&str>) -> Self {
        match location {
            Some(location) => Self {
                text: [location, SEPARATOR, message].concat().into(),
                start: location.len() + SEPARATOR.len(),
            },
            None => Self { text: message.into(), start: 0 },
        }
    }

    /// Returns the message, without the location.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.text[self.start..]
    }

    /// Returns the file, the line and the column of the panic, such as `src/db.rs:10:5`, if they are
    /// known.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        let end = self.start.checked_sub(SEPARATOR.len())?;
        Some(&self.text[..end])
    }
}

impl Deref for PanicMessage {
    type Target = str;

    fn deref(&self) -> &str {
        self.message()
    }
}

impl From<&str> for PanicMessage {
    fn from(message: &str) -> Self {
        Self::new(message, None)
    }
}

impl From<String> for PanicMessage {
    fn from(message: String) -> Self {
        Self { text: message.into(), start: 0 }
    }
}

impl PartialEq<str> for PanicMessage {
    fn eq(&self, message: &str) -> bool {
        self.message() == message
    }
}

impl PartialEq<&str> for PanicMessage {
    fn eq(&self, message: &&str) -> bool {
        self.message() == *message
    }
}

impl fmt::Display for PanicMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for PanicMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

/// Returns the text of a panic's payload.
pub(super) fn message_of(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a value that is not a string"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_compared_and_shown_with_and_without_a_location() {
        let located = PanicMessage::new("no: way", Some("src/a.rs:1:2"));
        assert_eq!((located.message(), located.location()), ("no: way", Some("src/a.rs:1:2")));
        assert_eq!(located.to_string(), "src/a.rs:1:2: no: way");
        assert!(located == "no: way" && located.len() == 7);

        for plain in [PanicMessage::from("no"), PanicMessage::from("no".to_owned())] {
            assert_eq!((plain.message(), plain.location()), ("no", None));
            assert_eq!(plain.to_string(), "no");
        }
        assert_ne!(located, PanicMessage::from("no: way"), "the location counts");
        assert_eq!(PanicMessage::new("", Some("a:1:1")).message(), "");
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn a_message_is_as_large_as_a_string() {
        assert_eq!(size_of::<PanicMessage>(), size_of::<String>());
    }
}
