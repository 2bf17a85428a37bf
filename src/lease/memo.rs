//! A few bytes that a store keeps with a lease.

use std::fmt;

/// Up to 64 bytes that a store keeps with a lease, from one holder to the next.
///
/// The holder of the lease writes it with [`LeaseEngine::write_memo`](super::LeaseEngine::write_memo). The next holder reads
/// it with [`LeaseEngine::holder`](super::LeaseEngine::holder) and continues from there: the time of the last run, the offset
/// in a queue, the version of a format. It is meant for a position and not for data, which belongs in a database.
///
/// The bytes have no meaning to the store. An empty memo, which is the default, is the same as none.
///
/// ```
/// use verger::lease::Memo;
///
/// let memo = Memo::new(1_767_225_600_u64.to_be_bytes())?;
/// assert_eq!(memo.as_bytes().len(), 8);
///
/// let error = Memo::new([0; 65]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "a memo of 65 bytes is longer than 64: store the data elsewhere, and its position in the memo"
/// );
/// # Ok::<(), verger::lease::MemoTooLong>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Memo {
    /// The bytes after the first `length` are 0.
    bytes: [u8; Self::MAX_LENGTH],
    length: u8,
}

impl Memo {
    /// The length of the longest memo, in bytes.
    pub const MAX_LENGTH: usize = 64;

    /// Creates a memo of these bytes.
    ///
    /// # Errors
    ///
    /// [`MemoTooLong`] if there are more than [`MAX_LENGTH`](Self::MAX_LENGTH) of them.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, MemoTooLong> {
        let bytes = bytes.as_ref();
        let mut memo = Self::default();
        let Some(place) = memo.bytes.get_mut(..bytes.len()) else {
            return Err(MemoTooLong { length: bytes.len() });
        };
        place.copy_from_slice(bytes);
        // At most 64.
        memo.length = bytes.len() as u8;
        Ok(memo)
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns whether the memo has no bytes. This is the case until a holder writes one.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The empty memo.
impl Default for Memo {
    fn default() -> Self {
        Self { bytes: [0; Self::MAX_LENGTH], length: 0 }
    }
}

impl AsRef<[u8]> for Memo {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// Prints the bytes as text, with escapes for those that aren't ASCII.
impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memo(\"{}\")", self.as_bytes().escape_ascii())
    }
}

/// Why bytes aren't a [`Memo`]: there are too many.
///
/// The example of [`Memo`] displays one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a memo of {length} bytes is longer than {}: store the data elsewhere, and its position in the memo",
    Memo::MAX_LENGTH
)]
#[non_exhaustive]
pub struct MemoTooLong {
    /// How many bytes there are.
    pub length: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memo_has_up_to_64_bytes() {
        for length in [0, 1, 63, 64] {
            let bytes: Vec<_> = (0..length).map(|byte| byte as u8).collect();
            let memo = Memo::new(&bytes).unwrap();
            assert_eq!(memo.as_bytes(), bytes);
            assert_eq!(memo.is_empty(), length == 0);
        }
        for length in [65, 1_000] {
            assert_eq!(Memo::new(vec![0; length]), Err(MemoTooLong { length }));
        }
    }

    #[test]
    fn a_memo_is_printed_as_text() {
        assert_eq!(
            format!("{:?}", Memo::new(b"7 \"x\"\0\xff").unwrap()),
            r#"Memo("7 \"x\"\x00\xff")"#
        );
        assert_eq!(format!("{:?}", Memo::default()), "Memo(\"\")");
    }

    #[test]
    fn memos_of_different_lengths_differ() {
        assert_ne!(Memo::new([0]).unwrap(), Memo::new([0, 0]).unwrap());
        assert_eq!(Memo::new([]).unwrap(), Memo::default());
    }
}
