//! Shards, and the keys that belong to them.

use std::fmt;

/// A shard: one of the parts that a [`Sharded`](super::Sharded) service consists of.
///
/// ```
/// use verger::lease::Shard;
///
/// let shard = Shard::of("alice", 16);
/// assert_eq!(shard, Shard::of("alice", 16));
/// assert!(shard.number() < 16);
/// assert_eq!(Shard::of(&7_u8, 16), Shard::of(&7_u64, 16), "a number has one shard, whatever its type");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(usize);

impl Shard {
    pub(super) const fn new(number: usize) -> Self {
        Self(number)
    }

    /// Returns the shard that the key belongs to, if there are this many.
    ///
    /// It is the same in each process, on each machine, and in each version of this crate. It is the
    /// [hash](ShardKey::stable_hash) of the key modulo the number of shards, so with a different number of shards, most
    /// keys belong to a different one.
    ///
    /// # Panics
    ///
    /// If `shards` is 0.
    #[must_use]
    pub fn of<K: ShardKey + ?Sized>(key: &K, shards: usize) -> Self {
        assert!(shards > 0, "no key belongs to one of 0 shards");
        // Below a `usize`.
        Self((key.stable_hash() % shards as u64) as usize)
    }

    /// Returns the number of the shard, from 0.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }
}

/// Prints the number.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A key that belongs to a [`Shard`].
///
/// Implemented for integers, strings and bytes. Implement it for a key of your own with the hash of the part that
/// identifies it:
///
/// ```
/// use verger::lease::{Shard, ShardKey};
///
/// struct Account {
///     id: u64,
/// }
///
/// impl ShardKey for Account {
///     fn stable_hash(&self) -> u64 {
///         self.id.stable_hash()
///     }
/// }
///
/// assert_eq!(Shard::of(&Account { id: 7 }, 16), Shard::of(&7_u64, 16));
/// ```
pub trait ShardKey {
    /// Returns a hash of the key that never changes.
    ///
    /// Members compute it independently of each other, so it must not depend on the process, the machine or the version
    /// of the program. A [`Hasher`](std::hash::Hasher) of the standard library promises none of that.
    ///
    /// The hash of a string is FNV-1a of its UTF-8 bytes with 64 bits, and that of an integer FNV-1a of its 16 bytes as an
    /// `i128`, the lowest byte first (a `u128` as it is). Both are then mixed by the finalizer of SplitMix64.
    fn stable_hash(&self) -> u64;
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl ShardKey for $integer {
            fn stable_hash(&self) -> u64 {
                hash(&(*self as i128).to_le_bytes())
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, i128, isize);

impl ShardKey for u128 {
    fn stable_hash(&self) -> u64 {
        hash(&self.to_le_bytes())
    }
}

impl ShardKey for [u8] {
    fn stable_hash(&self) -> u64 {
        hash(self)
    }
}

impl ShardKey for str {
    fn stable_hash(&self) -> u64 {
        self.as_bytes().stable_hash()
    }
}

impl ShardKey for String {
    fn stable_hash(&self) -> u64 {
        self.as_str().stable_hash()
    }
}

impl<K: ShardKey + ?Sized> ShardKey for &K {
    fn stable_hash(&self) -> u64 {
        (**self).stable_hash()
    }
}

/// Mixes the bits of a number: the finalizer of SplitMix64.
///
/// This hash and the next one are the same in each process, on each machine and in each version. Members of different
/// versions have to agree about them, so neither may ever change.
pub(super) const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns the hash of these bytes: FNV-1a with 64 bits, mixed.
fn hash(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(fnv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_of_a_key_never_changes() {
        let numbers = |keys: &[&dyn ShardKey]| {
            keys.iter().map(|key| Shard::of(*key, 1_000).number()).collect::<Vec<_>>()
        };
        let keys = numbers(&[&"", &"alice", &"bob", &0_u8, &7_u64, &-1_i64]);
        assert_eq!(keys, [8, 941, 156, 117, 188, 367]);
    }

    #[test]
    fn a_key_of_any_type_has_one_shard() {
        assert_eq!("a".stable_hash(), "a".to_owned().stable_hash());
        assert_eq!("a".stable_hash(), b"a"[..].stable_hash());
        assert_eq!(7_u8.stable_hash(), 7_i128.stable_hash());
        assert_eq!((-7_i8).stable_hash(), (-7_isize).stable_hash());
        assert_eq!(7_u128.stable_hash(), 7_u8.stable_hash());
        assert_ne!((-1_i8).stable_hash(), u8::MAX.stable_hash());
    }

    #[test]
    fn keys_are_spread_evenly() {
        let mut counts = [0_u32; 16];
        for key in 0..16_000_u32 {
            counts[Shard::of(&key, 16).number()] += 1;
            counts[Shard::of(&format!("user-{key}"), 16).number()] += 1;
        }
        assert!(counts.iter().all(|count| (1_800..2_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_hashes_never_change() {
        // SplitMix64 with the seed 0 begins with this number.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(1), 0x910a_2dec_8902_5cc1);
        assert_eq!(hash(b""), mix(0xcbf2_9ce4_8422_2325));
        // A test vector of FNV-1a.
        assert_eq!(hash(b"foobar"), mix(0x8594_4171_f739_67e8));
    }
}
