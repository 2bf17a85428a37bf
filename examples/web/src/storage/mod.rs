//! The database: the child that opens it, the pool that it provides, and what is stored.

pub(crate) mod cleanup;
pub(crate) mod database;
pub(crate) mod notes;
pub(crate) mod pool;
