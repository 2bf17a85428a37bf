//! The serialised form of the number of a lease.

use super::FencingToken;
use crate::serde::serialize;

serialize!(|token: FencingToken| token.get());
