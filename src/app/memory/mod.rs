//! Memory guards: act before the kernel kills the process.
//!
//! A process that reaches the memory limit of its container is killed at once, without a stop in order. A
//! [`MemoryGuard`] looks at the memory usage every few seconds and reports a [`MemoryPressure`] at 90 % of the
//! limit, so that the program can stop, or restart the part that leaks, while there is memory left.
//!
//! ```no_run
//! use verger::Supervisor;
//! use verger::app::memory::MemoryGuard;
//!
//! # async fn f(tree: Supervisor) -> Result<(), Box<dyn std::error::Error>> {
//! // Logs `shutting down child=app cause="memory at 92 % of 512 MiB (cgroup v2)"`.
//! tree.with_graceful_shutdown(MemoryGuard::new().watch()?).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Which limit applies
//!
//! The first of these that exists:
//!
//! 1. The cgroup v2 limit `memory.max` of the process's group, or of a group above it.
//! 2. The same in cgroup v1: `memory.limit_in_bytes`.
//! 3. The memory of the machine: `MemTotal`, of which `MemAvailable` is unused.
//!
//! Of several groups with a limit, the fullest one counts: its limit is reached first. A limit above the
//! memory of the machine is ignored. Page cache and kernel objects that the kernel takes back before it kills a process
//! (`inactive_file`, `active_file`, `slab_reclaimable`) are not counted as used. All of these files exist on Linux only. Elsewhere, set a
//! [`source`](MemoryGuard::source).
//!
//! # Invariants
//!
//! 1. A guard reads nothing before one period has passed, and then once in each period.
//! 2. The memory is under pressure if `used / limit >= threshold`. For the memory of the machine, twice in a row.
//! 3. A source that fails or panics never ends the guard. Its first failure is logged, and it is called
//!    again after each period.

mod guard;
mod usage;

pub use self::guard::{MemoryGuard, MemoryGuardProblem, MemoryPressure};
pub use self::usage::{MemoryLimit, MemorySource, MemoryUsage};
