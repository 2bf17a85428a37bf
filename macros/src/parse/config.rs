//! The type of a child's configuration, and the path of the section that it is read from.

use syn::parse::ParseStream;
use syn::{Expr, LitStr, Result, Token, Type, token};

use super::input::text;
use crate::errors::fail;
use crate::keys::Usage;

/// Parses a type, and refuses a value of it.
pub(super) fn config_type(usage: Usage<'_>, input: ParseStream<'_>) -> Result<Type> {
    if input.peek(LitStr) {
        return Err(input.error(format!("write a type, without quotes: `{}`", usage.example)));
    }
    let start = input.fork();
    let Ok(ty) = input.parse::<Type>() else {
        return Err(start.error(format!("write a type: `{}`", usage.example)));
    };
    if input.peek(token::Paren) || input.peek(token::Brace) || input.peek(Token![.]) {
        return fail(ty, format!("write the type alone: `{}`", usage.example));
    }
    Ok(ty)
}

/// Checks the path of a section. Any other expression is passed on.
pub(super) fn section(usage: Usage<'_>, expr: Expr) -> Result<Expr> {
    let example = usage.example;
    let Some(path) = text(&expr) else {
        return match &expr {
            Expr::Lit(lit) => fail(lit, format!("write a path in quotes: `{example}`")),
            _ => Ok(expr),
        };
    };
    let value = path.value();
    let problem = if value.is_empty() {
        "is empty"
    } else if value.contains('*') {
        "has a `*`, and a child reads one section only"
    } else if value.split('/').any(|name| name.trim() != name || name.is_empty()) {
        "has an empty name, or one with white space around it"
    } else {
        return Ok(expr);
    };
    fail(path, format!("this path {problem}; write one like \"storage\""))
}
