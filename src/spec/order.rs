//! The start order: by descending stop order and then as declared, with each child behind its requirements.
//!
//! A stable topological sort (Kahn's algorithm, the earliest declared first).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use crate::child::ChildSpec;
use crate::core::Key;
use crate::error::{BuildError, known};
use crate::path::Path;
use crate::policy::Start;

/// Sorts the children into their start order, and updates their keys.
///
/// # Errors
///
/// If a requirement is unknown or part of a cycle, has a lower stop order, or is declared later although
/// children start sequentially.
pub(super) fn sorted(
    mut children: Vec<ChildSpec>,
    keys: &mut HashMap<Arc<str>, Key>,
    parent: &Path,
    start: Start,
) -> Result<Vec<ChildSpec>, BuildError> {
    let stop_order = |child: &ChildSpec| child.options.stop_order;
    let is_sorted = children.is_sorted_by_key(|child| Reverse(stop_order(child)));
    if is_sorted && children.iter().all(|child| child.requires.is_empty()) {
        return Ok(children);
    }
    let requires = requirements(&children, keys, parent)?;
    let stop_orders: Vec<_> = children.iter().map(stop_order).collect();
    let order = order(&requires, &stop_orders).map_err(|cycle| {
        let names: Vec<_> = cycle.iter().map(|&index| children[index].name()).collect();
        BuildError::RequirementCycle { parent: parent.clone(), cycle: names.join(" → ") }
    })?;
    for (index, child) in children.iter().enumerate() {
        for &required in &requires[index] {
            let (order, other) = (stop_orders[index], stop_orders[required]);
            let path = || parent.join(child.name());
            let requirement = || children[required].name().to_owned();
            if other < order {
                let (path, requirement) = (path(), requirement());
                return Err(BuildError::StopOrder { path, order, requirement, lower: other });
            }
            if start == Start::Sequential && required > index && other == order {
                let (path, requirement) = (path(), requirement());
                return Err(BuildError::LaterRequirement { path, requirement });
            }
        }
    }
    arrange(&mut children, order);
    for (number, child) in (0..).zip(&children) {
        keys.insert(Arc::clone(child.factory.name()), Key::of_number(number));
    }
    Ok(children)
}

/// Moves the item at `order[place]` to each `place`.
fn arrange<T>(items: &mut [T], mut order: Vec<usize>) {
    // Along each cycle of the permutation.
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

/// Returns the indices of the required children, for each child.
fn requirements(
    children: &[ChildSpec],
    keys: &HashMap<Arc<str>, Key>,
    parent: &Path,
) -> Result<Vec<Vec<usize>>, BuildError> {
    let find = |child: &ChildSpec, name: &String| {
        let key = keys.get(name.as_str());
        key.map(|key| key.index()).ok_or_else(|| BuildError::UnknownRequirement {
            path: parent.join(child.name()),
            parent: parent.clone(),
            requirement: name.clone(),
            known: {
                let siblings = children.iter().map(ChildSpec::name);
                let siblings = siblings.filter(|&name| name != child.name());
                known(siblings, children.len() - 1)
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

/// Returns the indices in start order, or a cycle whose first index is also its last.
fn order(requires: &[Vec<usize>], stop_orders: &[i8]) -> Result<Vec<usize>, Vec<usize>> {
    let place = |index: usize| (stop_orders[index], Reverse(index));
    let mut unmet = vec![0; requires.len()];
    let mut dependants = vec![Vec::new(); requires.len()];
    let mut free = BinaryHeap::new();
    for (index, required) in requires.iter().enumerate() {
        unmet[index] = required.len();
        if required.is_empty() {
            free.push(place(index));
        }
        for &required in required {
            dependants[required].push(index);
        }
    }
    let mut order = Vec::with_capacity(requires.len());
    while let Some((_, Reverse(index))) = free.pop() {
        order.push(index);
        for &dependant in &dependants[index] {
            unmet[dependant] -= 1;
            if unmet[dependant] == 0 {
                free.push(place(dependant));
            }
        }
    }
    if order.len() == requires.len() { Ok(order) } else { Err(cycle(requires, &unmet)) }
}

/// Follows unmet requirements until an index repeats.
fn cycle(requires: &[Vec<usize>], unmet: &[usize]) -> Vec<usize> {
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

    fn order(requires: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
        super::order(requires, &vec![0; requires.len()])
    }

    #[test]
    fn without_requirements_the_order_is_the_declared_order() {
        assert_eq!(order(&[vec![], vec![], vec![]]), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn what_stops_last_starts_first() {
        let requires = [vec![], vec![], vec![3], vec![]];
        assert_eq!(super::order(&requires, &[0, -1, 100, 100]), Ok(vec![3, 2, 0, 1]));
    }

    #[test]
    fn a_child_moves_only_behind_its_requirements() {
        assert_eq!(order(&[vec![2], vec![], vec![], vec![]]), Ok(vec![1, 2, 0, 3]));
    }

    #[test]
    fn arrange_applies_the_permutation() {
        for order in [[0, 1, 2, 3], [3, 0, 1, 2], [1, 2, 3, 0], [1, 0, 3, 2], [0, 3, 1, 2]] {
            let mut items = [0, 1, 2, 3];
            arrange(&mut items, order.into());
            assert_eq!(items, order);
        }
    }

    #[test]
    fn a_cycle_begins_and_ends_with_one_child() {
        assert_eq!(order(&[vec![], vec![3], vec![1], vec![2]]), Err(vec![1, 3, 2, 1]));
        assert_eq!(order(&[vec![0]]), Err(vec![0, 0]));
    }
}
