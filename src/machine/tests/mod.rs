//! The rules of supervision, each as a transcript of what a machine did.

mod dynamic;
mod otp_scale;
mod properties;
mod requests;
mod scenarios;
