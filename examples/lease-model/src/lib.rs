//! A model of the lease row: see `README.md`.

pub mod model;
pub mod process;
pub mod row;
