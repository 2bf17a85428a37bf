//! Keys of one attribute that contradict each other.

use crate::errors::Errors;
use crate::parse::Args;

/// Checks the options of a supervisor.
pub(super) fn supervisor(args: &Args, errors: &mut Errors) {
    any_supervisor(args, errors);
    // `backoff` of a supervisor is short for `defaults(backoff(…))`.
    let default = args.group("defaults").and_then(|defaults| defaults.get("backoff"));
    if let (Some(_), Some(second)) = (args.get("backoff"), default) {
        errors.at(
            &second.ident,
            "`backoff` of a supervisor is the default of its children already; remove one of the \
             two",
        );
    }
}

/// Checks the options of a dynamic supervisor, some of which are those of its child spec.
pub(super) fn dynamic(args: &Args, errors: &mut Errors) {
    any_supervisor(args, errors);
    for second in args.group("child").into_iter().flat_map(Args::iter) {
        let own = args.get(second.key.name).filter(|own| own.key.is_of_child());
        if own.is_some() {
            let key = &second.ident;
            errors.at(key, format!("`{key}` is already set; remove one of the two"));
        }
    }
    significant(args, errors);
}

fn any_supervisor(args: &Args, errors: &mut Errors) {
    limits(args, errors);
    if let Some(defaults) = args.group("defaults") {
        limits(defaults, errors);
    }
    if let Some(itself) = args.group("child") {
        child(itself, errors);
    }
}

/// Checks the options of a child.
pub(super) fn child(args: &Args, errors: &mut Errors) {
    limits(args, errors);
    significant(args, errors);
    config(args, errors);
}

fn limits(args: &Args, errors: &mut Errors) {
    if let Some(restarts) = args.group("own_restarts") {
        own_restarts(args, restarts, errors);
    }
    let keys = ["max_restarts", "period", "intensity", "unlimited_restarts"];
    if keys.iter().any(|key| args.is_invalid(key)) {
        return;
    }
    let [max, period, intensity, unlimited] = keys.map(|key| args.get(key).map(|arg| &arg.ident));
    let (key, message) = match (max.or(period), intensity, unlimited) {
        (Some(limit), _, Some(_)) | (None, Some(limit), Some(_)) => (
            limit,
            format!("`{limit}` limits what `unlimited_restarts` allows; remove one of the two"),
        ),
        (Some(limit), Some(second), None) => {
            (second, format!("`{second}` sets the same as `{limit}`; remove one of the two"))
        }
        (Some(max), None, None) if period.is_none() => {
            (max, "`max_restarts` needs a `period`; add `period = \"60s\"`, for example".into())
        }
        (Some(period), None, None) if max.is_none() => {
            (period, "`period` needs `max_restarts`; add `max_restarts = 5`, for example".into())
        }
        _ => return,
    };
    errors.at(key, message);
}

/// Checks the limit of one child.
fn own_restarts(args: &Args, restarts: &Args, errors: &mut Errors) {
    let Some(own) = args.get("own_restarts").map(|arg| &arg.ident) else { return };
    let [max, period] = ["max", "period"].map(|key| restarts.get(key).is_some());
    let other = ["intensity", "unlimited_restarts"].iter().find_map(|key| args.get(key));
    if !(max && period) {
        let missing = if max { "period = \"5m\"" } else { "max = 12" };
        errors.at(
            own,
            format!("`own_restarts` needs `max` and `period`; add `{missing}`, for example"),
        );
    } else if let Some(other) = other.map(|arg| &arg.ident) {
        errors.at(other, format!("`{other}` contradicts `own_restarts`; remove one of the two"));
    }
}

/// Refuses a permanent child that is significant, unless an exception lets it end for good.
fn significant(args: &Args, errors: &mut Errors) {
    let is_permanent = args.is_set_to("restart", "Permanent") && args.get("stop_if").is_none();
    if let Some(significant) = args.get("significant").filter(|_| is_permanent) {
        errors.at(
            &significant.ident,
            "a permanent child never ends for good, so its end can't be significant; write \
             `restart = \"transient\"` or remove `significant`",
        );
    }
}

/// Reports all options of a configuration without a type as one mistake.
fn config(args: &Args, errors: &mut Errors) {
    let mut options = args.iter().filter(|arg| arg.key.is_of_config());
    if let (None, Some(first)) = (args.get("config"), options.next()) {
        let key = &first.ident;
        let message = format!(
            "`{key}` needs the type of the configuration; add `config = Settings`, for example"
        );
        errors.at(key, message);
    }
}
