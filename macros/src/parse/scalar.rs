//! Durations and numbers. A literal is checked here, any other expression by the compiler.

use std::time::Duration;

use proc_macro2::{Literal, Span};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, ExprUnary, Lit, LitStr, Result, UnOp, parse_quote};

use super::input::text;
use crate::errors::fail;
use crate::keys::Usage;

#[derive(Clone)]
pub(crate) enum Scalar {
    Duration(Duration, Span),
    Expression(Expr),
}

impl Scalar {
    /// Parses a duration in quotes, or an expression of type `Duration`.
    pub(super) fn duration(usage: Usage<'_>, zero: bool, expr: Expr) -> Result<Self> {
        let Usage { name, example } = usage;
        refuse_negative(usage, &expr)?;
        if let Some(text) = text(&expr) {
            let duration = duration(text, example, "")?;
            if duration.is_zero() && !zero {
                return fail(text, format!("`{name}` can't be zero; write `{example}`"));
            }
            return Ok(Self::Duration(duration, text.span()));
        }
        let Expr::Lit(literal) = &expr else { return Ok(Self::Expression(expr)) };
        let message = match &literal.lit {
            Lit::Int(number) => without_unit(number.base10_digits(), example),
            Lit::Float(number) => without_unit(number.base10_digits(), example),
            _ => format!("write a duration: `{example}`"),
        };
        fail(literal, message)
    }
}

/// Parses a whole number of at least `min`, or an expression.
pub(super) fn number(usage: Usage<'_>, min: u32, expr: Expr) -> Result<Expr> {
    let Usage { name, example } = usage;
    refuse_negative(usage, &expr)?;
    let Expr::Lit(literal) = &expr else { return Ok(expr) };
    let message = match &literal.lit {
        Lit::Int(number) => match number.base10_parse::<u32>() {
            Ok(value) if value >= min => return Ok(expr),
            Ok(_) => format!("`{name}` is at least {min}; write `{example}`"),
            Err(_) => format!("`{name}` is at most {}; write a smaller number", u32::MAX),
        },
        _ => format!("write a whole number: `{example}`"),
    };
    fail(literal, message)
}

/// Parses a number that may have a fraction, or an expression. `what` describes the allowed ones.
pub(super) fn fraction(
    usage: Usage<'_>,
    allowed: fn(f64) -> bool,
    what: &str,
    expr: Expr,
) -> Result<Expr> {
    let Usage { name, example } = usage;
    let literal = match &expr {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse().ok(),
        Expr::Lit(_) => None,
        _ if is_negative(&expr) => None,
        _ => return Ok(expr),
    };
    let Some(value) = literal.filter(|value| allowed(*value)) else {
        return fail(expr, format!("`{name}` is {what}; write `{example}`"));
    };
    let mut float = Literal::f64_unsuffixed(value);
    float.set_span(expr.span());
    Ok(parse_quote!(#float))
}

/// Parses the text of a duration. `or` says what else could be written.
pub(super) fn duration(text: &LitStr, example: &str, or: &str) -> Result<Duration> {
    let value = text.value();
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

/// Returns the error for a number without a unit.
fn without_unit(number: &str, example: &str) -> String {
    let seconds = match number.parse::<f64>().map(Duration::try_from_secs_f64) {
        Ok(Ok(duration)) if duration.subsec_nanos() == 0 => format!("{}s", duration.as_secs()),
        Ok(Ok(duration)) => humantime::format_duration(duration).to_string(),
        _ => return format!("`{number}` is not a duration; write `{example}`"),
    };
    format!("`{number}` has no unit; write `\"{seconds}\"` for that many seconds")
}

fn refuse_negative(Usage { name, example }: Usage<'_>, expr: &Expr) -> Result<()> {
    if is_negative(expr) {
        return fail(expr, format!("`{name}` can't be negative; write `{example}`"));
    }
    Ok(())
}

/// Returns whether it is a number with a minus, and no other expression behind one.
fn is_negative(expr: &Expr) -> bool {
    let Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) = expr else { return false };
    matches!(**expr, Expr::Lit(_))
}
