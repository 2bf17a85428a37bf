//! The errors for mistakes in what the macros are given, and the programs that they accept.
//!
//! Each file in `fail` has one mistake and goes on to use the item with the mistake, so that its
//! message shows that one error and none that follows from it. The compiler's own messages are those of
//! Rust 1.95. `VERGER_UI=overwrite cargo test --all-features --test ui` writes the messages; read each as a user who made
//! the mistake. The programs in `config/fail` need the feature `config`, and those in `config/without` show what
//! its absence leads to.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `pass.rs` | the programs that compile |
//! | `fail.rs` | which programs don't, and where their messages stand |
//! | `compiler.rs` | how to compile many programs, and which message is about which of them |
//! | `message.rs` | how to write a message so that it is the same on every machine |
//! | `programs.rs` | the crate that the compiler reads; not a part of this one |
// These lints exist for crates only.
#![deny(
    future_incompatible,
    rust_2018_idioms,
    rust_2021_compatibility,
    rust_2024_compatibility,
    non_ascii_idents
)]
#![allow(
    missing_debug_implementations,
    missing_docs,
    unreachable_pub,
    reason = "a program turns on the lints that it is about"
)]

// Tests of the option `crate` need a second name.
extern crate verger as sup;

mod compiler;
mod fail;
mod message;
#[allow(
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "a program shows what is allowed, not what is tidy"
)]
pub mod pass;
