//! Durations and numbers. A literal is checked here, any other expression by the compiler.

use std::time::Duration;

use proc_macro2::{Literal, Span};
use quote::ToTokens;
use syn::{Error, Expr, ExprLit, ExprUnary, Lit, LitInt, LitStr, Result, UnOp};

use crate::keys::Usage;

pub(crate) enum Scalar {
    Duration(Duration, Span),
    Number(LitInt),
    Expression(Expr),
}

impl Scalar {
    /// Parses a duration in quotes, or an expression of type `Duration`.
    pub(super) fn duration(usage: Usage, zero: bool, expr: Expr) -> Result<Self> {
        match Self::any_duration(usage, expr)? {
            Self::Duration(Duration::ZERO, span) if !zero => {
                let Usage { name, example } = usage;
                Err(Error::new(span, format!("`{name}` can't be zero; write `{example}`")))
            }
            scalar => Ok(scalar),
        }
    }

    fn any_duration(usage: Usage, expr: Expr) -> Result<Self> {
        let Usage { name, example } = usage;
        match expr {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                Ok(Self::Duration(duration(&text, example, "")?, text.span()))
            }
            Expr::Lit(ExprLit { lit: lit @ (Lit::Int(_) | Lit::Float(_)), .. }) => {
                let digits = match &lit {
                    Lit::Int(number) => number.base10_digits().to_owned(),
                    other => other.to_token_stream().to_string(),
                };
                Err(Error::new_spanned(lit, without_unit(&digits, example)))
            }
            Expr::Lit(lit) => {
                Err(Error::new_spanned(lit, format!("write a duration: `{example}`")))
            }
            Expr::Unary(negative) if is_negative(&negative) => {
                let message = format!("`{name}` can't be negative; write `{example}`");
                Err(Error::new_spanned(negative, message))
            }
            expr => Ok(Self::Expression(expr)),
        }
    }

    /// Parses a whole number of at least `min`, or an expression.
    pub(super) fn number(usage: Usage, min: u32, expr: Expr) -> Result<Self> {
        let Usage { name, example } = usage;
        match expr {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => {
                match number.base10_parse::<u32>() {
                    Ok(value) if value >= min => Ok(Self::Number(number)),
                    Ok(_) => {
                        let message = format!("`{name}` is at least {min}; write `{example}`");
                        Err(Error::new_spanned(number, message))
                    }
                    Err(_) => {
                        let max = u32::MAX;
                        let message = format!("`{name}` is at most {max}; write a smaller number");
                        Err(Error::new_spanned(number, message))
                    }
                }
            }
            Expr::Unary(negative) if is_negative(&negative) => {
                let message = format!("`{name}` can't be negative; write `{example}`");
                Err(Error::new_spanned(negative, message))
            }
            Expr::Lit(lit) => {
                Err(Error::new_spanned(lit, format!("write a whole number: `{example}`")))
            }
            expr => Ok(Self::Expression(expr)),
        }
    }

    /// Parses a number that may have a fraction, or an expression. `what` describes the allowed ones.
    pub(super) fn fraction(
        usage: Usage,
        allowed: fn(f64) -> bool,
        what: &str,
        expr: Expr,
    ) -> Result<Self> {
        let Usage { name, example } = usage;
        let literal = match &expr {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
            Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse().ok(),
            Expr::Lit(_) => None,
            Expr::Unary(negative) if is_negative(negative) => None,
            _ => return Ok(Self::Expression(expr)),
        };
        let Some(value) = literal.filter(|value| allowed(*value)) else {
            let message = format!("`{name}` is {what}; write `{example}`");
            return Err(Error::new_spanned(expr, message));
        };
        let mut float = Literal::f64_unsuffixed(value);
        if let Expr::Lit(literal) = &expr {
            float.set_span(literal.lit.span());
        }
        syn::parse2(float.to_token_stream()).map(Self::Expression)
    }
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

/// Returns whether it is a number with a minus, and no other expression behind one.
fn is_negative(unary: &ExprUnary) -> bool {
    matches!((&unary.op, &*unary.expr), (UnOp::Neg(_), Expr::Lit(_)))
}
