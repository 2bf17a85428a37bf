//! Names of children, in quotes.

use syn::{Expr, LitStr, Result};

use super::input::{lone_word, text};
use crate::errors::fail;
use crate::keys::Usage;

/// The longest name that `build()` accepts, in bytes.
const MAX_NAME: usize = 255;

/// Checks the name of a child, and refuses one that `build()` would refuse.
pub(super) fn name(usage: Usage<'_>, expr: &Expr) -> Result<LitStr> {
    let otherwise = format!("a name is written out, in quotes, as in `{}`", usage.example);
    let name = literal(expr, &otherwise)?;
    let value = name.value();
    let problem = if value.is_empty() {
        "is empty"
    } else if value.len() > MAX_NAME {
        "is longer than 255 bytes"
    } else if value.contains(['/', '#']) {
        "contains `/` or `#`, which paths are made with"
    } else if value.trim() != value || value.contains(char::is_control) {
        "has white space around it, or a control character"
    } else {
        return Ok(name);
    };
    fail(name, format!("this name {problem}; write one like \"db\""))
}

/// Checks the names of siblings.
pub(super) fn siblings(names: &[Expr]) -> Result<Vec<LitStr>> {
    names.iter().map(|name| literal(name, "write the name of a sibling, in quotes")).collect()
}

fn literal(expr: &Expr, otherwise: &str) -> Result<LitStr> {
    match (text(expr), lone_word(expr)) {
        (Some(name), _) => Ok(name.clone()),
        (None, Some(word)) => fail(expr, format!("put the name in quotes: `\"{word}\"`")),
        (None, None) => fail(expr, otherwise),
    }
}
