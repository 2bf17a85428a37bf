//! Conformance: the same scenarios on a real Erlang/OTP and on verger come to the same.
//!
//! Without Erlang, `cargo test --test conformance` replays what was recorded on one. With it,
//!
//! ```text
//! VERGER_CONFORMANCE_SEED=1 VERGER_CONFORMANCE_CASES=1000 \
//!     cargo test --release --test conformance live -- --nocapture
//! ```
//!
//! makes new ones, runs them on both and compares. What differs is shrunk and shown.

mod cases;
mod child;
mod compare;
mod deviations;
mod erlang;
mod generate;
mod live;
mod otp;
mod recorded;
mod scenario;
mod shrink;
mod verger;
