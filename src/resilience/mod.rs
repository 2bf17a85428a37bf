//! Retries and circuit breakers for single calls.
//!
//! [`retry`] repeats a call until it succeeds or its policy, a [`Retry`], ends the attempts. A
//! [`CircuitBreaker`] refuses calls to a service that keeps failing. Neither needs a supervisor, and the
//! two can be combined. A task that runs as long as the program belongs under a supervisor instead.
//!
//! ```
//! use std::time::Duration;
//!
//! use verger::resilience::{CallError, CircuitBreaker, Retry, retry};
//!
//! async fn price() -> Result<u32, &'static str> {
//!     Ok(42)
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let prices = CircuitBreaker::new("prices");
//! let policy = Retry::new()
//!     .attempts(4)
//!     .delay(Duration::from_millis(200))
//!     // While the circuit is open, a further attempt would be refused as well.
//!     .again_if(|error, _attempt| !matches!(error, CallError::Open { .. }));
//! let price = retry(policy, || prices.call(price)).await;
//! assert_eq!(price, Ok(42));
//! # }
//! ```

// The rules of a breaker are in `circuit`, and the delays of a retry in `policy`. The other files make the calls and the waits.

mod circuit;
mod circuit_breaker;
mod retry;
#[cfg(feature = "serde")]
mod serde;

pub use self::circuit::CircuitState;
pub use self::circuit_breaker::{CallError, CircuitBreaker};
pub use self::retry::{Retry, RetryError, RetryProblem, retry};
