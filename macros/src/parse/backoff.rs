//! `backoff(curve, …)`, for the curves and settings in daily use. All others take an expression.

use std::time::Duration;

use humantime::format_duration;
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Ident, Result, Token};

use super::input::{self, equals};
use super::scalar::{Scalar, fraction};
use crate::errors::fail;
use crate::keys::Usage;
use crate::suggestion::{instead, list};

/// A curve, which is also the name of the constructor of `Backoff`, and its settings.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) settings: &'static [&'static str],
    /// The setting that has no default.
    required: Option<&'static str>,
    example: &'static str,
}

pub(crate) static CURVES: &[Curve] = &[
    Curve {
        name: "exponential",
        settings: &["min", "max", "factor", "jitter"],
        required: None,
        example: r#"backoff(exponential, min = "200ms", max = "30s")"#,
    },
    Curve {
        name: "linear",
        settings: &["base", "max", "jitter"],
        required: Some("base"),
        example: r#"backoff(linear, base = "2s", max = "30s")"#,
    },
    Curve {
        name: "constant",
        settings: &["delay", "jitter"],
        required: Some("delay"),
        example: r#"backoff(constant, delay = "5s")"#,
    },
    Curve { name: "none", settings: &[], required: None, example: "backoff(none)" },
];

/// What an error suggests for the curves and settings that have no word.
const EXPRESSION: &str = "backoff = Backoff::fibonacci(min, max).reset_after(age)";
const JITTER: &str = "a number from 0 to 1, or an expression like `Jitter::Full`";

/// A backoff in parentheses.
pub(crate) struct Backoff {
    pub(crate) curve: &'static Curve,
    /// The span of the curve's name.
    pub(crate) span: Span,
    pub(crate) settings: Vec<(Ident, Scalar)>,
}

impl Backoff {
    /// Parses the contents of the parentheses. `key` is the span of the word `backoff`.
    pub(super) fn parse(input: ParseStream<'_>, key: Span) -> Result<Self> {
        let (curve, span) = curve(input, key)?;
        let mut backoff = Self { curve, span, settings: Vec::new() };
        while !input.is_empty() {
            if input.parse::<Token![,]>().is_err() {
                return Err(input.error("a comma is missing before this"));
            }
            if !input.is_empty() {
                backoff.parse_setting(input)?;
            }
        }
        backoff.check_required()?;
        backoff.check_delays()?;
        Ok(backoff)
    }

    fn parse_setting(&mut self, input: ParseStream<'_>) -> Result<()> {
        let Curve { name: curve, settings, example, .. } = self.curve;
        let key = Ident::parse_any(input).map_err(|error| {
            let message = format!("a setting begins with its name, as in `{example}`");
            Error::new(error.span(), message)
        })?;
        let name = key.to_string();
        if !settings.contains(&&*name) {
            let instead = instead(&name, settings, Some(EXPRESSION));
            return fail(&key, format!("`backoff({curve})` has no `{name}`; {instead}"));
        }
        let value = value(&key, input)?;
        if self.setting(&name).is_some() {
            return fail(&key, format!("`{key}` is already set; remove one of the two"));
        }
        self.settings.push((key, value));
        Ok(())
    }

    /// Returns the value of a setting, if it is written.
    fn setting(&self, name: &str) -> Option<&Scalar> {
        self.settings.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the delay that is written, or its default.
    pub(crate) fn delay(&self, name: &str) -> Option<Scalar> {
        let default = |delay| Some(Scalar::Duration(delay, self.span));
        match (self.setting(name), name) {
            (Some(written), _) => Some(written.clone()),
            (None, "min") => default(Duration::from_millis(200)),
            (None, "max") => default(Duration::from_secs(30)),
            (None, _) => None,
        }
    }

    fn check_required(&self) -> Result<()> {
        let Curve { name, required, example, .. } = self.curve;
        match required.filter(|required| self.setting(required).is_none()) {
            Some(missing) => {
                let message = format!("the curve `{name}` needs `{missing}`; write `{example}`");
                Err(Error::new(self.span, message))
            }
            None => Ok(()),
        }
    }

    /// Refuses a first delay that is longer than the longest.
    fn check_delays(&self) -> Result<()> {
        let [first, "max", ..] = self.curve.settings else { return Ok(()) };
        let (Some(Scalar::Duration(min, min_span)), Some(Scalar::Duration(max, max_span))) =
            (self.delay(first), self.delay("max"))
        else {
            return Ok(());
        };
        if min <= max {
            return Ok(());
        }
        let span = if self.setting("max").is_some() { max_span } else { min_span };
        let (min, max) = (format_duration(min), format_duration(max));
        let message = format!(
            "`max` is {max}, and `{first}` is {min}; write a longer `max` or a shorter `{first}`"
        );
        Err(Error::new(span, message))
    }
}

/// Parses the curve, which comes first.
fn curve(input: ParseStream<'_>, key: Span) -> Result<(&'static Curve, Span)> {
    let names: Vec<_> = CURVES.iter().map(|curve| curve.name).collect();
    if !input.peek(Ident::peek_any) || input.peek2(Token![=]) {
        let span = if input.is_empty() { key } else { input.span() };
        let (names, example) = (list(&names, "or"), CURVES[0].example);
        let message = format!("a backoff begins with its curve, {names}; write `{example}`");
        return Err(Error::new(span, message));
    }
    let word = Ident::parse_any(input)?;
    if let Some(curve) = CURVES.iter().find(|curve| word == curve.name) {
        return Ok((curve, word.span()));
    }
    let instead = instead(&word.to_string(), &names, Some(EXPRESSION));
    fail(&word, format!("unknown backoff curve `{word}`; {instead}"))
}

/// Parses what follows the name of a setting.
fn value(key: &Ident, input: ParseStream<'_>) -> Result<Scalar> {
    let name = &*key.to_string();
    let example = match name {
        "factor" => "factor = 2.0",
        "jitter" => "jitter = 0.2",
        delay => &format!("{delay} = \"5s\""),
    };
    equals(key, example, input)?;
    let (usage, expr) = (Usage { name, example }, input::expression(input)?);
    let number = match name {
        "factor" => {
            let allowed = |value: f64| value.is_finite() && value >= 1.0;
            fraction(usage, allowed, "a number of at least 1", expr)
        }
        "jitter" => fraction(usage, |value| (0.0..=1.0).contains(&value), JITTER, expr),
        _ => return Scalar::duration(usage, name == "delay", expr),
    };
    number.map(Scalar::Expression)
}
