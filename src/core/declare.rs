//! Children that are declared, and values that change while they run.
//!
//! # Invariants
//!
//! 1. A new child and a new order start and stop nothing: they take effect with the next event.

use super::{ChildAnswer, Declaration, Effect, Machine, StepCx, each};

impl Machine {
    /// Takes in a declaration. Returns whether something may follow from it now.
    pub(super) fn declare(&mut self, declaration: Declaration, cx: &mut StepCx<'_>) -> bool {
        match declaration {
            Declaration::Child { rules, links } => {
                let key = each!(self, kind => kind.add(rules, cx));
                if !links.is_empty() {
                    self.children_mut().link(key, links);
                }
                return false;
            }
            Declaration::Links { key, links } => {
                if self.children().state(key).is_some() {
                    self.children_mut().link(key, links);
                }
            }
            Declaration::Order(keys) => {
                if let Self::Ordered(ordered) = self {
                    ordered.reorder(&keys);
                }
                return false;
            }
            Declaration::ChildRules { ticket, key, rules, trial } => {
                let answer = match self.children().state(key) {
                    None => Some(ChildAnswer::NotFound),
                    Some(_) if self.is_ending() => Some(ChildAnswer::ShuttingDown),
                    Some(_) => self.children_mut().configure(key, rules, ticket, trial, cx),
                };
                if let (Some(ticket), Some(answer)) = (ticket, answer) {
                    cx.push(Effect::Reply { ticket, answer });
                }
            }
            Declaration::Rules(rules) => self.children_mut().set_rules(rules, cx),
        }
        true
    }
}
