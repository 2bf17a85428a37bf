//! Keys, and the partitions that they belong to.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

/// A key that belongs to one of several partitions.
///
/// Implemented for the integer types, by their absolute value modulo the number of partitions, and for strings,
/// by their hash. Wrap every other type that implements [`Hash`] in [`ByHash`].
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use verger::task::PartitionKey;
///
/// let three = NonZeroUsize::new(3).unwrap();
/// assert_eq!(7_u64.partition(three), 1);
/// assert_eq!((-1_i32).partition(three), 1);
/// ```
pub trait PartitionKey {
    /// Returns the partition of the key, from 0 to one below `partitions`.
    ///
    /// A higher number is taken modulo `partitions`.
    fn partition(&self, partitions: NonZeroUsize) -> usize;
}

macro_rules! unsigned {
    ($($integer:ty),*) => {$(
        impl PartitionKey for $integer {
            fn partition(&self, partitions: NonZeroUsize) -> usize {
                modulo((*self).into(), partitions)
            }
        }
    )*};
}

macro_rules! signed {
    ($($integer:ty),*) => {$(
        impl PartitionKey for $integer {
            fn partition(&self, partitions: NonZeroUsize) -> usize {
                modulo(self.unsigned_abs().into(), partitions)
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64, u128);
signed!(i8, i16, i32, i64, i128);

impl PartitionKey for usize {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        *self % partitions
    }
}

impl PartitionKey for isize {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        self.unsigned_abs() % partitions
    }
}

impl PartitionKey for str {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        ByHash(self).partition(partitions)
    }
}

impl PartitionKey for String {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        self.as_str().partition(partitions)
    }
}

impl<K: PartitionKey + ?Sized> PartitionKey for &K {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        (**self).partition(partitions)
    }
}

/// Makes a [`PartitionKey`] of any value that implements [`Hash`].
///
/// The hash of a value is the same in the whole process, and in each process of the same program. It may differ
/// after an update of the compiler.
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use verger::task::{ByHash, PartitionKey};
///
/// let eight = NonZeroUsize::new(8).unwrap();
/// let key = ("device", 17);
/// assert_eq!(ByHash(&key).partition(eight), ByHash(&key).partition(eight));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ByHash<'a, T: ?Sized>(pub &'a T);

impl<T: Hash + ?Sized> PartitionKey for ByHash<'_, T> {
    fn partition(&self, partitions: NonZeroUsize) -> usize {
        // Its keys are always the same, unlike those of `RandomState`.
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        modulo(hasher.finish().into(), partitions)
    }
}

fn modulo(value: u128, partitions: NonZeroUsize) -> usize {
    let partitions = partitions.get() as u128;
    // Below a `usize`.
    (value % partitions) as usize
}
