//! Rules that concern several children, or a child and its supervisor.

use super::options;
use crate::errors::Errors;
use crate::hints::instead;
use crate::keys::Place;
use crate::model::{ChildField, Node};

/// Checks an annotated struct.
pub(crate) fn node(node: &Node, errors: &mut Errors) {
    options::supervisor(&node.args, errors);
    for child in &node.children {
        match child.args.place {
            Place::Dynamic => options::dynamic(&child.args, errors),
            _ => options::child(&child.args, errors),
        }
    }
    auto_shutdown(node, errors);
    names(&node.children, errors);
    requirements(node, errors);
}

fn auto_shutdown(node: &Node, errors: &mut Errors) {
    let args = &node.args;
    let ignored = args.get("auto_shutdown").is_none() || args.is_set_to("auto_shutdown", "Never");
    let significant = node.children.iter().filter_map(|child| child.args.ident("significant"));
    errors.each(
        significant.filter(|_| ignored),
        format!(
            "`{}` doesn't end when a significant child does; add `auto_shutdown = \
             \"any_significant\"` to it, or remove `significant`",
            node.ident,
        ),
    );
}

fn names(children: &[ChildField], errors: &mut Errors) {
    for (index, child) in children.iter().enumerate() {
        let name = child.name.value();
        // Conditions may exclude one of the two.
        let same = |other: &ChildField| {
            other.name.value() == name && other.cfgs.is_empty() && child.cfgs.is_empty()
        };
        if !child.args.is_invalid("name") && children[..index].iter().any(same) {
            let message =
                format!("there is a child named `{name}` already; give one of them another name");
            errors.at(&child.name, message);
        }
    }
}

/// Refuses requirements that can't be met. Circles are left to `build()`, which knows all children.
fn requirements(node: &Node, errors: &mut Errors) {
    let children = &node.children;
    if children.iter().any(|child| child.args.is_invalid("name")) {
        return;
    }
    // An expression may be either, so `build()` checks the order then.
    let is_sequential =
        node.args.get("start").is_none() || node.args.is_set_to("start", "Sequential");
    let names: Vec<_> = children.iter().map(|child| child.name.value()).collect();
    for (index, child) in children.iter().enumerate() {
        for required in child.args.requires() {
            let value = required.value();
            let message = match names.iter().position(|name| *name == value) {
                None => no_sibling(&value, &names[index], &names),
                Some(at) if at == index => format!("`{value}` can't require itself; remove this"),
                Some(at) if at > index && is_sequential => format!(
                    "`{value}` is declared after `{}`, so it would start later; declare it first, \
                     or let the supervisor `start = \"concurrent\"`",
                    names[index]
                ),
                Some(_) => continue,
            };
            errors.at(required, message);
        }
    }
}

fn no_sibling(required: &str, child: &str, names: &[String]) -> String {
    let siblings: Vec<_> = names.iter().map(String::as_str).filter(|name| *name != child).collect();
    if siblings.is_empty() {
        return format!(
            "there is no sibling `{required}`, since there is no other child; remove this"
        );
    }
    format!("there is no sibling `{required}`; {}", instead(required, &siblings, None))
}
