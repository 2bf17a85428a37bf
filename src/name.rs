//! The name of a supervisor, kept where it is looked at.
//!
//! Who is at a path is seen by comparing names. Among 100,000 supervisors nothing of theirs is in a
//! cache, and a name behind a pointer was the second of two waits for memory, of a lookup that is
//! otherwise 60 ns.

use std::fmt;
use std::sync::Arc;

/// Longer names are rare, and behind a pointer. With this, both kinds take 24 bytes.
const SHORT: usize = 22;

/// See the [module](self).
#[derive(Clone)]
pub(crate) enum Name {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Arc<str>),
}

impl Name {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or(bytes),
            Self::Long(name) => name.as_bytes(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("it was a string")
    }
}

impl From<Arc<str>> for Name {
    fn from(name: Arc<str>) -> Self {
        let mut bytes = [0; SHORT];
        match (u8::try_from(name.len()), bytes.get_mut(..name.len())) {
            (Ok(len), Some(short)) => {
                short.copy_from_slice(name.as_bytes());
                Self::Short { len, bytes }
            }
            _ => Self::Long(name),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_it_was_made_from_however_long() {
        for len in [0, 1, SHORT - 1, SHORT, SHORT + 1, 255] {
            let text = "x".repeat(len);
            let name = Name::from(Arc::from(text.as_str()));
            assert_eq!((name.as_str(), name.as_bytes()), (text.as_str(), text.as_bytes()));
            assert_eq!(matches!(name, Name::Short { .. }), len <= SHORT);
        }
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_name_takes_24_bytes() {
        assert_eq!(size_of::<Name>(), 24);
    }
}
