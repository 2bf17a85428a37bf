//! What stands behind a key: parsed, checked, and turned into the argument of a builder's method.
//!
//! A value that can be known here (a word, a duration, a number) is checked here. Any other
//! expression is passed on as it is, and the compiler checks its type.

use std::time::Duration;

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, ExprLit, ExprUnary, Lit, LitInt, LitStr, Path, Result, Token, UnOp, bracketed,
    token,
};

use crate::advice::{alike, instead};
use crate::backoff::Backoff;
use crate::keys::{Key, Takes, Words};
use crate::shown::at;

/// A name of a child is refused by the tree if it is longer, in bytes.
const MAX_NAME: usize = 255;

pub(crate) enum Value {
    Word { words: &'static Words, variant: &'static str, span: Span },
    Duration(Duration, Span),
    Number(LitInt),
    Name(LitStr),
    Names(Vec<LitStr>),
    Backoff(Backoff),
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
            Takes::Word(words) => word(words, key, expression(input)?),
            Takes::DurationOrWord(words) => duration_or_word(words, key, expression(input)?),
            Takes::Duration { zero } => {
                let value = Self::duration(key.name, key.example, expression(input)?)?;
                match value {
                    Self::Duration(Duration::ZERO, span) if !zero => {
                        let message =
                            format!("`{}` can't be zero; write `{}`", key.name, key.example);
                        Err(Error::new(span, message))
                    }
                    value => Ok(value),
                }
            }
            Takes::Number => number(key, expression(input)?),
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
            Takes::Backoff => backoff(key, expression(input)?),
            Takes::Function => match expression(input)? {
                Expr::Lit(lit) => {
                    let message = format!("write a function: `{}`", key.example);
                    Err(Error::new_spanned(lit, message))
                }
                expr => Ok(Self::Expression(expr)),
            },
            Takes::Expression => expression(input).map(Self::Expression),
            Takes::Flag | Takes::Group(_) => Err(input.error("this key has no value")),
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
            Self::Path(path) => path.to_token_stream(),
            Self::Expression(expr) => expr.to_token_stream(),
        }
    }
}

/// One of `words` in quotes, or an expression of their type.
fn word(words: &'static Words, key: &Key, expr: Expr) -> Result<Value> {
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
                return Err(Error::new(text.span(), unknown_word(words, key, &word)));
            }
            let known: Vec<_> = words.known().iter().map(|word| format!("\"{word}\"")).collect();
            let known = format!(", or {}", known.join(" or "));
            Ok(Value::Duration(duration(text, key.example, &known)?, text.span()))
        }
        _ => match lone_word(&expr) {
            Some(word) if words.variant(&word).is_some() => {
                Err(Error::new_spanned(expr, in_quotes(key, &word)))
            }
            _ => Value::duration(key.name, key.example, expr),
        },
    }
}

fn unknown_word(words: &Words, key: &Key, word: &str) -> String {
    let instead = instead(word, &words.known());
    match words.what {
        Some(what) => format!("unknown {what} `{word}`; {instead}"),
        None => format!("`{}` can't be `{word}`; {instead}", key.name),
    }
}

fn known(words: &'static Words, text: &LitStr) -> Option<Value> {
    let variant = words.variant(&text.value())?;
    Some(Value::Word { words, variant, span: text.span() })
}

fn in_quotes(key: &Key, word: &str) -> String {
    format!("put it in quotes: `{} = \"{word}\"`", key.name)
}

/// The word that an expression is, if it is one and not the name of a type or a constant.
fn lone_word(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) => {
            let word = path.path.get_ident()?.to_string();
            (!word.contains(char::is_uppercase)).then_some(word)
        }
        _ => None,
    }
}

fn backoff(key: &Key, expr: Expr) -> Result<Value> {
    let Expr::Lit(lit) = expr else { return Ok(Value::Expression(expr)) };
    let example = match &lit.lit {
        // Probably meant for each wait.
        Lit::Str(text) if humantime::parse_duration(&text.value()).is_ok() => {
            format!("backoff(constant, delay = \"{}\")", text.value())
        }
        _ => key.example.to_owned(),
    };
    Err(Error::new_spanned(lit, format!("a backoff begins with its curve; write `{example}`")))
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

fn number(key: &Key, expr: Expr) -> Result<Value> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => match number.base10_parse::<u32>() {
            Ok(_) => Ok(Value::Number(number)),
            Err(_) => {
                let message =
                    format!("`{}` is at most {}; write a smaller number", key.name, u32::MAX);
                Err(Error::new_spanned(number, message))
            }
        },
        Expr::Unary(negative) if is_negative(&negative) => {
            let message = format!("`{}` can't be negative; write `{}`", key.name, key.example);
            Err(Error::new_spanned(negative, message))
        }
        Expr::Lit(lit) => {
            Err(Error::new_spanned(lit, format!("write a whole number: `{}`", key.example)))
        }
        expr => Ok(Value::Expression(expr)),
    }
}

/// A number with a minus; anything else behind one is an expression.
fn is_negative(unary: &ExprUnary) -> bool {
    matches!((&unary.op, &*unary.expr), (UnOp::Neg(_), Expr::Lit(_)))
}

/// One name, or several in brackets.
fn names(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    let name = |input: ParseStream<'_>| {
        name(expression(input)?, || "write the name of a sibling, in quotes".to_owned())
    };
    if !input.peek(token::Bracket) {
        return name(input).map(|name| vec![name]);
    }
    let names;
    bracketed!(names in input);
    let names = Punctuated::<_, Token![,]>::parse_terminated_with(&names, name)?;
    Ok(names.into_iter().collect())
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
