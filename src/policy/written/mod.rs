//! How policies are written in files, as tables and words.
//!
//! Whoever reads one has one that can work: what has no meaning, or would be ignored, is an error
//! that says what to write. What is code (questions about errors, curves of one's own) is written by
//! its name and can't be read. A backoff says the same of itself in its own module.

mod dead_letter_log;
mod intensity;
mod on_exhausted;
mod restart_policy;
#[cfg(test)]
mod tests;
mod trigger;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}
