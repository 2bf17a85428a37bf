//! The rules about keys that concern more than one of them, or more than one child.
//!
//! Each mistake is told once, at the token that would have to change.

use syn::LitStr;

use crate::advice::instead;
use crate::args::Args;
use crate::errors::Errors;
use crate::node::{ChildField, Kind, Node};

pub(crate) fn node(node: &Node, errors: &mut Errors) {
    supervisor(&node.args, errors);
    both_backoffs(&node.args, errors);
    for child in &node.children {
        if child.kind == Kind::Dynamic {
            supervisor(&child.args, errors);
            both_on_child(&child.args, errors);
            significant(&child.args, errors);
        } else {
            spec(&child.args, errors);
        }
    }
    auto_shutdown(node, errors);
    names(&node.children, errors);
    requirements(node, errors);
}

/// What contradicts itself in a supervisor's keys.
fn supervisor(args: &Args, errors: &mut Errors) {
    limits(args, errors);
    if let Some(defaults) = args.group("defaults") {
        limits(defaults, errors);
    }
    if let Some(itself) = args.group("child") {
        spec(itself, errors);
    }
}

/// What contradicts itself in a child's keys.
pub(crate) fn spec(args: &Args, errors: &mut Errors) {
    limits(args, errors);
    significant(args, errors);
}

/// What contradicts itself in how many restarts are allowed.
fn limits(args: &Args, errors: &mut Errors) {
    let keys = ["max_restarts", "period", "intensity", "unlimited_restarts"];
    if keys.iter().any(|key| args.is_wrong(key)) {
        return;
    }
    let [max, period, intensity, unlimited] = keys.map(|key| args.get(key).map(|arg| &arg.ident));
    match (max.or(period), intensity, unlimited) {
        (Some(limit), _, Some(_)) | (None, Some(limit), Some(_)) => errors.at(
            limit,
            format!("`{limit}` limits what `unlimited_restarts` allows; remove one of the two"),
        ),
        (Some(limit), Some(second), None) => errors
            .at(second, format!("`{second}` sets the same as `{limit}`; remove one of the two")),
        (_, _, None) => match (max, period) {
            (Some(max), None) => {
                let message =
                    "`max_restarts` needs a `period`; add `period = \"60s\"`, for example";
                errors.at(max, message);
            }
            (None, Some(period)) => {
                let message = "`period` needs `max_restarts`; add `max_restarts = 5`, for example";
                errors.at(period, message);
            }
            (Some(_), Some(_)) | (None, None) => {}
        },
        (None, None, Some(_)) => {}
    }
}

/// `backoff(…)` of a supervisor is short for `defaults(backoff(…))`.
fn both_backoffs(args: &Args, errors: &mut Errors) {
    let default = args.group("defaults").and_then(|defaults| defaults.get("backoff"));
    if let (Some(_), Some(second)) = (args.get("backoff"), default) {
        errors.at(
            &second.ident,
            "`backoff` of a supervisor is the default of its children already; remove one of the \
             two",
        );
    }
}

/// A dynamic supervisor is told of as a child with and without `child(…)`.
fn both_on_child(args: &Args, errors: &mut Errors) {
    for second in args.group("child").into_iter().flat_map(Args::iter) {
        let own = args.get(second.key.name).filter(|own| own.key.is_of_child());
        if own.is_some() {
            let key = &second.ident;
            errors.at(key, format!("`{key}` is already set; remove one of the two"));
        }
    }
}

/// Permanent is who restarts always, unless an exception says otherwise.
fn significant(args: &Args, errors: &mut Errors) {
    let is_permanent = args.word("restart") == Some("Permanent") && args.get("stop_if").is_none();
    if let Some(significant) = args.get("significant").filter(|_| is_permanent) {
        errors.at(
            &significant.ident,
            "a permanent child never ends for good, so its end can't be significant; write \
             `restart = \"transient\"` or remove `significant`",
        );
    }
}

fn auto_shutdown(node: &Node, errors: &mut Errors) {
    let ignored = match node.args.get("auto_shutdown") {
        None => true,
        Some(_) => node.args.word("auto_shutdown") == Some("Never"),
    };
    let significant = node.children.iter().filter_map(|child| child.args.get("significant"));
    for significant in significant.filter(|_| ignored) {
        errors.at(
            &significant.ident,
            format!(
                "`{}` doesn't end when a significant child does; add `auto_shutdown = \
                 \"any_significant\"` to it, or remove `significant`",
                node.ident,
            ),
        );
    }
}

fn names(children: &[ChildField], errors: &mut Errors) {
    for (index, child) in children.iter().enumerate() {
        let name = child.name.value();
        let same = |other: &&ChildField| other.name.value() == name && !other.may_exclude(child);
        if !child.args.is_wrong("name") && children[..index].iter().any(|other| same(&other)) {
            errors.at(
                &child.name,
                format!("there is a child named `{name}` already; give one of them another name"),
            );
        }
    }
}

fn requirements(node: &Node, errors: &mut Errors) {
    let children = &node.children;
    if children.iter().any(|child| child.args.is_wrong("name")) {
        return;
    }
    let position =
        |name: &LitStr| children.iter().position(|child| child.name.value() == name.value());
    let before = errors.count();
    for (index, child) in children.iter().enumerate() {
        for required in child.args.requires() {
            match position(required) {
                None => errors.at(required, no_sibling(required, child, children)),
                Some(required_index) if required_index == index => {
                    let value = required.value();
                    errors.at(required, format!("`{value}` can't require itself; remove this"));
                }
                Some(_) => {}
            }
        }
    }
    if errors.count() > before {
        return;
    }
    // Only what is known: an expression may mean either.
    match (node.args.get("start"), node.args.word("start")) {
        (None, _) | (_, Some("Sequential")) => in_order(children, position, errors),
        _ => no_circle(children, position, errors),
    }
}

fn no_sibling(required: &LitStr, child: &ChildField, children: &[ChildField]) -> String {
    let required = required.value();
    let names = children.iter().map(|other| other.name.value());
    let names: Vec<_> = names.filter(|name| *name != child.name.value()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    match &*names {
        [] => {
            format!("there is no sibling `{required}`, since there is no other child; remove this")
        }
        names => format!("there is no sibling `{required}`; {}", instead(&required, names)),
    }
}

/// Children that start one after the other can require only what is declared before them.
fn in_order(
    children: &[ChildField],
    position: impl Fn(&LitStr) -> Option<usize>,
    errors: &mut Errors,
) {
    for (index, child) in children.iter().enumerate() {
        let later = |required: &&LitStr| position(required).is_some_and(|at| at > index);
        for required in child.args.requires().iter().filter(later) {
            let value = required.value();
            errors.at(
                required,
                format!(
                    "`{value}` is declared after `{}`, so it would start later; declare it first, \
                     or let the supervisor `start = \"concurrent\"`",
                    child.name.value(),
                ),
            );
        }
    }
}

/// Tells of one circle, at the requirement that closes it.
fn no_circle(
    children: &[ChildField],
    position: impl Fn(&LitStr) -> Option<usize>,
    errors: &mut Errors,
) {
    for start in 0..children.len() {
        let mut done = vec![false; children.len()];
        let mut walk = vec![(start, children[start].args.requires().iter())];
        while let Some((_, requires)) = walk.last_mut() {
            let Some(required) = requires.next() else {
                walk.pop();
                continue;
            };
            let Some(next) = position(required) else { continue };
            if next == start {
                let names = walk.iter().map(|(index, _)| children[*index].name.value());
                let names: Vec<_> = names.chain([children[start].name.value()]).collect();
                let circle = names.join(" → ");
                errors.at(
                    required,
                    format!("these children require each other in a circle: {circle}; remove this or another"),
                );
                return;
            }
            if next > start && !std::mem::replace(&mut done[next], true) {
                walk.push((next, children[next].args.requires().iter()));
            }
        }
    }
}
