//! Rules that concern several children, or a child and its supervisor.

use syn::LitStr;

use super::options;
use crate::errors::Errors;
use crate::model::{ChildField, FieldKind, Node};
use crate::suggestion::instead;

/// Checks an annotated struct.
pub(crate) fn node(node: &Node, errors: &mut Errors) {
    options::supervisor(&node.args, errors);
    for child in &node.children {
        match child.kind {
            FieldKind::Dynamic => options::dynamic(&child.args, errors),
            FieldKind::Child | FieldKind::Supervisor => options::child(&child.args, errors),
        }
    }
    auto_shutdown(node, errors);
    names(&node.children, errors);
    requirements(node, errors);
}

fn auto_shutdown(node: &Node, errors: &mut Errors) {
    let args = &node.args;
    let ignored = args.get("auto_shutdown").is_none() || args.is_set_to("auto_shutdown", "Never");
    let significant = node.children.iter().filter_map(|child| child.args.get("significant"));
    for significant in significant.filter(|_| ignored) {
        let message = format!(
            "`{}` doesn't end when a significant child does; add `auto_shutdown = \
             \"any_significant\"` to it, or remove `significant`",
            node.ident,
        );
        errors.at(&significant.ident, message);
    }
}

fn names(children: &[ChildField], errors: &mut Errors) {
    for (index, child) in children.iter().enumerate() {
        let name = child.name.value();
        let same = |other: &&ChildField| other.name.value() == name && !other.may_exclude(child);
        if !child.args.is_invalid("name") && children[..index].iter().any(|other| same(&other)) {
            errors.at(
                &child.name,
                format!("there is a child named `{name}` already; give one of them another name"),
            );
        }
    }
}

/// The requirements of one child, each with the index of the sibling.
type Requirements<'a> = Vec<(usize, &'a LitStr)>;

fn requirements(node: &Node, errors: &mut Errors) {
    let children = &node.children;
    if children.iter().any(|child| child.args.is_invalid("name")) {
        return;
    }
    let mut requirements = Vec::new();
    let mut are_siblings = true;
    for (index, child) in children.iter().enumerate() {
        let mut resolved = Vec::new();
        for required in child.args.requires() {
            let value = required.value();
            let message = match children.iter().position(|child| child.name.value() == value) {
                None => no_sibling(&value, child, children),
                Some(at) if at == index => format!("`{value}` can't require itself; remove this"),
                Some(at) => {
                    resolved.push((at, required));
                    continue;
                }
            };
            errors.at(required, message);
            are_siblings = false;
        }
        requirements.push(resolved);
    }
    if !are_siblings {
        return;
    }
    // An expression may be either, so both rules are left to `build()`.
    if node.args.get("start").is_none() || node.args.is_set_to("start", "Sequential") {
        in_order(children, &requirements, errors);
    } else {
        no_circle(children, &requirements, errors);
    }
}

fn no_sibling(required: &str, child: &ChildField, children: &[ChildField]) -> String {
    let names = children.iter().map(|other| other.name.value());
    let names: Vec<_> = names.filter(|name| *name != child.name.value()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    match &*names {
        [] => {
            format!("there is no sibling `{required}`, since there is no other child; remove this")
        }
        names => format!("there is no sibling `{required}`; {}", instead(required, names, None)),
    }
}

/// Refuses a requirement that is declared later, where children start one after the other.
fn in_order(children: &[ChildField], requirements: &[Requirements<'_>], errors: &mut Errors) {
    for (index, (child, requires)) in children.iter().zip(requirements).enumerate() {
        for (_, required) in requires.iter().filter(|(at, _)| *at > index) {
            let (value, name) = (required.value(), child.name.value());
            let message = format!(
                "`{value}` is declared after `{name}`, so it would start later; declare it first, \
                 or let the supervisor `start = \"concurrent\"`"
            );
            errors.at(required, message);
        }
    }
}

/// Reports one circle, at the requirement that closes it.
fn no_circle(children: &[ChildField], requirements: &[Requirements<'_>], errors: &mut Errors) {
    for start in 0..children.len() {
        let mut done = vec![false; children.len()];
        let mut walk = vec![(start, requirements[start].iter())];
        while let Some((_, requires)) = walk.last_mut() {
            let Some((next, required)) = requires.next() else {
                walk.pop();
                continue;
            };
            if *next == start {
                let circle = walk.iter().map(|(index, _)| *index).chain([start]);
                let circle: Vec<_> = circle.map(|index| children[index].name.value()).collect();
                let message = format!(
                    "these children require each other in a circle: {}; remove one of the \
                     requirements",
                    circle.join(" → "),
                );
                return errors.at(required, message);
            }
            if *next > start && !std::mem::replace(&mut done[*next], true) {
                walk.push((*next, requirements[*next].iter()));
            }
        }
    }
}
