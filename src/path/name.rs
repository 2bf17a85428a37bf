//! Rules for the names of children.

use crate::invisible::is_invisible;
use crate::start_of::start_of;

/// The longest name, in bytes.
const MAX_NAME: usize = 255;

/// Checks the name of a declared child or supervisor.
///
/// # Errors
///
/// Names the problem and suggests a valid name.
pub(crate) fn check_name(name: &str) -> Result<(), NameProblem> {
    // Most names are plain ASCII, and every child that is added at run time is checked.
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'#');
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    let problem = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME {
        "is longer than 255 bytes"
    } else if name.bytes().any(|byte| byte == b'/') {
        "contains `/`, which separates the names in a path"
    } else if name.bytes().any(|byte| byte == b'#') {
        "contains `#`, which comes before the serial number of a dynamic child"
    } else if name.trim() != name {
        "begins or ends with white space"
    } else if name.contains(char::is_control) {
        "contains a control character"
    } else if name.contains(is_invisible) {
        "contains a character that can't be seen"
    } else {
        return Ok(());
    };
    let name =
        if name.len() > MAX_NAME { start_of(name, 40).to_owned() + "…" } else { name.to_owned() };
    Err(NameProblem { instead: repaired(&name), name, problem })
}

/// Returns a similar name that is valid, for a name within the length limit.
fn repaired(name: &str) -> String {
    let barred = |c: char| matches!(c, '/' | '#') || is_invisible(c);
    match name.trim() {
        "" => "worker".to_owned(),
        name => name.chars().map(|c| if barred(c) { '-' } else { c }).collect(),
    }
}

/// The reason why a name is invalid, with a valid name to use instead.
///
/// ```
/// use verger::{BuildError, Supervisor};
///
/// let error = Supervisor::builder("a/b").build().unwrap_err();
/// let BuildError::BadName { problem, .. } = error else { panic!("{error}") };
/// println!("{problem}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name {name:?} {problem}; write {instead:?}, for example")]
pub struct NameProblem {
    name: String,
    problem: &'static str,
    pub(super) instead: String,
}
