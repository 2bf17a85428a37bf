//! `backoff(curve, …)`: a curve, and the settings that it has.

use std::time::Duration;

use humantime::format_duration;
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Ident, Result, Token};

use super::args::Args;
use super::value::Value;
use crate::errors::{Errors, fail};
use crate::hints::{EXPRESSION, instead, list};
use crate::keys::{CURVES, Curve, Place};

/// A backoff in parentheses.
#[derive(Clone)]
pub(crate) struct Backoff {
    pub(crate) curve: &'static Curve,
    /// The span of the curve's name.
    pub(crate) span: Span,
    pub(crate) settings: Args,
}

impl Backoff {
    /// Parses the contents of the parentheses. `key` is the span of the word `backoff`.
    pub(super) fn parse(input: ParseStream<'_>, key: Span) -> Result<Self> {
        let (curve, span) = curve(input, key)?;
        if !input.is_empty() && input.parse::<Token![,]>().is_err() {
            return Err(input.error("a comma is missing before this"));
        }
        let mut errors = Errors::default();
        let settings = Args::read(Place::Backoff(curve), input, &mut errors);
        errors.into_result()?;
        let backoff = Self { curve, span, settings };
        backoff.check_delays()?;
        Ok(backoff)
    }

    /// Returns a delay that the curve has: the one that is written, or its default.
    pub(crate) fn delay(&self, name: &str) -> Option<Value> {
        Place::Backoff(self.curve).key(name)?;
        let default = |delay| Some(Value::Duration(delay, self.span));
        match (self.settings.value(name), name) {
            (Some(written), _) => Some(written.clone()),
            (None, "min") => default(Duration::from_millis(200)),
            (None, "max") => default(Duration::from_secs(30)),
            (None, _) => None,
        }
    }

    /// Refuses a backoff without its first delay, or with one that is longer than the longest.
    fn check_delays(&self) -> Result<()> {
        let Curve { name, first: Some(first), example } = self.curve else { return Ok(()) };
        let Some(min) = self.delay(first) else {
            let message = format!("the curve `{name}` needs `{first}`; write `{example}`");
            return Err(Error::new(self.span, message));
        };
        if let (Value::Duration(min, min_span), Some(Value::Duration(max, max_span))) =
            (min, self.delay("max"))
            && min > max
        {
            let span = if self.settings.get("max").is_some() { max_span } else { min_span };
            let (min, max) = (format_duration(min), format_duration(max));
            let message = format!(
                "`max` is {max}, and `{first}` is {min}; write a longer `max` or a shorter `{first}`"
            );
            return Err(Error::new(span, message));
        }
        Ok(())
    }
}

/// Parses the curve, which comes first.
fn curve(input: ParseStream<'_>, key: Span) -> Result<(&'static Curve, Span)> {
    let names = CURVES.map(|curve| curve.name);
    if !input.peek(Ident::peek_any) || input.peek2(Token![=]) {
        let span = if input.is_empty() { key } else { input.span() };
        let (names, example) = (list(&names, "or"), CURVES[0].example);
        let message = format!("a backoff begins with its curve, {names}; write `{example}`");
        return Err(Error::new(span, message));
    }
    let word = Ident::parse_any(input)?;
    if let Some(curve) = CURVES.into_iter().find(|curve| word == curve.name) {
        return Ok((curve, word.span()));
    }
    let instead = instead(&word.to_string(), &names, Some(EXPRESSION));
    fail(&word, format!("unknown backoff curve `{word}`; {instead}"))
}
