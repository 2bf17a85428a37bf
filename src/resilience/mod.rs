//! Around calls, not children: try again, or don't try for a while.
//!
//! The rules are in `policy`; here is what waits, and what calls. No supervisor is needed.

mod circuit_breaker;
mod retry;

pub use self::circuit_breaker::{CallError, CircuitBreaker};
pub use self::retry::{Retry, retry};
