//! The service as a process: what breaks, what goes on, and how it ends.

#![cfg(unix)]

mod database;
mod program;
mod reload;
mod requests;
mod start;
mod stop;
