//! Conformance: the same scenarios have the same traces on a real Erlang/OTP and on verger.
//!
//! Without Erlang, `cargo test --test conformance` replays recorded traces. With Erlang,
//!
//! ```text
//! VERGER_CONFORMANCE_SEED=1 VERGER_CONFORMANCE_CASES=1000 \
//!     cargo test --release --test conformance live -- --nocapture
//! ```
//!
//! generates new scenarios, runs them on both and compares. Differences are shrunk and shown.

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
