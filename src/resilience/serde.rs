//! The serialised form of the state of a circuit breaker.

use super::CircuitState;
use crate::serde::serialize;

serialize!(CircuitState: Closed as closed, Open as open, HalfOpen as half_open);
