//! What a store knows of a lease, and the few bytes that it keeps with one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::engine::FencingToken;

/// What a store knows of a lease: the answer of [`LeaseEngine::holder`](super::LeaseEngine::holder).
///
/// A lease is held or free. What is known besides depends on the store: one that locks a file has no expiry, and one that
/// is read through a replica may know no name.
///
/// Engines create a record with [`held`](Self::held) or [`free`](Self::free), and add what their store knows:
///
/// ```
/// use std::time::Duration;
///
/// use verger::lease::{FencingToken, LeaseRecord, Memo};
///
/// let record = LeaseRecord::held()
///     .with_holder("web-1/4711-5f2c08aa:app/billing")
///     .with_token(FencingToken::new(7))
///     .with_remaining(Duration::from_secs(9))
///     .with_memo(Memo::new("invoice 4711")?);
/// assert!(record.is_held());
/// assert_eq!(record.remaining(), Some(Duration::from_secs(9)));
///
/// let record = LeaseRecord::free();
/// assert_eq!((record.is_held(), record.holder()), (false, None));
/// assert!(record.memo().is_empty());
/// # Ok::<(), verger::lease::MemoTooLong>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    is_held: bool,
    holder: Option<Arc<str>>,
    token: Option<FencingToken>,
    remaining: Option<Duration>,
    memo: Memo,
}

impl LeaseRecord {
    /// Creates the record of a lease that nobody has.
    #[must_use]
    pub fn free() -> Self {
        Self { is_held: false, holder: None, token: None, remaining: None, memo: Memo::default() }
    }

    /// Creates the record of a lease that somebody has.
    #[must_use]
    pub fn held() -> Self {
        Self { is_held: true, ..Self::free() }
    }

    /// Adds the holder's name, as it is in [`Claim::holder`](super::Claim::holder).
    #[must_use]
    pub fn with_holder(mut self, holder: impl Into<Arc<str>>) -> Self {
        self.holder = Some(holder.into());
        self
    }

    /// Adds the token with which the lease was granted.
    #[must_use]
    pub fn with_token(mut self, token: FencingToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Adds the time until the lease expires if it isn't renewed, by the clock of the store.
    #[must_use]
    pub fn with_remaining(mut self, remaining: Duration) -> Self {
        self.remaining = Some(remaining);
        self
    }

    /// Adds the memo that was written last, even if the lease is free.
    #[must_use]
    pub fn with_memo(mut self, memo: Memo) -> Self {
        self.memo = memo;
        self
    }

    /// Returns whether somebody has the lease.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns the name of the holder. `None` if the lease is free, or if the store doesn't know it.
    ///
    /// [`Owner::of`](super::Owner::of) finds the address that the holder advertises.
    #[must_use]
    pub fn holder(&self) -> Option<&Arc<str>> {
        self.holder.as_ref()
    }

    /// Returns the token of the holder. `None` if the lease is free, or if the store doesn't know it.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.token
    }

    /// Returns the time until the lease expires, as it was when the store answered. `None` if the lease is free, if it doesn't
    /// expire, or if the store doesn't know it.
    ///
    /// It is a duration and no time of day, because the clocks of two machines differ. Holders renew their leases, so a
    /// lease is rarely free afterwards.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// Returns the memo that was written last. Empty if there was none.
    #[must_use]
    pub fn memo(&self) -> &Memo {
        &self.memo
    }
}

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
