//! Children that run on one machine at a time, guarded by leases.
//!
//! A child with a [`Lease`] runs only while its lease is granted. Until then it is on *standby*: `discovered`, ready,
//! and not a failure. If the lease is lost or can't be renewed in time, the child is stopped, and is on standby again.
//! That is no failure either, and costs no restart.
//!
//! The leases themselves are those of an existing store, which a [`LeaseEngine`] asks.
//!
//! | file | what |
//! | --- | --- |
//! | `engine` | what an engine is asked and answers |
//! | `times` | how long a lease lasts, and when its guard acts |
//! | `spec` | the lease of a child |
//! | `file` | the engine for one machine |
//! | `postgres` | the engine for PostgreSQL |

mod engine;
#[cfg(unix)]
mod file;
#[cfg(feature = "lease-postgres")]
mod postgres;
mod spec;
mod times;

pub use self::engine::{Acquired, Claim, FencingToken, LeaseEngine, LeaseError, Released, Renewed};
#[cfg(unix)]
pub use self::file::File;
#[cfg(feature = "lease-postgres")]
pub use self::postgres::{Fenced, Postgres, fence};
pub use self::spec::Lease;
