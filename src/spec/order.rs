//! The start order: declaration order, moved only as far as `requires` asks for.
//!
//! A stable topological sort (Kahn's, the earliest declared first), so that the order of a tree is
//! a matter of reading it and never of timing.
//!
//! In loops, since every program compiles it and few use it: chains of iterators, collected, came to
//! three per cent of all that is compiled of this crate.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use crate::child::ChildSpec;
use crate::core::Key;
use crate::error::{BuildError, known};
use crate::path::Trail;
use crate::policy::Start;

/// The children in the order in which they start. Their keys, by name, are moved with them.
///
/// # Errors
///
/// If a requirement is unknown, part of a circle, or declared later although children start one
/// after the other.
pub(super) fn sorted(
    mut children: Vec<ChildSpec>,
    keys: &mut HashMap<Arc<str>, Key>,
    parent: &Trail,
    start: Start,
) -> Result<Vec<ChildSpec>, BuildError> {
    if children.iter().all(|child| child.requires.is_empty()) {
        return Ok(children);
    }
    let requires = requirements(&children, keys, parent)?;
    let order = order(&requires).map_err(|circle| {
        let names: Vec<_> = circle.iter().map(|&index| children[index].name()).collect();
        BuildError::RequirementCycle { parent: parent.path(), circle: names.join(" → ") }
    })?;
    if start == Start::Sequential {
        for (index, child) in children.iter().enumerate() {
            if let Some(&later) = requires[index].iter().find(|&&required| required > index) {
                let path = parent.join(child.name());
                let requirement = children[later].name().to_owned();
                return Err(BuildError::LaterRequirement { path, requirement });
            }
        }
    }
    arrange(&mut children, order);
    for (number, child) in (0..).zip(&children) {
        keys.insert(Arc::clone(&child.factory.name), Key::of_number(number));
    }
    Ok(children)
}

/// Puts to each place what was at the one that `order` says.
fn arrange<T>(items: &mut [T], mut order: Vec<usize>) {
    // Along each circle of those that change places.
    for first in 0..order.len() {
        let mut place = first;
        loop {
            let from = std::mem::replace(&mut order[place], place);
            if from == first {
                break;
            }
            items.swap(place, from);
            place = from;
        }
    }
}

/// For each child, the children it requires.
fn requirements(
    children: &[ChildSpec],
    keys: &HashMap<Arc<str>, Key>,
    parent: &Trail,
) -> Result<Vec<Vec<usize>>, BuildError> {
    let find = |child: &ChildSpec, name: &String| {
        let key = keys.get(name.as_str());
        key.map(|key| key.index()).ok_or_else(|| BuildError::UnknownRequirement {
            path: parent.join(child.name()),
            parent: parent.path(),
            requirement: name.clone(),
            known: {
                let others = children.iter().map(ChildSpec::name);
                let others = others.filter(|&name| name != child.name());
                known(others, children.len() - 1)
            },
        })
    };
    let mut requires = Vec::with_capacity(children.len());
    for child in children {
        let mut indices = Vec::with_capacity(child.requires.len());
        for name in &child.requires {
            indices.push(find(child, name)?);
        }
        requires.push(indices);
    }
    Ok(requires)
}

/// The indices in start order, or a circle: its first is also its last.
fn order(requires: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut unmet = vec![0; requires.len()];
    let mut dependants = vec![Vec::new(); requires.len()];
    let mut free = BinaryHeap::new();
    for (index, required) in requires.iter().enumerate() {
        unmet[index] = required.len();
        if required.is_empty() {
            free.push(Reverse(index));
        }
        for &required in required {
            dependants[required].push(index);
        }
    }
    let mut order = Vec::with_capacity(requires.len());
    while let Some(Reverse(index)) = free.pop() {
        order.push(index);
        for &dependant in &dependants[index] {
            unmet[dependant] -= 1;
            if unmet[dependant] == 0 {
                free.push(Reverse(dependant));
            }
        }
    }
    if order.len() == requires.len() { Ok(order) } else { Err(circle(requires, &unmet)) }
}

/// Follows requirements among those that are left until one comes up again.
fn circle(requires: &[Vec<usize>], unmet: &[usize]) -> Vec<usize> {
    let left = |index: &usize| unmet[*index] > 0;
    let mut walk: Vec<usize> = (0..requires.len()).find(left).into_iter().collect();
    while let Some(&last) = walk.last() {
        let Some(&next) = requires[last].iter().find(|index| left(index)) else { break };
        if let Some(at) = walk.iter().position(|&index| index == next) {
            walk.push(next);
            return walk.split_off(at);
        }
        walk.push(next);
    }
    walk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_requirements_the_order_is_the_declared_one() {
        assert_eq!(order(&[vec![], vec![], vec![]]), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn a_child_moves_only_behind_what_it_requires() {
        assert_eq!(order(&[vec![2], vec![], vec![], vec![]]), Ok(vec![1, 2, 0, 3]));
    }

    #[test]
    fn what_is_arranged_comes_from_where_the_order_says() {
        for order in [[0, 1, 2, 3], [3, 0, 1, 2], [1, 2, 3, 0], [1, 0, 3, 2], [0, 3, 1, 2]] {
            let mut items = [0, 1, 2, 3];
            arrange(&mut items, order.into());
            assert_eq!(items, order);
        }
    }

    #[test]
    fn a_circle_is_named_from_one_child_back_to_itself() {
        assert_eq!(order(&[vec![], vec![3], vec![1], vec![2]]), Err(vec![1, 3, 2, 1]));
        assert_eq!(order(&[vec![0]]), Err(vec![0, 0]));
    }
}
