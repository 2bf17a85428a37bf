//! The program with real processes. Each of them has a variable of its test in its environment, so that what is left of
//! it can be found in `/proc`.

#![cfg(target_os = "linux")]

mod files;
mod lifecycle;
mod program;
mod reload;
