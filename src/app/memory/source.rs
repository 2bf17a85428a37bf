//! Where a guard gets the usage from.

use std::io;

use super::usage::MemoryUsage;

/// Where a [`MemoryGuard`](super::MemoryGuard) gets the memory usage from.
///
/// Implement it where the limit isn't a cgroup's or the machine's: for an allocator that counts, for another
/// operating system, or for a test. Closures implement it.
///
/// ```
/// use std::io;
///
/// use verger::app::memory::{MemoryGuard, MemorySource, MemoryUsage};
///
/// /// A budget for the cache.
/// struct CacheBudget;
///
/// impl MemorySource for CacheBudget {
///     fn usage(&self) -> io::Result<MemoryUsage> {
///         Ok(MemoryUsage::new(300 << 20, 512 << 20))
///     }
/// }
///
/// let guard = MemoryGuard::new().source(CacheBudget).restart("cache");
/// # guard.check().unwrap();
/// ```
pub trait MemorySource: Send + Sync {
    /// Returns the current usage. Called in a task, so it must not block for long.
    ///
    /// # Errors
    ///
    /// The first error is logged. The guard calls the source again after its period.
    fn usage(&self) -> io::Result<MemoryUsage>;
}

impl<F: Fn() -> io::Result<MemoryUsage> + Send + Sync> MemorySource for F {
    fn usage(&self) -> io::Result<MemoryUsage> {
        self()
    }
}
