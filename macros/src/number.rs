//! Numbers behind a key or a setting: within what is allowed, as far as that can be seen here.

use std::ops::RangeInclusive;

use proc_macro2::Literal;
use quote::ToTokens;
use syn::{Error, Expr, ExprLit, ExprUnary, Lit, Result, UnOp};

use crate::value::Value;

/// A whole number in a range, or an expression.
pub(crate) fn number(
    key: &str,
    example: &str,
    range: &RangeInclusive<u32>,
    expr: Expr,
) -> Result<Value> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => match number.base10_parse::<u32>() {
            Ok(value) if range.contains(&value) => Ok(Value::Number(number)),
            Ok(value) if value < *range.start() => {
                let message = format!("`{key}` is at least {}; write `{example}`", range.start());
                Err(Error::new_spanned(number, message))
            }
            _ => {
                let message = format!("`{key}` is at most {}; write a smaller number", range.end());
                Err(Error::new_spanned(number, message))
            }
        },
        Expr::Unary(negative) if is_negative(&negative) => {
            let message = format!("`{key}` can't be negative; write `{example}`");
            Err(Error::new_spanned(negative, message))
        }
        Expr::Lit(lit) => {
            Err(Error::new_spanned(lit, format!("write a whole number: `{example}`")))
        }
        expr => Ok(Value::Expression(expr)),
    }
}

/// A number, or an expression. A whole number becomes a float, as the builder's methods want it.
pub(crate) fn float(
    key: &str,
    example: &str,
    allowed: fn(f64) -> bool,
    text: &str,
    expr: Expr,
) -> Result<Value> {
    let wrong = |tokens: &dyn ToTokens| {
        let message = format!("`{key}` is {text}; write `{example}`");
        Err(Error::new_spanned(tokens.to_token_stream(), message))
    };
    match &expr {
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => match number.base10_parse() {
            Ok(value) if allowed(value) => Ok(Value::Expression(expr)),
            _ => wrong(&expr),
        },
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => match number.base10_parse::<f64>() {
            Ok(value) if allowed(value) => {
                let mut float = Literal::f64_unsuffixed(value);
                float.set_span(number.span());
                syn::parse2(float.to_token_stream()).map(Value::Expression)
            }
            _ => wrong(&expr),
        },
        Expr::Lit(_) => wrong(&expr),
        Expr::Unary(negative) if is_negative(negative) => wrong(&expr),
        _ => Ok(Value::Expression(expr)),
    }
}

/// A number with a minus; anything else behind one is an expression.
pub(crate) fn is_negative(unary: &ExprUnary) -> bool {
    matches!((&unary.op, &*unary.expr), (UnOp::Neg(_), Expr::Lit(_)))
}
