//! `key = value, …` in the parentheses of a value: known, each set once, and of the right kind.
//!
//! Which settings there are, and which of them go together, is up to whoever reads them.

use std::ops::RangeInclusive;

use proc_macro2::{Ident, Span, TokenTree};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Result, Token, parenthesized, token};

use crate::advice::instead;
use crate::backoff::jitter;
use crate::number::{float, number};
use crate::value::{Value, expression, several, word};
use crate::words::Words;

/// A setting that there is.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// A correct use, for whoever wrote an incorrect one.
    pub(crate) example: &'static str,
}

/// What a setting takes.
pub(crate) enum Kind {
    /// Nothing.
    Flag,
    /// A duration in quotes, or an expression of type `Duration`.
    Duration { zero: bool },
    /// A whole number, or an expression.
    Number(RangeInclusive<u32>),
    /// A number, or an expression of type `f64`.
    Float { allowed: fn(f64) -> bool, text: &'static str },
    /// A word in quotes, or an expression of the words' type.
    Word(&'static Words),
    /// A rule when to begin again, or several in brackets.
    Resets,
    /// A number, a word, something in parentheses, or an expression.
    Jitter,
}

/// A setting that was written.
pub(crate) struct Setting {
    /// As it was written, which may become the method that is called.
    pub(crate) key: Ident,
    pub(crate) known: &'static Known,
    pub(crate) values: Vec<Value>,
}

#[derive(Default)]
pub(crate) struct Settings(Vec<Setting>);

impl Settings {
    /// Parses what there is up to the end. `find` tells which settings there are, and `example` is
    /// one that is right.
    pub(crate) fn parse(
        input: ParseStream<'_>,
        example: &str,
        find: impl Fn(&Ident) -> Result<&'static Known>,
    ) -> Result<Self> {
        let mut settings = Self::default();
        while !input.is_empty() {
            let key = Ident::parse_any(input).map_err(|error| {
                let message = format!("a setting begins with its name, as in `{example}`");
                Error::new(error.span(), message)
            })?;
            let known = find(&key)?;
            let values = known.values(&key, input)?;
            if settings.get(known.name).is_some() {
                let message = format!("`{key}` is already set; remove one of the two");
                return Err(Error::new(key.span(), message));
            }
            settings.0.push(Setting { key, known, values });
            comma(input)?;
        }
        Ok(settings)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.0.iter()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.known.name == name)
    }

    /// What a setting is set to, if it is not a flag.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.get(name)?.values.first()
    }

    /// The same, for good.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let setting = self.0.iter_mut().find(|setting| setting.known.name == name)?;
        setting.values.pop()
    }

    /// The only setting there is, of several that exclude each other.
    pub(crate) fn only(self, key: Span, example: &str) -> Result<Setting> {
        let mut settings = self.0.into_iter();
        match (settings.next(), settings.next()) {
            (Some(only), None) => Ok(only),
            (Some(first), Some(second)) => {
                let (first, name) = (first.known.name, second.known.name);
                let message =
                    format!("it can't be both `{first}` and `{name}`; remove one of the two");
                Err(Error::new(second.key.span(), message))
            }
            (None, _) => Err(Error::new(key, format!("there is nothing in it; write `{example}`"))),
        }
    }
}

impl Known {
    fn values(&self, key: &Ident, input: ParseStream<'_>) -> Result<Vec<Value>> {
        let Self { name, kind, example } = self;
        let wrong = |text: String| Err(Error::new(key.span(), text));
        let is_over = |input: ParseStream<'_>| input.is_empty() || input.peek(Token![,]);
        match kind {
            Kind::Flag if is_over(input) => return Ok(Vec::new()),
            Kind::Flag => return wrong(format!("`{name}` takes no value; write `{name}` alone")),
            Kind::Jitter if input.peek(token::Paren) => {
                let jitter = parentheses(input, |input| jitter::in_parentheses(input, key.span()))?;
                return Ok(vec![jitter]);
            }
            _ => {}
        }
        if input.parse::<Token![=]>().is_err() || is_over(input) {
            return wrong(format!("`{name}` needs a value; write `{example}`"));
        }
        let value = match kind {
            Kind::Flag => None,
            Kind::Duration { zero } => {
                Some(Value::duration_above(*zero, name, example, expression(input)?)?)
            }
            Kind::Number(range) => Some(number(name, example, range, expression(input)?)?),
            Kind::Float { allowed, text } => {
                Some(float(name, example, *allowed, text, expression(input)?)?)
            }
            Kind::Word(words) => Some(word(words, name, expression(input)?)?),
            Kind::Resets => {
                let resets = several(input, |input| jitter::reset(expression(input)?))?;
                if resets.is_empty() {
                    return wrong(format!("`{name}` needs a value; write `{example}`"));
                }
                return Ok(resets);
            }
            Kind::Jitter => Some(jitter::after_equals(self, expression(input)?)?),
        };
        Ok(value.into_iter().collect())
    }
}

/// The word that what is in parentheses begins with, and the comma after it. `what` has a `kind`
/// that is one of `names`.
pub(crate) fn head(
    input: ParseStream<'_>,
    key: Span,
    (what, kind): (&str, &str),
    names: &[&str],
    example: &str,
) -> Result<Ident> {
    if input.is_empty() || input.peek2(Token![=]) {
        let span = if input.is_empty() { key } else { input.span() };
        let message = format!(
            "{what} begins with its {kind}, which is one of `{}`; write `{example}`, for example",
            names.join("`, `"),
        );
        return Err(Error::new(span, message));
    }
    let word = Ident::parse_any(input)?;
    if !names.iter().any(|name| word == name) {
        let instead = instead(&word.to_string(), names);
        let what = what.split_once(' ').map_or(what, |(_, what)| what);
        // What a kind is of goes without saying.
        let what = if kind == "kind" { what.to_owned() } else { format!("{what} {kind}") };
        return Err(Error::new(word.span(), format!("unknown {what} `{word}`; {instead}")));
    }
    comma(input)?;
    Ok(word)
}

fn comma(input: ParseStream<'_>) -> Result<()> {
    if !input.is_empty() && input.parse::<Token![,]>().is_err() {
        return Err(input.error("a comma is missing before this"));
    }
    Ok(())
}

/// Parses what is in parentheses; with a mistake, it is gone as well.
pub(crate) fn parentheses<T>(
    input: ParseStream<'_>,
    parse: impl FnOnce(ParseStream<'_>) -> Result<T>,
) -> Result<T> {
    let group;
    parenthesized!(group in input);
    let parsed = parse(&group);
    skip(&group, |_| false);
    parsed
}

pub(crate) fn skip(input: ParseStream<'_>, until: impl Fn(ParseStream<'_>) -> bool) {
    while !input.is_empty() && !until(input) && input.parse::<TokenTree>().is_ok() {}
}
