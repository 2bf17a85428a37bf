//! Limits, and what follows when one is hit: `intensity(kind, …)` and `on_exhausted(…)`.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Lit, Result};

use crate::advice::instead;
use crate::keys::Key;
use crate::made::Made;
use crate::settings::{Kind, Known, Settings, head};
use crate::value::{Value, word};
use crate::words::ON_EXHAUSTED;

/// A kind of window, with the arguments of the function that makes one, in order.
struct Window {
    name: &'static str,
    arguments: [&'static Known; 2],
    example: &'static str,
}

static MAX: Known = Known { name: "max", kind: Kind::Number(0..=u32::MAX), example: "max = 5" };

static SCORE: Known = Known {
    name: "max",
    kind: Kind::Float {
        allowed: |score| score.is_finite() && score >= 0.0,
        text: "a number of at least 0",
    },
    example: "max = 5.0",
};

static PERIOD: Known =
    Known { name: "period", kind: Kind::Duration { zero: false }, example: r#"period = "60s""# };

static HALF_LIFE: Known = Known {
    name: "half_life",
    kind: Kind::Duration { zero: false },
    example: r#"half_life = "30s""#,
};

static WINDOWS: &[Window] = &[
    Window {
        name: "sliding",
        arguments: [&MAX, &PERIOD],
        example: r#"intensity(sliding, max = 5, period = "60s")"#,
    },
    Window {
        name: "tumbling",
        arguments: [&MAX, &PERIOD],
        example: r#"intensity(tumbling, max = 5, period = "60s")"#,
    },
    Window {
        name: "decaying",
        arguments: [&SCORE, &HALF_LIFE],
        example: r#"intensity(decaying, max = 5.0, half_life = "30s")"#,
    },
];

/// What stands in `intensity(…)`.
pub(crate) fn intensity(input: ParseStream<'_>, key: Span, example: &str) -> Result<Value> {
    let names: Vec<_> = WINDOWS.iter().map(|window| window.name).collect();
    let word = head(input, key, ("an intensity", "kind"), &names, example)?;
    let window = WINDOWS.iter().find(|window| word == window.name);
    let window = window.ok_or_else(|| Error::new(word.span(), "unknown intensity"))?;
    let mut settings = Settings::parse(input, window.example, |key| {
        let name = key.to_string();
        let known = window.arguments.into_iter().find(|known| known.name == name);
        known.ok_or_else(|| {
            let names = window.arguments.map(|known| known.name);
            let (kind, instead) = (window.name, instead(&name, &names));
            Error::new(key.span(), format!("a {kind} intensity has no `{name}`; {instead}"))
        })
    })?;
    let mut arguments = Vec::new();
    for known in window.arguments {
        let argument = settings.take(known.name).ok_or_else(|| {
            let Window { name, example, .. } = window;
            let message = format!("a {name} intensity needs `{}`; write `{example}`", known.name);
            Error::new(word.span(), message)
        })?;
        arguments.push(argument);
    }
    Ok(Made::new("Intensity", window.name, word.span(), arguments).into())
}

/// What stands behind `intensity = `.
pub(crate) fn intensity_value(key: &Key, expr: Expr) -> Result<Value> {
    match expr {
        Expr::Lit(lit) => {
            let message = format!("an intensity begins with its kind; write `{}`", key.example);
            Err(Error::new_spanned(lit, message))
        }
        expr => Ok(Value::Expression(expr)),
    }
}

/// What is not one word, each with its variant.
static ANSWERS: &[(Known, &str)] = &[
    (
        Known { name: "pause", kind: Kind::Duration { zero: false }, example: r#"pause = "15s""# },
        "Pause",
    ),
    (Known { name: "exit", kind: Kind::Number(0..=u8::MAX as u32), example: "exit = 3" }, "Exit"),
];

/// What stands in `on_exhausted(…)`.
pub(crate) fn on_exhausted(input: ParseStream<'_>, key: Span) -> Result<Value> {
    const EXAMPLE: &str = r#"on_exhausted(pause = "15s")"#;
    let settings = Settings::parse(input, EXAMPLE, |key| {
        let name = key.to_string();
        let mut known = ANSWERS.iter().map(|(known, _)| known);
        known.find(|known| known.name == name).ok_or_else(|| {
            let message = match ON_EXHAUSTED.variant(&name) {
                Some(_) => format!("this needs nothing; write `on_exhausted = \"{name}\"`"),
                None => {
                    let instead = instead(&name, &["pause", "exit"]);
                    format!("`on_exhausted` has no `{name}`; {instead}")
                }
            };
            Error::new(key.span(), message)
        })
    })?;
    let only = settings.only(key, EXAMPLE)?;
    let answer = ANSWERS.iter().find(|(known, _)| known.name == only.known.name);
    let variant = answer.map_or("", |(_, variant)| variant);
    Ok(Made::new("OnExhausted", variant, only.key.span(), only.values).into())
}

/// What stands behind `on_exhausted = `.
pub(crate) fn on_exhausted_value(key: &Key, expr: Expr) -> Result<Value> {
    if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &expr {
        let text = text.value();
        let (first, value) = text.split_once(' ').unwrap_or((&text, ""));
        if let Some((known, _)) = ANSWERS.iter().find(|(known, _)| known.name == first) {
            let meant = match (&known.kind, value.trim()) {
                (Kind::Duration { .. }, value) if humantime::parse_duration(value).is_ok() => {
                    format!("{first} = \"{value}\"")
                }
                (Kind::Number(_), value) if value.parse::<u8>().is_ok() => {
                    format!("{first} = {value}")
                }
                _ => known.example.to_owned(),
            };
            let message =
                format!("`{first}` has a value of its own; write `on_exhausted({meant})`");
            return Err(Error::new_spanned(expr, message));
        }
    }
    word(&ON_EXHAUSTED, key.name, expr)
}
