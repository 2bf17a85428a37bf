//! The value of a key.
//!
//! Words, durations and numbers are checked here. Any other expression is passed on as it is, and
//! the compiler checks its type.

use proc_macro2::Span;
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Pat, Path, Result};

use super::backoff::{self, Backoff};
use super::input::{expression, lone_word, several};
use super::name::{name, names};
use super::scalar::{Scalar, duration};
use crate::keys::{Key, Takes, Usage};
use crate::suggestion::{closest, instead};
use crate::words::WordTable;

pub(crate) enum Value {
    Word {
        words: &'static WordTable,
        variant: &'static str,
        span: Span,
    },
    Scalar(Scalar),
    Name(LitStr),
    Names(Vec<LitStr>),
    Backoff(Backoff),
    /// Several functions, each for a call of its own.
    Functions(Vec<Expr>),
    Path(Path),
    Expression(Expr),
}

impl Value {
    /// Parses what follows `key = `.
    pub(super) fn parse(key: &Key, input: ParseStream<'_>) -> Result<Self> {
        let usage = key.usage();
        match &key.takes {
            Takes::Word(words) => word(words, usage, expression(input)?),
            Takes::DurationOrWord(words) => duration_or_word(words, usage, expression(input)?),
            Takes::Duration { zero } => {
                Scalar::duration(usage, *zero, expression(input)?).map(Self::Scalar)
            }
            Takes::Number { min } => {
                Scalar::number(usage, *min, expression(input)?).map(Self::Scalar)
            }
            Takes::Name => name(input, usage).map(Self::Name),
            Takes::Names => names(input).map(Self::Names),
            Takes::Path if input.peek(LitStr) => {
                Err(input.error(format!("write a path, without quotes: `{}`", key.example)))
            }
            Takes::Path => Path::parse_mod_style(input).map(Self::Path),
            Takes::Backoff => {
                backoff::expression(expression(input)?, key.example).map(Self::Expression)
            }
            Takes::Functions => {
                several(input, |input| function_of_error(usage, expression(input)?))
                    .map(Self::Functions)
            }
            Takes::Expression(what) => {
                no_literal(what, usage, expression(input)?).map(Self::Expression)
            }
            Takes::Flag | Takes::Group(_) => Err(input.error("this key has no value")),
        }
    }
}

/// Parses one of `words` in quotes, or an expression of their type.
fn word(words: &'static WordTable, usage: Usage, expr: Expr) -> Result<Value> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => known(words, &text)
            .ok_or_else(|| Error::new(text.span(), unknown(words, usage, &text.value()))),
        Expr::Lit(lit) => {
            let message = unknown(words, usage, &lit.to_token_stream().to_string());
            Err(Error::new_spanned(lit, format!("{message}, in quotes")))
        }
        expr => match lone_word(&expr) {
            Some(word) if words.variant(&word).is_some() => {
                Err(Error::new_spanned(expr, in_quotes(usage, &word)))
            }
            Some(word) => Err(Error::new_spanned(expr, unknown(words, usage, &word))),
            None => Ok(Value::Expression(expr)),
        },
    }
}

/// Parses one of `words` or a duration in quotes, or an expression of a type that converts from both.
fn duration_or_word(words: &'static WordTable, usage: Usage, expr: Expr) -> Result<Value> {
    if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &expr {
        if let Some(word) = known(words, text) {
            return Ok(word);
        }
        let word = text.value();
        if closest(&word, &words.all()).is_some() {
            return Err(Error::new(text.span(), unknown(words, usage, &word)));
        }
        let all: Vec<_> = words.all().iter().map(|word| format!("\"{word}\"")).collect();
        let or = format!(", or {}", all.join(" or "));
        let duration = duration(text, usage.example, &or)?;
        return Ok(Value::Scalar(Scalar::Duration(duration, text.span())));
    }
    match lone_word(&expr) {
        Some(word) if words.variant(&word).is_some() => {
            Err(Error::new_spanned(expr, in_quotes(usage, &word)))
        }
        _ => Scalar::duration(usage, true, expr).map(Value::Scalar),
    }
}

fn unknown(words: &WordTable, usage: Usage, word: &str) -> String {
    let instead = match (closest(word, &words.all()), words.expression) {
        (None, Some(expression)) => {
            format!("{}, or an expression like `{expression}`", instead(word, &words.all()))
        }
        _ => instead(word, &words.all()),
    };
    match words.noun {
        Some(noun) => format!("unknown {noun} `{word}`; {instead}"),
        None => format!("`{}` can't be `{word}`; {instead}", usage.name),
    }
}

fn known(words: &'static WordTable, text: &LitStr) -> Option<Value> {
    let variant = words.variant(&text.value())?;
    Some(Value::Word { words, variant, span: text.span() })
}

fn in_quotes(usage: Usage, word: &str) -> String {
    format!("put it in quotes: `{} = \"{word}\"`", usage.name)
}

/// Parses a path or a closure. Its parameter needs a type, because the function is called only with
/// errors of that type.
fn function_of_error(usage: Usage, expr: Expr) -> Result<Expr> {
    if let Expr::Closure(closure) = &expr
        && let [param] = &*closure.inputs.iter().collect::<Vec<_>>()
        && !matches!(param, Pat::Type(_))
    {
        let message = format!("write the type of the error, as in `{}`", usage.example);
        return Err(Error::new_spanned(param, message));
    }
    no_literal("a function", usage, expr)
}

/// Accepts any expression that isn't a literal.
fn no_literal(what: &str, usage: Usage, expr: Expr) -> Result<Expr> {
    match expr {
        Expr::Lit(lit) => {
            Err(Error::new_spanned(lit, format!("write {what}: `{}`", usage.example)))
        }
        expr => Ok(expr),
    }
}
