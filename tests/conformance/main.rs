//! Conformance: the same scenarios on a real Erlang/OTP and on verger come to the same.
//!
//! ```text
//! VERGER_CONFORMANCE_SEED=1 VERGER_CONFORMANCE_CASES=1000 \
//!     cargo test --release --test conformance live -- --nocapture
//! ```
//!
//! makes some, runs them on both and compares. What differs is shrunk and shown.

mod child;
mod compare;
mod deviations;
mod erlang;
mod generate;
mod live;
mod otp;
mod scenario;
mod shrink;
mod verger;
