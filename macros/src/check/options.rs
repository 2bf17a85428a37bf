//! Keys of one attribute that contradict each other.

use crate::errors::Errors;
use crate::parse::Args;

/// Checks the options of a supervisor.
pub(super) fn supervisor(args: &Args, errors: &mut Errors) {
    any_supervisor(args, errors);
    // `backoff` of a supervisor is short for `defaults(backoff(…))`.
    let default = args.group("defaults").and_then(|defaults| defaults.ident("backoff"));
    errors.each(
        default.filter(|_| args.get("backoff").is_some()),
        "`backoff` of a supervisor is the default of its children already; remove one of the \
         two",
    );
}

/// Checks the options of a dynamic supervisor, some of which are those of its child spec.
pub(super) fn dynamic(args: &Args, errors: &mut Errors) {
    any_supervisor(args, errors);
    for second in args.group("child").into_iter().flat_map(Args::iter) {
        let key = &second.ident;
        if args.get(second.key.name).is_some_and(|own| own.key.is_of_child()) {
            errors.at(key, format!("`{key}` is already set; remove one of the two"));
        }
    }
    significant(args, errors);
}

fn any_supervisor(args: &Args, errors: &mut Errors) {
    limits(args, errors);
    graces(args, errors);
    if let Some(defaults) = args.group("defaults") {
        limits(defaults, errors);
        graces(defaults, errors);
    }
    if let Some(itself) = args.group("child") {
        child(itself, errors);
    }
}

/// Checks the options of a child.
pub(super) fn child(args: &Args, errors: &mut Errors) {
    limits(args, errors);
    graces(args, errors);
    significant(args, errors);
    config(args, errors);
}

/// Refuses two graces of one child.
fn graces(args: &Args, errors: &mut Errors) {
    errors.each(
        args.ident("drain").filter(|_| args.get("shutdown").is_some()),
        "`drain` sets the same as `shutdown`; remove one of the two",
    );
}

fn limits(args: &Args, errors: &mut Errors) {
    if let Some(restarts) = args.group("own_restarts") {
        own_restarts(args, restarts, errors);
    }
    let keys = ["max_restarts", "period", "intensity", "unlimited_restarts"];
    if keys.iter().any(|key| args.is_invalid(key)) {
        return;
    }
    let [max, period, intensity, unlimited] = keys.map(|key| args.ident(key));
    let limit = max.or(period);
    if let (Some(limit), Some(_)) = (limit.or(intensity), unlimited) {
        let message =
            format!("`{limit}` limits what `unlimited_restarts` allows; remove one of the two");
        errors.at(limit, message);
    } else if let (Some(limit), Some(second)) = (limit, intensity) {
        errors.at(second, format!("`{second}` sets the same as `{limit}`; remove one of the two"));
    } else if let (Some(max), None) = (max, period) {
        errors.at(max, "`max_restarts` needs a `period`; add `period = \"60s\"`, for example");
    } else if let (None, Some(period)) = (max, period) {
        errors.at(period, "`period` needs `max_restarts`; add `max_restarts = 5`, for example");
    }
}

/// Checks the limit of one child.
fn own_restarts(args: &Args, restarts: &Args, errors: &mut Errors) {
    let Some(own) = args.ident("own_restarts") else { return };
    let needed = [("max", "max = 12"), ("period", "period = \"5m\"")];
    let missing = needed.into_iter().find(|(key, _)| restarts.get(key).is_none());
    let other = ["intensity", "unlimited_restarts"].iter().find_map(|key| args.ident(key));
    if let Some((_, example)) = missing {
        let message =
            format!("`own_restarts` needs `max` and `period`; add `{example}`, for example");
        errors.at(own, message);
    } else if let Some(other) = other {
        errors.at(other, format!("`{other}` contradicts `own_restarts`; remove one of the two"));
    }
}

/// Refuses a permanent child that is significant, unless an exception lets it end for good.
fn significant(args: &Args, errors: &mut Errors) {
    let is_permanent =
        args.is_set_to("restart", "Permanent") && args.get("leave_down_if").is_none();
    errors.each(
        args.ident("significant").filter(|_| is_permanent),
        "a permanent child never ends for good, so its end can't be significant; write \
         `restart = \"transient\"` or remove `significant`",
    );
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
