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
//! | `clock` | the time, with that of suspends |
//! | `spec` | the lease of a child |
//! | `change` | what a keeper reports |
//! | `guard` | the rules: what to ask next, and what an answer means |
//! | `call` | calls of the user's code |
//! | `keeper` | carries out what the guard decides |

mod call;
mod change;
mod clock;
mod engine;
mod guard;
mod keeper;
mod spec;
mod times;

pub use self::engine::{Acquired, Claim, FencingToken, LeaseEngine, LeaseError, Released, Renewed};
pub use self::spec::Lease;
pub use self::times::LeaseProblem;
#[expect(unused_imports, reason = "the driver will use them")]
pub(crate) use self::{
    change::{LeaseChange, LeaseEnd, LossReason},
    keeper::keep,
};
