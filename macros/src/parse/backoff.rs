//! `backoff(curve, …)`, for the curves and settings in daily use. The others take an expression.

use std::time::Duration;

use humantime::format_duration;
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Expr, Ident, Lit, Result, Token, token};

use super::input::{self, is_over};
use super::scalar::Scalar;
use crate::keys::Usage;
use crate::suggestion::{closest, instead, list};

/// A curve: a constructor of `Backoff`, and the settings that go with it.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    /// The arguments of the constructor, in order. The shortest wait comes first.
    pub(crate) arguments: &'static [Argument],
    /// The settings that are methods of the backoff.
    pub(crate) methods: &'static [&'static str],
    example: &'static str,
}

pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) fallback: Fallback,
}

/// The value of an argument that isn't written.
#[derive(Clone, Copy)]
pub(crate) enum Fallback {
    Required,
    Millis(u64),
    SameAs(&'static str),
}

const fn argument(name: &'static str, fallback: Fallback) -> Argument {
    Argument { name, fallback }
}

const MIN: Argument = argument("min", Fallback::Millis(200));
const MAX: Argument = argument("max", Fallback::Millis(30_000));

pub(crate) static CURVES: &[Curve] = &[
    Curve {
        name: "exponential",
        arguments: &[MIN, MAX],
        methods: &["factor", "jitter", "reset_after"],
        example: r#"backoff(exponential, min = "200ms", max = "30s")"#,
    },
    Curve {
        name: "linear",
        arguments: &[
            argument("base", Fallback::Required),
            argument("step", Fallback::SameAs("base")),
            MAX,
        ],
        methods: &["jitter", "reset_after"],
        example: r#"backoff(linear, base = "2s", max = "30s")"#,
    },
    Curve {
        name: "constant",
        arguments: &[argument("delay", Fallback::Required)],
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

/// What a setting takes.
enum SettingKind {
    Wait,
    Number { allowed: fn(f64) -> bool, what: &'static str },
}

struct SettingRule {
    usage: Usage,
    kind: SettingKind,
}

const fn wait(name: &'static str, example: &'static str) -> SettingRule {
    SettingRule { usage: Usage { name, example }, kind: SettingKind::Wait }
}

static SETTINGS: &[SettingRule] = &[
    wait("min", r#"min = "5s""#),
    wait("max", r#"max = "5s""#),
    wait("base", r#"base = "5s""#),
    wait("step", r#"step = "5s""#),
    wait("delay", r#"delay = "5s""#),
    wait("reset_after", r#"reset_after = "5s""#),
    SettingRule {
        usage: Usage { name: "factor", example: "factor = 2.0" },
        kind: SettingKind::Number {
            allowed: |value| value.is_finite() && value >= 1.0,
            what: "a number of at least 1",
        },
    },
    SettingRule {
        usage: Usage { name: "jitter", example: "jitter = 0.2" },
        kind: SettingKind::Number { allowed: |value| (0.0..=1.0).contains(&value), what: JITTER },
    },
];

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
        let value = self.curve.rule(&key)?.parse(&key, input)?;
        if self.setting(&key.to_string()).is_some() {
            let message = format!("`{key}` is already set; remove one of the two");
            return Err(Error::new(key.span(), message));
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
        let missing = arguments.iter().find(|argument| {
            matches!(argument.fallback, Fallback::Required) && self.setting(argument.name).is_none()
        });
        let Some(Argument { name: missing, .. }) = missing else { return Ok(()) };
        let message = format!("the curve `{name}` needs `{missing}`; write `{example}`");
        Err(Error::new(self.span, message))
    }

    /// Refuses a first wait that is zero, or longer than the last one.
    fn check_waits(&self) -> Result<()> {
        let Some(first) = self.curve.first() else { return Ok(()) };
        let (Some(min), min_span) = self.known(first) else { return Ok(()) };
        if let (true, Some(span)) = (min.is_zero() && first != "delay", min_span) {
            let message = format!("`{first}` can't be zero; write `backoff(none)` for no wait");
            return Err(Error::new(span, message));
        }
        let (Some(max), max_span) = self.known("max") else { return Ok(()) };
        if min <= max {
            return Ok(());
        }
        let (span, message) = match (max_span, min_span) {
            (Some(span), Some(_)) => {
                (span, format!("`max` is less than `{first}`; write at least as much"))
            }
            (Some(span), None) => {
                let min = format_duration(min);
                let unless = "unless it is written; write both";
                (span, format!("`max` is less than `{first}`, which is {min} {unless}"))
            }
            (None, span) => {
                let max = format_duration(max);
                let unless = "unless it is written; write both";
                let message = format!("`{first}` is more than `max`, which is {max} {unless}");
                (span.unwrap_or(self.span), message)
            }
        };
        Err(Error::new(span, message))
    }

    /// Returns the duration of an argument, and where it is written.
    fn known(&self, name: &str) -> (Option<Duration>, Option<Span>) {
        match self.setting(name) {
            Some(Scalar::Duration(duration, span)) => (Some(*duration), Some(*span)),
            Some(_) => (None, None),
            None => {
                let argument = self.curve.arguments.iter().find(|argument| argument.name == name);
                match argument.map(|argument| argument.fallback) {
                    Some(Fallback::Millis(millis)) => (Some(Duration::from_millis(millis)), None),
                    _ => (None, None),
                }
            }
        }
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
    let text = word.to_string();
    let all: Vec<_> = names.iter().copied().chain(EXPRESSION_CURVES).collect();
    let instead = match closest(&text, &all) {
        Some(meant) if EXPRESSION_CURVES.contains(&meant) => {
            format!("write an expression: `backoff = Backoff::{meant}(…)`")
        }
        _ => instead(&text, &names),
    };
    Err(Error::new(word.span(), format!("unknown backoff curve `{text}`; {instead}")))
}

impl Curve {
    /// Returns the shortest wait.
    fn first(&self) -> Option<&'static str> {
        self.arguments.first().map(|argument| argument.name)
    }

    /// Returns all settings that go with this curve.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &'static str> {
        let arguments = self.arguments.iter().map(|argument| argument.name);
        arguments.chain(self.methods.iter().copied())
    }

    fn rule(&self, key: &Ident) -> Result<&'static SettingRule> {
        let name = key.to_string();
        let rule = SETTINGS.iter().find(|rule| rule.usage.name == name);
        if let Some(rule) = rule.filter(|rule| self.settings().any(|own| own == rule.usage.name)) {
            return Ok(rule);
        }
        let curve = self.name;
        let message = format!("a backoff with the curve `{curve}` has no `{name}`");
        Err(Error::new(key.span(), format!("{message}; {}", self.without(&name))))
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

impl SettingRule {
    fn parse(&self, key: &Ident, input: ParseStream<'_>) -> Result<Scalar> {
        let Usage { name, example } = self.usage;
        if input.peek(token::Paren) && name == "jitter" {
            return Err(Error::new(key.span(), format!("`{name}` is {JITTER}; write `{example}`")));
        }
        if input.parse::<Token![=]>().is_err() || is_over(input) {
            let message = format!("`{name}` needs a value; write `{example}`");
            return Err(Error::new(key.span(), message));
        }
        let expr = input::expression(input)?;
        match self.kind {
            SettingKind::Wait => Scalar::duration(self.usage, true, expr),
            SettingKind::Number { allowed, what } => {
                Scalar::fraction(self.usage, allowed, what, expr)
            }
        }
    }
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
    Err(Error::new_spanned(expr, format!("a backoff begins with its curve; write `{example}`")))
}
