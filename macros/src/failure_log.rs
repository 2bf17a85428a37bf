//! `failure_log(…)`: how loudly failures are logged.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::{Error, Expr, Result};

use crate::advice::instead;
use crate::keys::Key;
use crate::made::Made;
use crate::settings::{Kind, Known, Settings};
use crate::value::{Value, lone_word, word};
use crate::words::LOG_LEVEL;

const EXAMPLE: &str = r#"failure_log(level = "info", critical = "error", after = 3)"#;

static SETTINGS: &[Known] = &[
    Known { name: "level", kind: Kind::Word(&LOG_LEVEL), example: r#"level = "info""# },
    Known { name: "critical", kind: Kind::Word(&LOG_LEVEL), example: r#"critical = "error""# },
    Known { name: "after", kind: Kind::Number(0..=u32::MAX), example: "after = 3" },
];

/// What stands in `failure_log(…)`.
pub(crate) fn in_parentheses(input: ParseStream<'_>, key: Span) -> Result<Value> {
    if input.is_empty() {
        return Err(Error::new(key, format!("there is nothing in it; write `{EXAMPLE}`")));
    }
    let mut settings = Settings::parse(input, EXAMPLE, |key| {
        let name = key.to_string();
        SETTINGS.iter().find(|known| known.name == name).ok_or_else(|| {
            let names: Vec<_> = SETTINGS.iter().map(|known| known.name).collect();
            let message = format!("`failure_log` has no `{name}`; {}", instead(&name, &names));
            Error::new(key.span(), message)
        })
    })?;
    for (one, other) in [("critical", &SETTINGS[2]), ("after", &SETTINGS[1])] {
        if let (Some(one), None) = (settings.get(one), settings.get(other.name)) {
            let (key, Known { name, example, .. }) = (&one.key, other);
            let message = format!("`{key}` needs `{name}`; add `{example}`, for example");
            return Err(Error::new(key.span(), message));
        }
    }
    let otherwise = || Value::Word { words: &LOG_LEVEL, variant: "Warn", span: key };
    let level = settings.take("level").unwrap_or_else(otherwise);
    let log = Made::new("FailureLog", "at", key, vec![level]);
    Ok(match (settings.take("critical"), settings.take("after")) {
        (Some(level), Some(after)) => log.then("critical", vec![level, after]).into(),
        _ => log.into(),
    })
}

/// What stands behind `failure_log = `: a level, or an expression of type `FailureLog`.
pub(crate) fn value(key: &Key, expr: Expr) -> Result<Value> {
    let is_level = matches!(&expr, Expr::Lit(_)) || lone_word(&expr).is_some();
    if !is_level {
        return Ok(Value::Expression(expr));
    }
    match word(&LOG_LEVEL, key.name, expr)? {
        Value::Word { words, variant, span } => {
            let level = Value::Word { words, variant, span };
            Ok(Made::new("FailureLog", "at", span, vec![level]).into())
        }
        other => Ok(other),
    }
}
