//! Dynamic children as one line: `conn#… ×501  500 active, 1 restarting`.
//!
//! Knows names and problems only, so that the command `tree` and the live view fold alike.
//!
//! # Invariants
//!
//! 1. A child is in the list once, or counted in one line. A child with a problem may be both.
//! 2. At most [`MOST`] children with problems stay visible beside their line: a program in which all connections
//!    fail has one failure, not thousands.

use std::collections::{BTreeMap, HashMap};

use crate::text::Text;

/// How many dynamic children of one name a supervisor shows one by one.
pub(crate) const MOST: usize = 8;

/// A part of a list of siblings, by their positions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    One(usize),
    /// All that share a name before their `#`, with or without a problem.
    Many(Vec<usize>),
}

/// The name that `conn#7` shares with its siblings: `conn`.
pub(crate) fn stem(name: &str) -> Option<&str> {
    name.split_once('#').map(|(stem, _)| stem)
}

/// Folds siblings, of which it gets the names and whether they have a problem.
pub(crate) fn fold<'a>(siblings: impl Iterator<Item = (&'a str, bool)>) -> Vec<Part> {
    let siblings: Vec<_> = siblings.collect();
    let mut members: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, stem) in siblings.iter().enumerate().filter_map(|(at, it)| Some((at, stem(it.0)?))) {
        members.entry(stem).or_default().push(at);
    }
    members.retain(|_, members| members.len() > MOST);
    let mut parts = Vec::new();
    let mut is_in_line = vec![false; siblings.len()];
    for (at, (name, _)) in siblings.iter().enumerate() {
        // The line stands in the place of the first of its children.
        if let Some(members) = stem(name).and_then(|stem| members.remove(stem)) {
            members.iter().for_each(|&member| is_in_line[member] = true);
            let failing = members.iter().copied().filter(|&member| siblings[member].1).take(MOST);
            let failing: Vec<_> = failing.map(Part::One).collect();
            parts.push(Part::Many(members));
            parts.extend(failing);
        } else if !is_in_line[at] {
            parts.push(Part::One(at));
        }
    }
    parts
}

/// Counts children by state, the most frequent first: `500 active, 1 restarting`.
pub(crate) fn counts<'a>(states: impl Iterator<Item = &'a Text>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for state in states {
        *counts.entry(state).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let counts: Vec<_> =
        counts.into_iter().map(|(state, count)| format!("{count} {state}")).collect();
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds the names. One with `!` has a problem.
    fn folded(names: &[String]) -> Vec<Part> {
        fold(names.iter().map(|name| (name.trim_end_matches('!'), name.ends_with('!'))))
    }

    fn conns(numbers: impl Iterator<Item = usize>) -> Vec<String> {
        numbers.map(|number| format!("conn#{number}")).collect()
    }

    #[test]
    fn up_to_eight_children_of_one_name_are_listed() {
        let parts = folded(&conns(0..8));
        assert_eq!(parts, (0..8).map(Part::One).collect::<Vec<_>>());
        assert_eq!(folded(&conns(0..9)), [Part::Many((0..9).collect())]);
        // Nine of two names, and a declared child.
        let mut mixed = conns(0..7);
        mixed.extend(["job#1", "job#2", "db"].map(str::to_owned));
        assert_eq!(folded(&mixed).len(), 10);
    }

    #[test]
    fn a_child_with_a_problem_stays_visible_behind_its_line() {
        let mut names = vec!["a".to_owned()];
        names.extend(conns(0..9));
        names.extend(["b".to_owned(), "conn#9!".to_owned()]);
        let line = Part::Many((1..10).chain([11]).collect());
        assert_eq!(folded(&names), [Part::One(0), line, Part::One(11), Part::One(10)]);
    }

    #[test]
    fn a_name_in_which_everything_fails_shows_eight() {
        let names: Vec<_> = conns(0..500).into_iter().map(|name| name + "!").collect();
        assert_eq!(folded(&names).len(), 1 + MOST);
    }

    #[test]
    fn states_are_counted_with_the_most_frequent_first() {
        let states = ["restarting", "active", "active"].map(Text::from);
        assert_eq!(counts(states.iter()), "2 active, 1 restarting");
    }
}
