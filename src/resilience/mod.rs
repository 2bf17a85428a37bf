//! Retries and circuit breakers: resilience for single calls, without a supervisor.
//!
//! The rules are in `policy`. This module makes the calls and the waits.

mod circuit_breaker;
mod retry;

pub use self::circuit_breaker::{CallError, CircuitBreaker};
pub use self::retry::{Retry, retry};
pub use crate::policy::circuit::CircuitState;
