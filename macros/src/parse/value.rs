//! The value of a key.
//!
//! Words, durations and numbers are checked here. Any other expression is passed on as it is, and
//! the compiler checks its type.

use std::time::Duration;

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{Expr, Lit, LitStr, Pat, Path, Result, Token, Type, token};

use super::args::Args;
use super::backoff::Backoff;
use super::input::{expression, lone_word, several, text};
use super::literal::{
    duration, duration_text, fraction, literal, name, no_literal, number, quoted, section, siblings,
};
use crate::errors::fail;
use crate::hints::{closest, instead};
use crate::keys::{Key, Takes, WordTable};
use crate::span::generated_at;

#[derive(Clone)]
pub(crate) enum Value {
    /// The key stands alone.
    Flag,
    /// A mistake, which is reported.
    Invalid,
    /// Keys in parentheses.
    Group(Args),
    Backoff(Backoff),
    /// The path of a type of verger, and one of its variants.
    Word(&'static str, Ident),
    Duration(Duration, Span),
    Name(LitStr),
    Names(Vec<LitStr>),
    /// Several functions, each for a separate call.
    Functions(Vec<Expr>),
    Path(Path),
    Type(Box<Type>),
    Expression(Expr),
}

impl Value {
    /// Parses what follows `key = `.
    pub(super) fn parse(key: &Key, input: ParseStream<'_>) -> Result<Self> {
        let expr = || expression(input);
        match &key.takes {
            Takes::Word(words) => word(words, key, expr()?),
            Takes::DurationOrWord(words) => duration_or_word(words, key, expr()?),
            Takes::Duration { zero } => duration(key, *zero, expr()?),
            Takes::Number { min } => number(key, *min, expr()?).map(Self::Expression),
            Takes::Fraction { min, max, what } => {
                fraction(key, (*min, *max), what, expr()?).map(Self::Expression)
            }
            Takes::SmallNumber => {
                let is_number = |lit: &Lit| matches!(lit, Lit::Int(_));
                literal("a whole number", is_number, key, expr()?).map(Self::Expression)
            }
            Takes::Boolean => {
                let is_boolean = |lit: &Lit| matches!(lit, Lit::Bool(_));
                literal("`true` or `false`", is_boolean, key, expr()?).map(Self::Expression)
            }
            Takes::Name => name(key, &expr()?).map(Self::Name),
            Takes::Names => siblings(&several(input)?).map(Self::Names),
            Takes::Path if input.peek(LitStr) => {
                Err(input.error(format!("write a path, without quotes: `{}`", key.example)))
            }
            Takes::Path => Path::parse_mod_style(input).map(Self::Path),
            Takes::Type => ty(key, input).map(Box::new).map(Self::Type),
            Takes::Text(what) => quoted(what, key, expr()?).map(Self::Expression),
            Takes::Section => section(key, expr()?).map(Self::Expression),
            Takes::Backoff => no_literal("a backoff", key, expr()?).map(Self::Expression),
            Takes::Functions => {
                let functions = several(input)?.into_iter().map(|it| function_of_error(key, it));
                functions.collect::<Result<_>>().map(Self::Functions)
            }
            Takes::Expression(what) => no_literal(what, key, expr()?).map(Self::Expression),
            Takes::Flag | Takes::Group(_) => Err(input.error("this key has no value")),
        }
    }
}

/// Parses a type, and refuses a value of it.
fn ty(key: &Key, input: ParseStream<'_>) -> Result<Type> {
    if input.peek(LitStr) {
        return Err(input.error(format!("write a type, without quotes: `{}`", key.example)));
    }
    let start = input.fork();
    let Ok(ty) = input.parse::<Type>() else {
        return Err(start.error(format!("write a type: `{}`", key.example)));
    };
    if input.peek(token::Paren) || input.peek(token::Brace) || input.peek(Token![.]) {
        return fail(ty, format!("write the type alone: `{}`", key.example));
    }
    Ok(ty)
}

/// Parses one of `words` in quotes, or an expression of their type.
fn word(words: &WordTable, key: &Key, expr: Expr) -> Result<Value> {
    refuse_word_alone(words, key, &expr)?;
    if let Some(text) = text(&expr) {
        let word = known(words, text);
        return word.map_or_else(|| fail(text, unknown(words, key, &text.value())), Ok);
    }
    match (&expr, lone_word(&expr)) {
        (Expr::Lit(lit), _) => {
            let message = unknown(words, key, &lit.to_token_stream().to_string());
            fail(lit, format!("{message}, in quotes"))
        }
        (_, Some(word)) => fail(expr, unknown(words, key, &word)),
        (_, None) => Ok(Value::Expression(expr)),
    }
}

/// Parses one of `words` or a duration in quotes, or an expression of a type that converts from both.
fn duration_or_word(words: &WordTable, key: &Key, expr: Expr) -> Result<Value> {
    refuse_word_alone(words, key, &expr)?;
    let Some(text) = text(&expr) else { return duration(key, true, expr) };
    if let Some(word) = known(words, text) {
        return Ok(word);
    }
    let word = text.value();
    if closest(&word, words.words).is_some() {
        return fail(text, unknown(words, key, &word));
    }
    let all: Vec<_> = words.words.iter().map(|word| format!("\"{word}\"")).collect();
    let duration = duration_text(text, key.example, &format!(", or {}", all.join(" or ")))?;
    Ok(Value::Duration(duration, text.span()))
}

fn known(words: &WordTable, text: &LitStr) -> Option<Value> {
    let variant = words.variant(&text.value())?;
    Some(Value::Word(words.ty, Ident::new(&variant, generated_at(text.span()))))
}

fn unknown(words: &WordTable, key: &Key, word: &str) -> String {
    let instead = instead(word, words.words, words.expression);
    match words.noun {
        Some(noun) => format!("unknown {noun} `{word}`; {instead}"),
        None => format!("`{}` can't be `{word}`; {instead}", key.name),
    }
}

/// Refuses one of the words that has no quotes.
fn refuse_word_alone(words: &WordTable, key: &Key, expr: &Expr) -> Result<()> {
    match lone_word(expr) {
        Some(word) if words.words.contains(&&*word) => {
            fail(expr, format!("put it in quotes: `{} = \"{word}\"`", key.name))
        }
        _ => Ok(()),
    }
}

/// Parses a path or a closure. Its parameter needs a type, because the function is called only with
/// errors of that type.
fn function_of_error(key: &Key, expr: Expr) -> Result<Expr> {
    if let Expr::Closure(closure) = &expr
        && closure.inputs.len() == 1
        && !matches!(closure.inputs[0], Pat::Type(_))
    {
        let example = key.example;
        return fail(&closure.inputs[0], format!("write the type of the error, as in `{example}`"));
    }
    no_literal("a function", key, expr)
}
