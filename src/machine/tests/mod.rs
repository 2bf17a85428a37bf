//! The rules of supervision, each as a transcript of what a machine did.

mod dynamic;
mod properties;
mod requests;
mod scenarios;
