//! The start order: declaration order, moved only as far as `requires` asks for.
//!
//! A stable topological sort (Kahn's, the earliest declared first), so that the order of a tree is
//! a matter of reading it and never of timing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::child::ChildSpec;
use crate::error::{BuildError, known};
use crate::path::Trail;
use crate::policy::Start;

/// The children in the order in which they start.
///
/// # Errors
///
/// If a requirement is unknown, part of a circle, or declared later although children start one
/// after the other.
pub(super) fn sorted(
    children: Vec<ChildSpec>,
    parent: &Trail,
    start: Start,
) -> Result<Vec<ChildSpec>, BuildError> {
    if children.iter().all(|child| child.requires.is_empty()) {
        return Ok(children);
    }
    let requires = requirements(&children, parent)?;
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
    let mut children: Vec<_> = children.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|index| children[index].take()).collect())
}

/// For each child, the children it requires.
fn requirements(children: &[ChildSpec], parent: &Trail) -> Result<Vec<Vec<usize>>, BuildError> {
    let names = children.iter().enumerate().map(|(index, child)| (child.name(), index));
    let names: HashMap<_, _> = names.collect();
    let find = |child: &ChildSpec, name: &String| {
        names.get(name.as_str()).copied().ok_or_else(|| BuildError::UnknownRequirement {
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
    children
        .iter()
        .map(|child| child.requires.iter().map(|name| find(child, name)).collect())
        .collect()
}

/// The indices in start order, or a circle: its first is also its last.
fn order(requires: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut unmet: Vec<usize> = requires.iter().map(Vec::len).collect();
    let mut dependants = vec![Vec::new(); requires.len()];
    for (index, required) in requires.iter().enumerate() {
        for &required in required {
            dependants[required].push(index);
        }
    }
    let free = (0..requires.len()).filter(|&index| unmet[index] == 0);
    let mut free: BinaryHeap<_> = free.map(Reverse).collect();
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
    fn a_circle_is_named_from_one_child_back_to_itself() {
        assert_eq!(order(&[vec![], vec![3], vec![1], vec![2]]), Err(vec![1, 3, 2, 1]));
        assert_eq!(order(&[vec![0]]), Err(vec![0, 0]));
    }
}
