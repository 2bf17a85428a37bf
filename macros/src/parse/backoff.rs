//! `backoff(curve, …)`, for the curves and settings in daily use. The others take an expression.

use std::time::Duration;

use humantime::format_duration;
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Expr, Ident, Lit, Result, Token, token};

use super::input::{self, equals};
use super::scalar::{Scalar, fraction};
use crate::errors::fail;
use crate::keys::Usage;
use crate::suggestion::{closest, instead, list};

/// A curve: a constructor of `Backoff`, and the settings that go with it.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    /// The arguments of the constructor, in order. The shortest wait comes first.
    pub(crate) arguments: &'static [(&'static str, Fallback)],
    /// The settings that are methods of the backoff.
    pub(crate) methods: &'static [&'static str],
    example: &'static str,
}

/// The value of an argument that isn't written.
#[derive(Clone, Copy)]
pub(crate) enum Fallback {
    Required,
    Millis(u64),
    SameAs(&'static str),
}

const MAX: (&str, Fallback) = ("max", Fallback::Millis(30_000));

pub(crate) static CURVES: &[Curve] = &[
    Curve {
        name: "exponential",
        arguments: &[("min", Fallback::Millis(200)), MAX],
        methods: &["factor", "jitter", "reset_after"],
        example: r#"backoff(exponential, min = "200ms", max = "30s")"#,
    },
    Curve {
        name: "linear",
        arguments: &[("base", Fallback::Required), ("step", Fallback::SameAs("base")), MAX],
        methods: &["jitter", "reset_after"],
        example: r#"backoff(linear, base = "2s", max = "30s")"#,
    },
    Curve {
        name: "constant",
        arguments: &[("delay", Fallback::Required)],
        methods: &["jitter", "reset_after"],
        example: r#"backoff(constant, delay = "5s")"#,
    },
    Curve { name: "none", arguments: &[], methods: &[], example: "backoff(none)" },
];

/// The constructors of `Backoff` that are written as expressions.
const EXPRESSION_CURVES: [&str; 3] = ["geometric", "fibonacci", "binary_slots"];

/// The methods of `Backoff` that are written as expressions.
const EXPRESSION_METHODS: [&str; 8] = [
    "cap",
    "soft_cap",
    "hard_floor",
    "first_at_once",
    "at_once_after_reset",
    "jitter_before_cap",
    "compounding",
    "reset",
];

const JITTER: &str = "a number from 0 to 1, or an expression like `Jitter::Full`";

/// A backoff in parentheses.
pub(crate) struct Backoff {
    pub(crate) curve: &'static Curve,
    /// The span of the curve's name.
    pub(crate) span: Span,
    settings: Vec<(Ident, Scalar)>,
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
        backoff.check_waits()?;
        Ok(backoff)
    }

    fn parse_setting(&mut self, input: ParseStream<'_>) -> Result<()> {
        let key = Ident::parse_any(input).map_err(|error| {
            let message = format!("a setting begins with its name, as in `{}`", self.curve.example);
            Error::new(error.span(), message)
        })?;
        let name = key.to_string();
        if !self.curve.settings().any(|own| own == name) {
            let (curve, instead) = (self.curve.name, self.curve.without(&name));
            let message = format!("a backoff with the curve `{curve}` has no `{name}`; {instead}");
            return fail(&key, message);
        }
        let value = value(&key, input)?;
        if self.setting(&name).is_some() {
            return fail(&key, format!("`{key}` is already set; remove one of the two"));
        }
        self.settings.push((key, value));
        Ok(())
    }

    /// Returns the value of a setting, if it is written.
    pub(crate) fn setting(&self, name: &str) -> Option<&Scalar> {
        self.settings.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the settings that are methods of the backoff, in the order in which they are written.
    pub(crate) fn methods(&self) -> impl Iterator<Item = &(Ident, Scalar)> {
        self.settings.iter().filter(|(key, _)| self.curve.methods.iter().any(|name| key == name))
    }

    fn check_required(&self) -> Result<()> {
        let Curve { name, arguments, example, .. } = self.curve;
        for (argument, fallback) in *arguments {
            if matches!(fallback, Fallback::Required) && self.setting(argument).is_none() {
                let message = format!("the curve `{name}` needs `{argument}`; write `{example}`");
                return Err(Error::new(self.span, message));
            }
        }
        Ok(())
    }

    /// Refuses a first wait that is zero, or longer than the last one.
    fn check_waits(&self) -> Result<()> {
        let Some(first) = self.curve.first() else { return Ok(()) };
        let Some((min, min_span)) = self.known(first) else { return Ok(()) };
        if let (true, Some(span)) = (min.is_zero() && first != "delay", min_span) {
            let message = format!("`{first}` can't be zero; write `backoff(none)` for no wait");
            return Err(Error::new(span, message));
        }
        let Some((max, max_span)) = self.known("max") else { return Ok(()) };
        if min <= max {
            return Ok(());
        }
        let (span, message) = match (max_span, min_span) {
            (Some(span), Some(_)) => {
                (span, format!("`max` is less than `{first}`; write at least as much"))
            }
            (Some(span), None) => {
                let min = format_duration(min);
                (span, format!("`max` is less than `{first}`, which is {min} {UNLESS_WRITTEN}"))
            }
            (None, span) => {
                let max = format_duration(max);
                let message =
                    format!("`{first}` is more than `max`, which is {max} {UNLESS_WRITTEN}");
                (span.unwrap_or(self.span), message)
            }
        };
        Err(Error::new(span, message))
    }

    /// Returns the duration of an argument, and where it is written.
    fn known(&self, name: &str) -> Option<(Duration, Option<Span>)> {
        match self.setting(name) {
            Some(Scalar::Duration(duration, span)) => Some((*duration, Some(*span))),
            Some(Scalar::Expression(_)) => None,
            None => self.curve.arguments.iter().find_map(|(argument, fallback)| match fallback {
                Fallback::Millis(millis) if *argument == name => {
                    Some((Duration::from_millis(*millis), None))
                }
                _ => None,
            }),
        }
    }
}

const UNLESS_WRITTEN: &str = "unless it is written; write both";

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
    let text = word.to_string();
    let all: Vec<_> = names.iter().copied().chain(EXPRESSION_CURVES).collect();
    let instead = match closest(&text, &all) {
        Some(meant) if EXPRESSION_CURVES.contains(&meant) => {
            format!("write an expression: `backoff = Backoff::{meant}(…)`")
        }
        _ => instead(&text, &names),
    };
    fail(word, format!("unknown backoff curve `{text}`; {instead}"))
}

impl Curve {
    /// Returns the shortest wait.
    fn first(&self) -> Option<&'static str> {
        self.arguments.first().map(|(name, _)| *name)
    }

    /// Returns all settings that go with this curve.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &'static str> {
        let arguments = self.arguments.iter().map(|(name, _)| *name);
        arguments.chain(self.methods.iter().copied())
    }

    /// Returns what to write instead of a setting that doesn't go with this curve.
    fn without(&self, name: &str) -> String {
        if EXPRESSION_METHODS.contains(&name) {
            return format!("write an expression: `backoff = Backoff::{}(…).{name}(…)`", self.name);
        }
        let is_first = CURVES.iter().any(|curve| curve.first() == Some(name));
        if let (true, Some(first)) = (is_first, self.first()) {
            return format!("did you mean `{first}`?");
        }
        let has_it = |curve: &&Curve| curve.settings().any(|setting| setting == name);
        let others: Vec<_> = CURVES.iter().filter(has_it).map(|curve| curve.name).collect();
        match &*others {
            [] => instead(name, &self.settings().collect::<Vec<_>>()),
            others => format!("leave it out, or use {}", list(others, "or")),
        }
    }
}

/// Parses what follows the name of a setting.
fn value(key: &Ident, input: ParseStream<'_>) -> Result<Scalar> {
    let name = &*key.to_string();
    let example = match name {
        "factor" => "factor = 2.0",
        "jitter" => "jitter = 0.2",
        wait => &format!("{wait} = \"5s\""),
    };
    if name == "jitter" && input.peek(token::Paren) {
        return fail(key, format!("`jitter` is {JITTER}; write `{example}`"));
    }
    equals(key, example, input)?;
    let (usage, expr) = (Usage { name, example }, input::expression(input)?);
    let number = match name {
        "factor" => {
            let allowed = |value: f64| value.is_finite() && value >= 1.0;
            fraction(usage, allowed, "a number of at least 1", expr)
        }
        "jitter" => fraction(usage, |value| (0.0..=1.0).contains(&value), JITTER, expr),
        _ => return Scalar::duration(usage, true, expr),
    };
    number.map(Scalar::Expression)
}

/// Checks what follows `backoff = `.
pub(super) fn expression(expr: Expr, example: &str) -> Result<Expr> {
    let Expr::Lit(lit) = &expr else { return Ok(expr) };
    let example = match &lit.lit {
        // A duration is probably meant as the delay of each restart.
        Lit::Str(text) if humantime::parse_duration(&text.value()).is_ok() => {
            format!("backoff(constant, delay = \"{}\")", text.value())
        }
        _ => example.to_owned(),
    };
    fail(expr, format!("a backoff begins with its curve; write `{example}`"))
}
