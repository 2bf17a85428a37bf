//! `backoff(curve, …)`: its own little table, its checks, and the call that it becomes.

pub(crate) mod jitter;

use std::time::Duration;

use humantime::format_duration;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::ParseStream;
use syn::{Error, Expr, Ident, Lit, LitInt, Path, Result};

use crate::advice::{instead, list};
use crate::settings::{Kind, Known, Setting, Settings, head};
use crate::shown::at;
use crate::value::{Value, duration_tokens};

/// A curve: a constructor of `Backoff`, with what it takes in order.
struct Curve {
    name: &'static str,
    arguments: &'static [Argument],
    /// What no other curve has, besides its arguments.
    own: &'static [&'static str],
    /// The type that the arguments and the rest belong to, if it is not the backoff itself.
    within: Option<&'static str>,
    example: &'static str,
}

/// An argument of a constructor.
struct Argument {
    key: &'static str,
    /// What it is if it isn't written: a duration, or another argument.
    otherwise: Otherwise,
}

enum Otherwise {
    None,
    Millis(u64),
    SameAs(&'static str),
}

const fn argument(key: &'static str) -> Argument {
    Argument { key, otherwise: Otherwise::None }
}

const MIN: Argument = Argument { key: "min", otherwise: Otherwise::Millis(200) };
const MAX: Argument = Argument { key: "max", otherwise: Otherwise::Millis(30_000) };
const STEP: Argument = Argument { key: "step", otherwise: Otherwise::SameAs("base") };

static CURVES: &[Curve] = &[
    Curve {
        name: "exponential",
        arguments: &[MIN, MAX],
        own: &["factor", "compounding"],
        within: None,
        example: r#"backoff(exponential, min = "200ms", max = "30s")"#,
    },
    Curve {
        name: "linear",
        arguments: &[argument("base"), STEP, MAX],
        own: &[],
        within: None,
        example: r#"backoff(linear, base = "2s", max = "30s")"#,
    },
    Curve {
        name: "constant",
        arguments: &[argument("delay")],
        own: &[],
        within: None,
        example: r#"backoff(constant, delay = "5s")"#,
    },
    Curve {
        name: "geometric",
        arguments: &[MIN, MAX, argument("steps")],
        own: &[],
        within: None,
        example: r#"backoff(geometric, min = "1s", max = "30s", steps = 5)"#,
    },
    Curve {
        name: "fibonacci",
        arguments: &[MIN, MAX],
        own: &[],
        within: None,
        example: r#"backoff(fibonacci, min = "200ms", max = "30s")"#,
    },
    Curve {
        name: "binary_slots",
        arguments: &[argument("slot")],
        own: &["ceiling", "stay_at_ceiling"],
        within: Some("BinarySlots"),
        example: r#"backoff(binary_slots, slot = "100ms", ceiling = 8)"#,
    },
    Curve { name: "none", arguments: &[], own: &[], within: None, example: "backoff(none)" },
];

/// What a backoff can be told whatever its curve, except that `none` has only [`RESETS`].
const OF_ANY: &[&str] = &[
    "jitter",
    "jitter_before_cap",
    "cap",
    "soft_cap",
    "hard_floor",
    "first_at_once",
    "at_once_after_reset",
];
const RESETS: &[&str] = &["reset", "reset_after", "half_life"];

const fn wait(name: &'static str, example: &'static str) -> Known {
    Known { name, kind: Kind::Duration { zero: true }, example }
}

const fn flag(name: &'static str) -> Known {
    Known { name, kind: Kind::Flag, example: name }
}

/// Of all curves, each with what it takes.
static SETTINGS: &[Known] = &[
    wait("min", r#"min = "5s""#),
    wait("max", r#"max = "5s""#),
    wait("base", r#"base = "5s""#),
    wait("step", r#"step = "5s""#),
    wait("delay", r#"delay = "5s""#),
    wait("slot", r#"slot = "100ms""#),
    Known {
        name: "factor",
        kind: Kind::Float {
            allowed: |value| value.is_finite() && value >= 1.0,
            text: "a number of at least 1",
        },
        example: "factor = 2.0",
    },
    flag("compounding"),
    Known { name: "steps", kind: Kind::Number(1..=u32::MAX), example: "steps = 5" },
    Known { name: "ceiling", kind: Kind::Number(1..=u32::MAX), example: "ceiling = 8" },
    flag("stay_at_ceiling"),
    Known { name: "jitter", kind: Kind::Jitter, example: "jitter = 0.2" },
    flag("jitter_before_cap"),
    wait("cap", r#"cap = "5s""#),
    flag("soft_cap"),
    flag("hard_floor"),
    flag("first_at_once"),
    flag("at_once_after_reset"),
    Known { name: "reset", kind: Kind::Resets, example: r#"reset = "on_ready""# },
    wait("reset_after", r#"reset_after = "5s""#),
    Known {
        name: "half_life",
        kind: Kind::Duration { zero: false },
        example: r#"half_life = "30s""#,
    },
];

impl Curve {
    /// What a backoff with this curve can be told.
    fn settings(&self) -> Vec<&'static str> {
        let of_any = if self.name == "none" { &[] } else { OF_ANY };
        let arguments = self.arguments.iter().map(|argument| argument.key);
        arguments.chain([self.own, of_any, RESETS].into_iter().flatten().copied()).collect()
    }

    /// The shortest wait, by which a curve begins.
    fn first(&self) -> Option<&'static str> {
        self.arguments.first().map(|argument| argument.key)
    }

    fn find(&self, key: &Ident) -> Result<&'static Known> {
        let (name, settings) = (key.to_string(), self.settings());
        let known = SETTINGS.iter().find(|known| known.name == name);
        if let Some(known) = known.filter(|known| settings.contains(&known.name)) {
            return Ok(known);
        }
        let others = CURVES.iter().filter(|curve| curve.settings().contains(&&*name));
        let others: Vec<_> = others.map(|curve| curve.name).collect();
        let begins_another = CURVES.iter().any(|curve| curve.first() == Some(&*name));
        let what_else = match (self.first(), &*others) {
            (Some(first), _) if begins_another => format!("did you mean `{first}`?"),
            (_, []) => instead(&name, &settings),
            (_, [only]) => format!("leave it out, or use `{only}`, the only one that has it"),
            (_, others) if others.len() + 1 == CURVES.len() => {
                "leave it out, or use another curve".to_owned()
            }
            (_, others) => format!("leave it out, or use {}", list(others, "or")),
        };
        let curve = self.name;
        let message = format!("a backoff with the curve `{curve}` has no `{name}`; {what_else}");
        Err(Error::new(key.span(), message))
    }
}

/// All curves, and all that they can be told.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let settings = SETTINGS.iter().map(|known| known.name);
    CURVES.iter().map(|curve| curve.name).chain(settings)
}

/// A backoff that can work, as far as it can be known here.
pub(crate) struct Backoff {
    curve: &'static Curve,
    curve_span: Span,
    settings: Settings,
}

impl Backoff {
    /// Parses what stands in the parentheses; `span` is the key's.
    pub(crate) fn parse(input: ParseStream<'_>, span: Span) -> Result<Self> {
        let names: Vec<_> = CURVES.iter().map(|curve| curve.name).collect();
        let word = head(input, span, ("a backoff", "curve"), &names, CURVES[0].example)?;
        let curve = CURVES.iter().find(|curve| word == curve.name).unwrap_or(&CURVES[0]);
        let settings = Settings::parse(input, curve.example, |key| curve.find(key))?;
        let backoff = Self { curve, curve_span: word.span(), settings };
        backoff.needs()?;
        backoff.waits()?;
        backoff.slots()?;
        backoff.resets()?;
        Ok(backoff)
    }

    fn needs(&self) -> Result<()> {
        for argument in self.curve.arguments {
            let key = argument.key;
            if matches!(argument.otherwise, Otherwise::None) && self.settings.get(key).is_none() {
                let Curve { name, example, .. } = self.curve;
                let message = format!("the curve `{name}` needs `{key}`; write `{example}`");
                return Err(Error::new(self.curve_span, message));
            }
        }
        Ok(())
    }

    /// The shortest wait is no wait at all, or longer than the longest one.
    fn waits(&self) -> Result<()> {
        let Some(first) = self.curve.first() else { return Ok(()) };
        if let (Some(Duration::ZERO), Some(span), true) =
            (self.known(first), self.span(first), first != "delay")
        {
            let message = format!("`{first}` can't be zero; write `backoff(none)` for no wait");
            return Err(Error::new(span, message));
        }
        let Some(min) = self.known(first).filter(|_| self.curve.within.is_none()) else {
            return Ok(());
        };
        for last in ["max", "cap"] {
            let Some(max) = self.known(last).filter(|max| min > *max) else { continue };
            let (span, message) = match (self.span(last), self.span(first)) {
                (Some(span), Some(_)) => {
                    (span, format!("`{last}` is less than `{first}`; write at least as much"))
                }
                (Some(span), None) => {
                    let min = format_duration(min);
                    let text = format!(
                        "`{last}` is less than `{first}`, which is {min} unless it is written; \
                         write both",
                    );
                    (span, text)
                }
                (None, span) => {
                    let max = format_duration(max);
                    let text = format!(
                        "`{first}` is more than `{last}`, which is {max} unless it is written; \
                         write both",
                    );
                    (span.unwrap_or(self.curve_span), text)
                }
            };
            return Err(Error::new(span, message));
        }
        Ok(())
    }

    /// Up to the first slot, and then from the first again, there is nothing to wait.
    fn slots(&self) -> Result<()> {
        let ceiling = self.settings.value("ceiling").and_then(|value| match value {
            Value::Number(number) => Some(number),
            _ => None,
        });
        let is_one =
            |number: &&LitInt| number.base10_parse::<u32>().is_ok_and(|ceiling| ceiling == 1);
        match (ceiling.filter(is_one), self.settings.get("stay_at_ceiling")) {
            (Some(one), None) => Err(Error::new(
                one.span(),
                "with a `ceiling` of 1 there is no wait at all; write at least 2, or add \
                 `stay_at_ceiling`",
            )),
            _ => Ok(()),
        }
    }

    fn resets(&self) -> Result<()> {
        let Some(Setting { values, .. }) = self.settings.get("reset") else { return Ok(()) };
        let never = values.iter().find_map(|value| match value {
            Value::Word { variant: "Never", span, .. } => Some(*span),
            _ => None,
        });
        let others = ["reset_after", "half_life"];
        let is_alone =
            values.len() == 1 && others.iter().all(|key| self.settings.get(key).is_none());
        match never {
            Some(never) if !is_alone => Err(Error::new(
                never,
                "`reset` can't be never, and something else; remove it, or the other rules",
            )),
            _ => Ok(()),
        }
    }

    /// The duration behind a key, if it is one that can be known here.
    fn known(&self, key: &str) -> Option<Duration> {
        match self.settings.value(key) {
            Some(Value::Duration(duration, _)) => Some(*duration),
            Some(_) => None,
            None => {
                let argument = self.curve.arguments.iter().find(|argument| argument.key == key)?;
                match argument.otherwise {
                    Otherwise::Millis(millis) => Some(Duration::from_millis(millis)),
                    Otherwise::None | Otherwise::SameAs(_) => None,
                }
            }
        }
    }

    fn span(&self, key: &str) -> Option<Span> {
        match self.settings.value(key)? {
            Value::Duration(_, span) => Some(*span),
            _ => None,
        }
    }

    pub(crate) fn tokens(&self, krate: &Path) -> TokenStream {
        let Self { curve, curve_span, settings } = self;
        let constructor = Ident::new(curve.name, at(*curve_span));
        let arguments = curve.arguments.iter().map(|argument| self.argument(argument, krate));
        let arguments = quote!(#(#arguments),*);
        let is_argument = |name| curve.arguments.iter().any(|argument| argument.key == name);
        let rest = settings.iter().filter(|setting| !is_argument(setting.known.name));
        let (own, of_any): (Vec<_>, Vec<_>) = rest
            .partition(|setting| curve.within.is_some() && curve.own.contains(&setting.known.name));
        let own: TokenStream = own.into_iter().map(|setting| call(setting, krate)).collect();
        let of_any: TokenStream = of_any.into_iter().map(|setting| call(setting, krate)).collect();
        let arguments = match curve.within {
            Some(ty) => {
                let ty = Ident::new(ty, at(*curve_span));
                quote!(#krate::#ty::new(#arguments) #own)
            }
            None => arguments,
        };
        quote!(#krate::Backoff::#constructor(#arguments) #of_any)
    }

    fn argument(&self, argument: &Argument, krate: &Path) -> TokenStream {
        match (self.settings.value(argument.key), &argument.otherwise) {
            (Some(value), _) => value.tokens(krate),
            (None, Otherwise::Millis(millis)) => {
                duration_tokens(Duration::from_millis(*millis), self.curve_span)
            }
            (None, Otherwise::SameAs(key)) => {
                self.settings.value(key).map(|value| value.tokens(krate)).unwrap_or_default()
            }
            (None, Otherwise::None) => TokenStream::new(),
        }
    }
}

/// The call of the method that is called like a setting.
fn call(setting: &Setting, krate: &Path) -> TokenStream {
    let Setting { key, known, values } = setting;
    if values.is_empty() {
        return quote!(.#key());
    }
    let calls = values.iter().map(|value| {
        let value = value.tokens(krate);
        if known.name == "half_life" {
            let reset = Ident::new("reset", key.span());
            quote!(.#reset(#krate::Reset::Decay { #key: #value }))
        } else {
            quote!(.#key(#value))
        }
    });
    calls.collect()
}

/// What stands behind `backoff = `.
pub(crate) fn value(expr: Expr, example: &str) -> Result<Value> {
    let Expr::Lit(lit) = expr else { return Ok(Value::Expression(expr)) };
    let example = match &lit.lit {
        // Probably meant for each wait.
        Lit::Str(text) if humantime::parse_duration(&text.value()).is_ok() => {
            format!("backoff(constant, delay = \"{}\")", text.value())
        }
        _ => example.to_owned(),
    };
    Err(Error::new_spanned(lit, format!("a backoff begins with its curve; write `{example}`")))
}
