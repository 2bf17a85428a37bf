//! How a backoff is spread, and when it begins again: a number or a word, or more than that.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Lit, Result};

use crate::advice::instead;
use crate::made::Made;
use crate::number::float;
use crate::settings::{Kind, Known, Settings};
use crate::value::{Value, lone_word, word};
use crate::words::{JITTER, RESET};

const A_FRACTION: &str = "a number from 0 to 1";
const FRACTION: Kind = Kind::Float { allowed: is_fraction, text: A_FRACTION };

fn is_fraction(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}

const EXAMPLE: &str = "jitter(symmetric = 0.2)";

/// The kinds that are not one word, each with its variant.
static KINDS: &[(Known, &str)] = &[
    (Known { name: "symmetric", kind: FRACTION, example: "symmetric = 0.2" }, "Symmetric"),
    (Known { name: "additive", kind: FRACTION, example: "additive = 0.2" }, "Additive"),
    (
        Known {
            name: "additive_abs",
            kind: Kind::Duration { zero: true },
            example: r#"additive_abs = "1s""#,
        },
        "AdditiveAbs",
    ),
];

/// What stands in `jitter(…)`.
pub(crate) fn in_parentheses(input: ParseStream<'_>, key: Span) -> Result<Value> {
    let settings = Settings::parse(input, EXAMPLE, |key| {
        let name = key.to_string();
        let known = KINDS.iter().map(|(known, _)| known);
        known.clone().find(|known| known.name == name).ok_or_else(|| {
            let message = match JITTER.variant(&name) {
                Some(_) => {
                    format!("this kind of jitter needs nothing; write `jitter = \"{name}\"`")
                }
                None => {
                    let names: Vec<_> = known.map(|known| known.name).collect();
                    format!("unknown jitter `{name}`; {}", instead(&name, &names))
                }
            };
            Error::new(key.span(), message)
        })
    })?;
    let only = settings.only(key, EXAMPLE)?;
    let kind = KINDS.iter().find(|(known, _)| known.name == only.known.name);
    let variant = kind.map_or("", |(_, variant)| variant);
    Ok(Made::new("Jitter", variant, only.key.span(), only.values).into())
}

/// What stands behind `jitter = `.
pub(crate) fn after_equals(key: &Known, expr: Expr) -> Result<Value> {
    let text = match &expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => lone_word(&expr).filter(|word| JITTER.variant(word).is_some()),
    };
    let Some(text) = text else {
        return float(key.name, key.example, is_fraction, A_FRACTION, expr);
    };
    let message = match KINDS.iter().find(|(known, _)| known.name == text) {
        Some((known, _)) => {
            format!("this kind of jitter needs a value; write `jitter({})`", known.example)
        }
        None if humantime::parse_duration(&text).is_ok() => {
            format!("a time is a kind of its own; write `jitter(additive_abs = \"{text}\")`")
        }
        None => return word(&JITTER, key.name, expr),
    };
    Err(Error::new_spanned(expr, message))
}

/// One of what stands behind `reset = `.
pub(crate) fn reset(expr: Expr) -> Result<Value> {
    if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &expr
        && humantime::parse_duration(&text.value()).is_ok()
    {
        // Meant for how long it has to be well.
        let message = format!("`reset` is not a time; write `reset_after = \"{}\"`", text.value());
        return Err(Error::new_spanned(expr, message));
    }
    word(&RESET, "reset", expr)
}
