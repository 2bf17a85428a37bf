//! Parsing: the tokens of an attribute become keys with values.

mod args;
mod backoff;
mod config;
mod input;
mod name;
mod scalar;
mod value;

pub(crate) use args::{Arg, Args, Setting};
pub(crate) use backoff::Backoff;
#[cfg(test)]
pub(crate) use backoff::CURVES;
pub(crate) use scalar::Scalar;
pub(crate) use value::Value;
