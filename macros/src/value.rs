//! What stands behind a key: parsed, checked, and turned into the argument of a builder's method.
//!
//! A value that can be known here (a word, a duration, a number) is checked here. Any other
//! expression is passed on as it is, and the compiler checks its type.

use std::time::Duration;

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Lit, LitInt, LitStr, Pat, Path, Result, Token, bracketed, token};

use crate::advice::{alike, instead};
use crate::backoff::{self, Backoff};
use crate::keys::{Key, Takes};
use crate::made::Made;
use crate::number::{is_negative, number};
use crate::shown::at;
use crate::words::{PRESET, Words};
use crate::{failure_log, limits};

/// A name of a child is refused by the tree if it is longer, in bytes.
const MAX_NAME: usize = 255;

pub(crate) enum Value {
    Word {
        words: &'static Words,
        variant: &'static str,
        span: Span,
    },
    Duration(Duration, Span),
    Number(LitInt),
    Name(LitStr),
    Names(Vec<LitStr>),
    Backoff(Backoff),
    /// What verger makes of what was written.
    Made(Box<Made>),
    /// Several functions, each for a call of its own.
    Functions(Vec<Expr>),
    Path(Path),
    Expression(Expr),
}

/// What was written, also if another macro has put it there.
pub(crate) fn expression(input: ParseStream<'_>) -> Result<Expr> {
    let mut expr = input.parse()?;
    while let Expr::Group(group) = expr {
        expr = *group.expr;
    }
    Ok(expr)
}

impl Value {
    /// Parses what stands behind `key = `.
    pub(crate) fn parse(key: &Key, input: ParseStream<'_>) -> Result<Self> {
        match &key.takes {
            Takes::Word(words) => word(words, key.name, expression(input)?),
            Takes::DurationOrWord(words) => duration_or_word(words, key, expression(input)?),
            Takes::Duration { zero } => {
                Self::duration_above(*zero, key.name, key.example, expression(input)?)
            }
            Takes::Number { min } => {
                number(key.name, key.example, &(*min..=u32::MAX), expression(input)?)
            }
            Takes::Name => name(expression(input)?, || {
                format!("a name is written out, in quotes, as in `{}`", key.example)
            })
            .and_then(check_name)
            .map(Self::Name),
            Takes::Names => names(input).map(Self::Names),
            Takes::Path => match input.peek(LitStr) {
                true => {
                    Err(input.error(format!("write a path, without quotes: `{}`", key.example)))
                }
                false => Path::parse_mod_style(input).map(Self::Path),
            },
            Takes::Backoff => backoff::value(expression(input)?, key.example),
            Takes::Intensity => limits::intensity_value(key, expression(input)?),
            Takes::OnExhausted => limits::on_exhausted_value(key, expression(input)?),
            Takes::FailureLog => failure_log::value(key, expression(input)?),
            Takes::Preset => preset(key, expression(input)?),
            Takes::Function => function(key, expression(input)?).map(Self::Expression),
            Takes::Questions => {
                several(input, |input| question(key, expression(input)?)).map(Self::Functions)
            }
            Takes::Value(what) => match expression(input)? {
                Expr::Lit(lit) => {
                    let message = format!("write {what}: `{}`", key.example);
                    Err(Error::new_spanned(lit, message))
                }
                expr => Ok(Self::Expression(expr)),
            },
            Takes::Flag | Takes::Group(_) => Err(input.error("this key has no value")),
        }
    }

    /// The same as [`duration`](Self::duration), and not zero unless that is allowed.
    pub(crate) fn duration_above(zero: bool, key: &str, example: &str, expr: Expr) -> Result<Self> {
        match Self::duration(key, example, expr)? {
            Self::Duration(Duration::ZERO, span) if !zero => {
                Err(Error::new(span, format!("`{key}` can't be zero; write `{example}`")))
            }
            value => Ok(value),
        }
    }

    /// A duration in quotes, or any expression that isn't a literal.
    pub(crate) fn duration(key: &str, example: &str, expr: Expr) -> Result<Self> {
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
                let message = format!("`{key}` can't be negative; write `{example}`");
                Err(Error::new_spanned(negative, message))
            }
            expr => Ok(Self::Expression(expr)),
        }
    }

    /// The argument that the builder's method gets.
    pub(crate) fn tokens(&self, krate: &Path) -> TokenStream {
        match self {
            Self::Word { words, variant, span } => {
                let ty = syn::Ident::new(words.ty, at(*span));
                let variant = syn::Ident::new(variant, at(*span));
                quote_spanned!(at(*span)=> #krate::#ty::#variant)
            }
            Self::Duration(duration, span) => duration_tokens(*duration, *span),
            Self::Number(number) => number.to_token_stream(),
            Self::Name(name) => name.to_token_stream(),
            Self::Names(names) => quote!(#(#names),*),
            Self::Backoff(backoff) => backoff.tokens(krate),
            Self::Made(made) => made.tokens(krate),
            Self::Functions(functions) => quote!(#(#functions),*),
            Self::Path(path) => path.to_token_stream(),
            Self::Expression(expr) => expr.to_token_stream(),
        }
    }
}

/// One of `words` in quotes, or an expression of their type.
pub(crate) fn word(words: &'static Words, key: &str, expr: Expr) -> Result<Value> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => known(words, &text)
            .ok_or_else(|| Error::new(text.span(), unknown_word(words, key, &text.value()))),
        Expr::Lit(lit) => {
            let message = unknown_word(words, key, &lit.to_token_stream().to_string());
            Err(Error::new_spanned(lit, format!("{message}, in quotes")))
        }
        expr => match lone_word(&expr) {
            Some(word) if words.variant(&word).is_some() => {
                Err(Error::new_spanned(expr, in_quotes(key, &word)))
            }
            Some(word) => Err(Error::new_spanned(expr, unknown_word(words, key, &word))),
            None => Ok(Value::Expression(expr)),
        },
    }
}

/// One of `words` or a duration in quotes, or an expression of a type that can be either.
fn duration_or_word(words: &'static Words, key: &Key, expr: Expr) -> Result<Value> {
    match &expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            let word = text.value();
            if let Some(word) = known(words, text) {
                return Ok(word);
            }
            if alike(&word, &words.known()).is_some() {
                return Err(Error::new(text.span(), unknown_word(words, key.name, &word)));
            }
            let known: Vec<_> = words.known().iter().map(|word| format!("\"{word}\"")).collect();
            let known = format!(", or {}", known.join(" or "));
            Ok(Value::Duration(duration(text, key.example, &known)?, text.span()))
        }
        _ => match lone_word(&expr) {
            Some(word) if words.variant(&word).is_some() => {
                Err(Error::new_spanned(expr, in_quotes(key.name, &word)))
            }
            _ => Value::duration(key.name, key.example, expr),
        },
    }
}

fn unknown_word(words: &Words, key: &str, word: &str) -> String {
    let instead = instead(word, &words.known());
    match words.what {
        Some(what) => format!("unknown {what} `{word}`; {instead}"),
        None => format!("`{key}` can't be `{word}`; {instead}"),
    }
}

fn known(words: &'static Words, text: &LitStr) -> Option<Value> {
    let variant = words.variant(&text.value())?;
    Some(Value::Word { words, variant, span: text.span() })
}

fn in_quotes(key: &str, word: &str) -> String {
    format!("put it in quotes: `{key} = \"{word}\"`")
}

/// The word that an expression is, if it is one and not the name of a type or a constant.
pub(crate) fn lone_word(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) => {
            let word = path.path.get_ident()?.to_string();
            (!word.contains(char::is_uppercase)).then_some(word)
        }
        _ => None,
    }
}

fn preset(key: &Key, expr: Expr) -> Result<Value> {
    Ok(match word(&PRESET, key.name, expr)? {
        Value::Word { words, variant, span } => {
            Made::new(words.ty, variant, span, Vec::new()).into()
        }
        other => other,
    })
}

/// A path to a function, or a closure.
fn function(key: &Key, expr: Expr) -> Result<Expr> {
    match expr {
        Expr::Lit(lit) => {
            Err(Error::new_spanned(lit, format!("write a function: `{}`", key.example)))
        }
        expr => Ok(expr),
    }
}

/// A function of an error. It is asked only of errors of its parameter's type, which therefore has
/// to be known.
fn question(key: &Key, expr: Expr) -> Result<Expr> {
    if let Expr::Closure(closure) = &expr
        && let [param] = &*closure.inputs.iter().collect::<Vec<_>>()
        && !matches!(param, Pat::Type(_))
    {
        let message = format!("write the type of the error, as in `{}`", key.example);
        return Err(Error::new_spanned(param, message));
    }
    function(key, expr)
}

fn duration(text: &LitStr, example: &str, or: &str) -> Result<Duration> {
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

/// What to tell of a number that was meant for seconds.
fn without_unit(number: &str, example: &str) -> String {
    let seconds = match number.parse::<f64>().map(Duration::try_from_secs_f64) {
        Ok(Ok(duration)) if duration.subsec_nanos() == 0 => format!("{}s", duration.as_secs()),
        Ok(Ok(duration)) => humantime::format_duration(duration).to_string(),
        _ => return format!("`{number}` is not a duration; write `{example}`"),
    };
    format!("`{number}` has no unit; write `\"{seconds}\"` for that many seconds")
}

/// A duration, as somebody would write it.
pub(crate) fn duration_tokens(duration: Duration, span: Span) -> TokenStream {
    let span = at(span);
    let secs = Literal::u64_unsuffixed(duration.as_secs());
    let nanos = duration.subsec_nanos();
    match u64::try_from(duration.as_millis()).map(Literal::u64_unsuffixed) {
        _ if nanos == 0 => quote_spanned!(span=> ::core::time::Duration::from_secs(#secs)),
        Ok(millis) if nanos.is_multiple_of(1_000_000) => {
            quote_spanned!(span=> ::core::time::Duration::from_millis(#millis))
        }
        _ => {
            let nanos = Literal::u32_unsuffixed(nanos);
            quote_spanned!(span=> ::core::time::Duration::new(#secs, #nanos))
        }
    }
}

/// One name, or several in brackets.
fn names(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    several(input, |input| {
        name(expression(input)?, || "write the name of a sibling, in quotes".to_owned())
    })
}

/// One, or several in brackets.
pub(crate) fn several<T>(
    input: ParseStream<'_>,
    one: impl Fn(ParseStream<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    if !input.peek(token::Bracket) {
        return one(input).map(|one| vec![one]);
    }
    let all;
    bracketed!(all in input);
    let mut several = Vec::new();
    while !all.is_empty() {
        several.push(one(&all)?);
        if !all.is_empty() {
            all.parse::<Token![,]>()?;
        }
    }
    Ok(several)
}

fn name(expr: Expr, otherwise: impl FnOnce() -> String) -> Result<LitStr> {
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

/// What the tree would refuse when it is built, told earlier.
fn check_name(name: LitStr) -> Result<LitStr> {
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
