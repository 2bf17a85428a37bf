//! The value of a key.
//!
//! Words, durations and numbers are checked here. Any other expression is passed on as it is, and
//! the compiler checks its type.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{Expr, LitStr, Pat, Path, Result, Type};

use super::backoff::Backoff;
use super::config::{config_type, section};
use super::input::{expression, lone_word, several, text};
use super::name::{name, siblings};
use super::scalar::{Scalar, duration, number};
use crate::errors::fail;
use crate::keys::{Key, Takes, Usage};
use crate::span::generated_at;
use crate::suggestion::{closest, instead};
use crate::words::WordTable;

pub(crate) enum Value {
    /// The path of a type of verger, and one of its variants.
    Word(&'static str, Ident),
    Scalar(Scalar),
    Name(LitStr),
    Names(Vec<LitStr>),
    Backoff(Backoff),
    /// Several functions, each for a call of its own.
    Functions(Vec<Expr>),
    Path(Path),
    Type(Box<Type>),
    Expression(Expr),
}

impl Value {
    /// Parses what follows `key = `.
    pub(super) fn parse(key: &Key, input: ParseStream<'_>) -> Result<Self> {
        let usage = key.usage();
        let expr = || expression(input);
        match &key.takes {
            Takes::Word(words) => word(words, usage, expr()?),
            Takes::DurationOrWord(words) => duration_or_word(words, usage, expr()?),
            Takes::Duration { zero } => Scalar::duration(usage, *zero, expr()?).map(Self::Scalar),
            Takes::Number { min } => number(usage, *min, expr()?).map(Self::Expression),
            Takes::Name => name(usage, &expr()?).map(Self::Name),
            Takes::Names => siblings(&several(input)?).map(Self::Names),
            Takes::Path if input.peek(LitStr) => {
                Err(input.error(format!("write a path, without quotes: `{}`", key.example)))
            }
            Takes::Path => Path::parse_mod_style(input).map(Self::Path),
            Takes::Type => config_type(usage, input).map(Box::new).map(Self::Type),
            Takes::Text(what) => quoted(what, usage, expr()?).map(Self::Expression),
            Takes::Section => section(usage, expr()?).map(Self::Expression),
            Takes::Backoff => no_literal("a backoff", usage, expr()?).map(Self::Expression),
            Takes::Functions => {
                let functions = several(input)?.into_iter().map(|it| function_of_error(usage, it));
                functions.collect::<Result<_>>().map(Self::Functions)
            }
            Takes::Expression(what) => no_literal(what, usage, expr()?).map(Self::Expression),
            Takes::Flag | Takes::Group(_) => Err(input.error("this key has no value")),
        }
    }
}

/// Parses one of `words` in quotes, or an expression of their type.
fn word(words: &WordTable, usage: Usage<'_>, expr: Expr) -> Result<Value> {
    refuse_word_alone(words, usage, &expr)?;
    if let Some(text) = text(&expr) {
        let word = known(words, text);
        return word.map_or_else(|| fail(text, unknown(words, usage, &text.value())), Ok);
    }
    match (&expr, lone_word(&expr)) {
        (Expr::Lit(lit), _) => {
            let message = unknown(words, usage, &lit.to_token_stream().to_string());
            fail(lit, format!("{message}, in quotes"))
        }
        (_, Some(word)) => fail(expr, unknown(words, usage, &word)),
        (_, None) => Ok(Value::Expression(expr)),
    }
}

/// Parses one of `words` or a duration in quotes, or an expression of a type that converts from both.
fn duration_or_word(words: &WordTable, usage: Usage<'_>, expr: Expr) -> Result<Value> {
    refuse_word_alone(words, usage, &expr)?;
    let Some(text) = text(&expr) else {
        return Scalar::duration(usage, true, expr).map(Value::Scalar);
    };
    if let Some(word) = known(words, text) {
        return Ok(word);
    }
    let word = text.value();
    if closest(&word, words.words).is_some() {
        return fail(text, unknown(words, usage, &word));
    }
    let all: Vec<_> = words.words.iter().map(|word| format!("\"{word}\"")).collect();
    let duration = duration(text, usage.example, &format!(", or {}", all.join(" or ")))?;
    Ok(Value::Scalar(Scalar::Duration(duration, text.span())))
}

fn known(words: &WordTable, text: &LitStr) -> Option<Value> {
    let variant = words.variant(&text.value())?;
    Some(Value::Word(words.ty, Ident::new(&variant, generated_at(text.span()))))
}

fn unknown(words: &WordTable, usage: Usage<'_>, word: &str) -> String {
    let instead = instead(word, words.words, words.expression);
    match words.noun {
        Some(noun) => format!("unknown {noun} `{word}`; {instead}"),
        None => format!("`{}` can't be `{word}`; {instead}", usage.name),
    }
}

/// Refuses one of the words that has no quotes.
fn refuse_word_alone(words: &WordTable, usage: Usage<'_>, expr: &Expr) -> Result<()> {
    match lone_word(expr) {
        Some(word) if words.words.contains(&&*word) => {
            fail(expr, format!("put it in quotes: `{} = \"{word}\"`", usage.name))
        }
        _ => Ok(()),
    }
}

/// Parses a path or a closure. Its parameter needs a type, because the function is called only with
/// errors of that type.
fn function_of_error(usage: Usage<'_>, expr: Expr) -> Result<Expr> {
    if let Expr::Closure(closure) = &expr
        && closure.inputs.len() == 1
        && !matches!(closure.inputs[0], Pat::Type(_))
    {
        let example = usage.example;
        return fail(&closure.inputs[0], format!("write the type of the error, as in `{example}`"));
    }
    no_literal("a function", usage, expr)
}

/// Accepts a text in quotes, and any expression that isn't a literal.
fn quoted(what: &str, usage: Usage<'_>, expr: Expr) -> Result<Expr> {
    match expr {
        Expr::Lit(lit) if text(&Expr::Lit(lit.clone())).is_none() => {
            fail(lit, format!("write {what} in quotes: `{}`", usage.example))
        }
        expr => Ok(expr),
    }
}

/// Accepts any expression that isn't a literal.
fn no_literal(what: &str, usage: Usage<'_>, expr: Expr) -> Result<Expr> {
    match expr {
        Expr::Lit(lit) => fail(lit, format!("write {what}: `{}`", usage.example)),
        expr => Ok(expr),
    }
}
