//! The crate that `compiler.rs` compiles: the programs that it listed. None of them compiles, so no other command builds it.
#![allow(dead_code, reason = "a program may not use all that it declares")]

include!("listed.rs");
