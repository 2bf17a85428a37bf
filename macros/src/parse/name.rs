//! Names of children, in quotes.

use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Result};

use super::input::{expression, lone_word, several};
use crate::keys::Usage;

/// The longest name that `build()` accepts, in bytes.
const MAX_NAME: usize = 255;

/// Parses the name of a child.
pub(super) fn name(input: ParseStream<'_>, usage: Usage) -> Result<LitStr> {
    let otherwise = || format!("a name is written out, in quotes, as in `{}`", usage.example);
    literal(expression(input)?, otherwise).and_then(check)
}

/// Parses the names of siblings: one, or several in brackets.
pub(super) fn names(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    several(input, |input| {
        literal(expression(input)?, || "write the name of a sibling, in quotes".to_owned())
    })
}

fn literal(expr: Expr, otherwise: impl FnOnce() -> String) -> Result<LitStr> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => Ok(name),
        expr => {
            let message = match lone_word(&expr) {
                Some(word) => format!("put the name in quotes: `\"{word}\"`"),
                None => otherwise(),
            };
            Err(Error::new_spanned(expr, message))
        }
    }
}

/// Refuses a name that `build()` would refuse.
fn check(name: LitStr) -> Result<LitStr> {
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
    Err(Error::new(name.span(), format!("this name {problem}; write one like \"db\"")))
}
