//! `backoff(curve, …)`: its own little table, its checks, and the call that it becomes.

use std::time::Duration;

use humantime::format_duration;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Ident, Lit, Path, Result, Token, UnOp};

use crate::advice::instead;
use crate::shown::at;
use crate::value::{Value, duration_tokens, expression};

/// A curve: a constructor of `Backoff`, with the durations that it takes in order.
struct Curve {
    name: &'static str,
    durations: &'static [Wait],
    example: &'static str,
}

/// An argument of a constructor.
struct Wait {
    key: &'static str,
    /// What it is if it isn't written: a duration, or another argument.
    otherwise: Otherwise,
}

enum Otherwise {
    None,
    Millis(u64),
    SameAs(&'static str),
}

const CURVES: &[Curve] = &[
    Curve {
        name: "exponential",
        durations: &[
            Wait { key: "min", otherwise: Otherwise::Millis(200) },
            Wait { key: "max", otherwise: Otherwise::Millis(30_000) },
        ],
        example: r#"backoff(exponential, min = "200ms", max = "30s")"#,
    },
    Curve {
        name: "linear",
        durations: &[
            Wait { key: "base", otherwise: Otherwise::None },
            Wait { key: "step", otherwise: Otherwise::SameAs("base") },
            Wait { key: "max", otherwise: Otherwise::Millis(30_000) },
        ],
        example: r#"backoff(linear, base = "2s", max = "30s")"#,
    },
    Curve {
        name: "constant",
        durations: &[Wait { key: "delay", otherwise: Otherwise::None }],
        example: r#"backoff(constant, delay = "5s")"#,
    },
    Curve { name: "none", durations: &[], example: "backoff(none)" },
];

/// What is set on a backoff after it is made, by a method of the same name.
const MODIFIERS: &[&str] = &["factor", "jitter", "reset_after"];

/// A backoff that can work, as far as it can be known here.
pub(crate) struct Backoff {
    curve: &'static Curve,
    curve_span: Span,
    settings: Vec<Setting>,
}

struct Setting {
    key: Ident,
    value: Scalar,
}

enum Scalar {
    Wait(Value),
    Fraction(Expr),
}

impl Backoff {
    /// Parses what stands in the parentheses; `span` is the key's.
    pub(crate) fn parse(input: ParseStream<'_>, span: Span) -> Result<Self> {
        let names: Vec<_> = CURVES.iter().map(|curve| curve.name).collect();
        if input.is_empty() || input.peek2(Token![=]) {
            let span = if input.is_empty() { span } else { input.span() };
            let message = format!(
                "a backoff begins with its curve, which is one of `{}`; write `{}`, for example",
                names.join("`, `"),
                CURVES[0].example,
            );
            return Err(Error::new(span, message));
        }
        let word = Ident::parse_any(input)?;
        let curve = CURVES.iter().find(|curve| word == curve.name).ok_or_else(|| {
            let instead = instead(&word.to_string(), &names);
            Error::new(word.span(), format!("unknown backoff curve `{word}`; {instead}"))
        })?;
        let mut backoff = Self { curve, curve_span: word.span(), settings: Vec::new() };
        while !input.is_empty() {
            if input.parse::<Token![,]>().is_err() {
                return Err(input.error("a comma is missing before this"));
            }
            if input.is_empty() {
                break;
            }
            let setting = backoff.setting(input)?;
            if backoff.settings.iter().any(|other| other.key == setting.key) {
                let message = format!("`{}` is already set; remove one of the two", setting.key);
                return Err(Error::new(setting.key.span(), message));
            }
            backoff.settings.push(setting);
        }
        backoff.check()?;
        Ok(backoff)
    }

    fn setting(&self, input: ParseStream<'_>) -> Result<Setting> {
        let key = Ident::parse_any(input).map_err(|error| {
            let message = format!("a setting begins with its name, as in `{}`", self.curve.example);
            Error::new(error.span(), message)
        })?;
        let name = key.to_string();
        let mut known: Vec<_> = self.curve.durations.iter().map(|wait| wait.key).collect();
        let is_wait = known.contains(&name.as_str()) || name == "reset_after";
        known.extend(MODIFIERS.iter().filter(|modifier| self.takes(modifier)));
        if !known.contains(&name.as_str()) {
            let message = format!(
                "a backoff with the curve `{}` has no `{name}`; {}",
                self.curve.name,
                instead(&name, &known),
            );
            return Err(Error::new(key.span(), message));
        }
        let example = match name.as_str() {
            "factor" => "factor = 2.0".to_owned(),
            "jitter" => "jitter = 0.2".to_owned(),
            _ => format!("{name} = \"5s\""),
        };
        if input.parse::<Token![=]>().is_err() || input.is_empty() || input.peek(Token![,]) {
            let message = format!("`{name}` needs a value; write `{example}`");
            return Err(Error::new(key.span(), message));
        }
        let expr = expression(input)?;
        let value = if is_wait {
            Scalar::Wait(Value::duration(&name, &example, expr)?)
        } else {
            Scalar::Fraction(fraction(&name, &example, expr)?)
        };
        Ok(Setting { key, value })
    }

    fn takes(&self, modifier: &str) -> bool {
        match modifier {
            "factor" => self.curve.name == "exponential",
            _ => self.curve.name != "none",
        }
    }

    fn check(&self) -> Result<()> {
        for wait in self.curve.durations {
            if matches!(wait.otherwise, Otherwise::None) && self.written(wait.key).is_none() {
                let message = format!(
                    "the curve `{}` needs `{}`; write `{}`",
                    self.curve.name, wait.key, self.curve.example,
                );
                return Err(Error::new(self.curve_span, message));
            }
        }
        let first = self.curve.durations.first().filter(|wait| wait.key != "delay");
        let Some(first) = first else { return Ok(()) };
        if let (Some(Duration::ZERO), Some(span)) = (self.known(first.key), self.span(first.key)) {
            let message =
                format!("`{}` can't be zero; write `backoff(none)` for no wait", first.key);
            return Err(Error::new(span, message));
        }
        match (self.known(first.key), self.known("max")) {
            (Some(min), Some(max)) if min > max => {
                let first = first.key;
                let (span, message) = match self.span("max") {
                    Some(span) => {
                        (span, format!("`max` is less than `{first}`; write at least as much"))
                    }
                    None => {
                        let max = format_duration(max);
                        let message = format!(
                            "`{first}` is more than `max`, which is {max} unless it is written; \
                             write both",
                        );
                        (self.span(first).unwrap_or(self.curve_span), message)
                    }
                };
                Err(Error::new(span, message))
            }
            _ => Ok(()),
        }
    }

    fn written(&self, key: &str) -> Option<&Value> {
        let setting = self.settings.iter().find(|setting| setting.key == key)?;
        match &setting.value {
            Scalar::Wait(value) => Some(value),
            Scalar::Fraction(_) => None,
        }
    }

    /// The duration behind a key, if it is one that can be known here.
    fn known(&self, key: &str) -> Option<Duration> {
        match self.written(key) {
            Some(Value::Duration(duration, _)) => Some(*duration),
            Some(_) => None,
            None => {
                let wait = self.curve.durations.iter().find(|wait| wait.key == key)?;
                match wait.otherwise {
                    Otherwise::Millis(millis) => Some(Duration::from_millis(millis)),
                    Otherwise::None | Otherwise::SameAs(_) => None,
                }
            }
        }
    }

    fn span(&self, key: &str) -> Option<Span> {
        match self.written(key)? {
            Value::Duration(_, span) => Some(*span),
            _ => None,
        }
    }

    pub(crate) fn tokens(&self, krate: &Path) -> TokenStream {
        let constructor = Ident::new(self.curve.name, at(self.curve_span));
        let arguments = self.curve.durations.iter().map(|wait| self.argument(wait, krate));
        let mut tokens = quote!(#krate::Backoff::#constructor(#(#arguments),*));
        for Setting { key, value } in &self.settings {
            if MODIFIERS.iter().any(|modifier| key == modifier) {
                let value = match value {
                    Scalar::Wait(value) => value.tokens(krate),
                    Scalar::Fraction(expr) => expr.to_token_stream(),
                };
                tokens.extend(quote!(.#key(#value)));
            }
        }
        tokens
    }

    fn argument(&self, wait: &Wait, krate: &Path) -> TokenStream {
        match (self.written(wait.key), &wait.otherwise) {
            (Some(value), _) => value.tokens(krate),
            (None, Otherwise::Millis(millis)) => {
                duration_tokens(Duration::from_millis(*millis), self.curve_span)
            }
            (None, Otherwise::SameAs(key)) => {
                self.written(key).map(|value| value.tokens(krate)).unwrap_or_default()
            }
            (None, Otherwise::None) => TokenStream::new(),
        }
    }
}

/// A factor or a fraction: a number, or an expression. A whole number becomes a float, as the
/// builder's methods want it.
fn fraction(key: &str, example: &str, expr: Expr) -> Result<Expr> {
    let (allowed, text): (fn(f64) -> bool, _) = match key {
        "factor" => (|value| value.is_finite() && value >= 1.0, "a number of at least 1"),
        _ => (|value| (0.0..=1.0).contains(&value), "a number from 0 to 1"),
    };
    let wrong = |tokens: &dyn ToTokens| {
        let message = format!("`{key}` is {text}; write `{example}`");
        Err(Error::new_spanned(tokens.to_token_stream(), message))
    };
    match &expr {
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => match number.base10_parse() {
            Ok(value) if allowed(value) => Ok(expr),
            _ => wrong(&expr),
        },
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => match number.base10_parse::<f64>() {
            Ok(value) if allowed(value) => {
                let mut float = proc_macro2::Literal::f64_unsuffixed(value);
                float.set_span(number.span());
                syn::parse2(float.to_token_stream())
            }
            _ => wrong(&expr),
        },
        Expr::Lit(_) => wrong(&expr),
        Expr::Unary(negative) if matches!(negative.op, UnOp::Neg(_)) => wrong(&expr),
        _ => Ok(expr),
    }
}
