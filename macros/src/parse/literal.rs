//! Literals: durations, numbers, names and paths of sections. Any other expression is left to the compiler.

use std::time::Duration;

use proc_macro2::Literal;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Result, parse_quote};

use super::input::{lone_word, text};
use super::value::Value;
use crate::errors::fail;
use crate::keys::Key;

/// Parses a duration in quotes, or an expression of type `Duration`.
pub(super) fn duration(key: &Key, zero: bool, expr: Expr) -> Result<Value> {
    let Key { name, example, .. } = key;
    let number = match &expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            let duration = duration_text(text, example, "")?;
            if duration.is_zero() && !zero {
                return fail(text, format!("`{name}` can't be zero; write `{example}`"));
            }
            return Ok(Value::Duration(duration, text.span()));
        }
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_digits(),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_digits(),
        _ => return no_literal("a duration", key, expr).map(Value::Expression),
    };
    fail(&expr, without_unit(number, example))
}

/// Parses the text of a duration. `or` says what else could be written.
pub(super) fn duration_text(text: &LitStr, example: &str, or: &str) -> Result<Duration> {
    let value = text.value();
    if is_too_long(&value) {
        let message = format!("`{value}` is too long for a duration; write `{example}`");
        return Err(Error::new(text.span(), message));
    }
    humantime::parse_duration(&value).map_err(|_| {
        let message = if value.parse::<f64>().is_ok_and(|number| number >= 0.0) {
            without_unit(&value, example)
        } else {
            format!(
                "`{value}` is not a duration; write numbers with units, as in \"200ms\", \"5s\" or \
                 \"1m 30s\"{or}, for example `{example}`",
            )
        };
        Error::new(text.span(), message)
    })
}

/// Whether the parts of a duration are too long together. humantime panics for some of these.
fn is_too_long(text: &str) -> bool {
    let (mut rest, mut sum) = (text, Some(Duration::ZERO));
    while !rest.is_empty() {
        // A part ends with its unit.
        let unit = rest.find(char::is_alphabetic).unwrap_or(rest.len());
        let length = rest[unit..].find(|letter: char| !letter.is_alphabetic());
        let (part, next) = rest.split_at(length.map_or(rest.len(), |length| unit + length));
        let part = humantime::parse_duration(part).unwrap_or_default();
        (rest, sum) = (next, sum.and_then(|sum| sum.checked_add(part)));
    }
    sum.is_none()
}

/// Returns the error for a number without a unit.
fn without_unit(number: &str, example: &str) -> String {
    let seconds = match number.parse::<f64>().map(Duration::try_from_secs_f64) {
        Ok(Ok(duration)) if duration.subsec_nanos() == 0 => format!("{}s", duration.as_secs()),
        Ok(Ok(duration)) => humantime::format_duration(duration).to_string(),
        _ => return format!("`{number}` is not a duration; write `{example}`"),
    };
    format!("`{number}` has no unit; write `\"{seconds}\"` for that many seconds")
}

/// Parses a whole number of at least `min`, or an expression.
pub(super) fn number(key: &Key, min: u32, expr: Expr) -> Result<Expr> {
    let Key { name, example, .. } = key;
    let Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) = &expr else {
        return no_literal("a whole number", key, expr);
    };
    match number.base10_parse::<u32>() {
        Ok(value) if value >= min => Ok(expr),
        Ok(_) => fail(number, format!("`{name}` is at least {min}; write `{example}`")),
        Err(_) => fail(number, format!("`{name}` is at most {}; write a smaller number", u32::MAX)),
    }
}

/// Parses a number from `min` to `max` that may have a fraction, or an expression.
pub(super) fn fraction(key: &Key, (min, max): (f64, f64), what: &str, expr: Expr) -> Result<Expr> {
    let Key { name, example, .. } = key;
    let number: Option<f64> = match &expr {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse().ok(),
        Expr::Lit(_) => None,
        _ => return Ok(expr),
    };
    let Some(value) = number.filter(|value| (min..=max).contains(value)) else {
        return fail(expr, format!("`{name}` is {what}; write `{example}`"));
    };
    let mut float = Literal::f64_unsuffixed(value);
    float.set_span(expr.span());
    Ok(parse_quote!(#float))
}

/// Checks the name of a child, and refuses one that `build()` would refuse.
pub(super) fn name(key: &Key, expr: &Expr) -> Result<LitStr> {
    let otherwise = format!("a name is written out, in quotes, as in `{}`", key.example);
    let name = name_text(expr, &otherwise)?;
    let value = name.value();
    let problem = if value.is_empty() {
        "is empty"
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
    names.iter().map(|name| name_text(name, "write the name of a sibling, in quotes")).collect()
}

fn name_text(expr: &Expr, otherwise: &str) -> Result<LitStr> {
    match (text(expr), lone_word(expr)) {
        (Some(name), _) => Ok(name.clone()),
        (None, Some(word)) => fail(expr, format!("put the name in quotes: `\"{word}\"`")),
        (None, None) => fail(expr, otherwise),
    }
}

/// Checks the path of a section.
pub(super) fn section(key: &Key, expr: Expr) -> Result<Expr> {
    let expr = quoted("a path", key, expr)?;
    let Some(path) = text(&expr) else { return Ok(expr) };
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

/// Accepts a text in quotes, and any expression that isn't a literal.
pub(super) fn quoted(what: &str, key: &Key, expr: Expr) -> Result<Expr> {
    match text(&expr) {
        Some(_) => Ok(expr),
        None => no_literal(&format!("{what} in quotes"), key, expr),
    }
}

/// Accepts any expression that isn't a literal.
pub(super) fn no_literal(what: &str, key: &Key, expr: Expr) -> Result<Expr> {
    literal(what, |_| false, key, expr)
}

/// Accepts any expression, but only the literals that `is_one` accepts.
pub(super) fn literal(
    what: &str,
    is_one: impl FnOnce(&Lit) -> bool,
    key: &Key,
    expr: Expr,
) -> Result<Expr> {
    match expr {
        Expr::Lit(lit) if !is_one(&lit.lit) => {
            fail(lit, format!("write {what}: `{}`", key.example))
        }
        expr => Ok(expr),
    }
}
