//! Parsing: the tokens of an attribute become keys with values.

mod args;
mod backoff;
mod input;
mod literal;
mod value;

pub(crate) use args::{Arg, Args};
pub(crate) use backoff::Backoff;
pub(crate) use value::Value;
