//! Compares status, events and notes when the tree is at rest.

use std::collections::{HashMap, HashSet};
use std::time::{Instant, SystemTime};

use verger::status::{ChildKind, Node};

use super::budget::SLACK;
use super::edges::is_up;
use super::{Seen, Watch, position, split};

impl Watch {
    /// Returns the differences between a snapshot of the zone, taken since `began`, and the model.
    pub(crate) fn compare(&mut self, zone: &Node, began: Instant) -> Vec<String> {
        let (early, late) =
            (self.clock.wall(began) - SLACK, self.clock.wall(Instant::now()) + SLACK);
        let mut differences = Vec::new();
        let mut known = HashSet::new();
        let mut open = vec![zone];
        while let Some(node) = open.pop() {
            open.extend(&node.children);
            known.extend(node.children.iter().map(|child| child.child.path.as_str()));
            self.compare_supervisor(node, early, late, &mut differences);
            self.compare_children(node, &mut differences);
        }
        for parent in self.lives.populated() {
            for (name, life) in self.lives.living_below(parent) {
                let path = format!("{parent}/{name}");
                if !known.contains(&*path) {
                    differences.push(format!("{path} lives, but is not there: {life:?}"));
                }
            }
        }
        for (parent, supervisor) in &self.supervisors {
            for (name, seen) in &supervisor.children {
                if seen.state.is_some() && !known.contains(&*format!("{parent}/{name}")) {
                    differences.push(format!("{parent}/{name} is not there: {seen:?}"));
                }
            }
        }
        let unexplained = self.overlapped.iter();
        differences.extend(unexplained.map(|(path, old)| {
            format!("{path}: began while incarnation {old} lived, which has not leaked")
        }));
        differences.extend(self.leaks.iter().map(|(path, it)| format!("{path} ({it}) is leaked")));
        differences
    }

    fn compare_supervisor(
        &mut self,
        node: &Node,
        early: SystemTime,
        late: SystemTime,
        differences: &mut Vec<String>,
    ) {
        let path = node.child.path.as_str();
        let (Some(info), Some(known)) = (&node.supervisor, self.supervisors.get_mut(path)) else {
            return;
        };
        let up = node.children.iter().filter(|it| is_up(it.child.lifecycle)).count();
        if info.counts.active as usize != up || info.counts.specs as usize != node.children.len() {
            let (counts, specs) = (info.counts, node.children.len());
            differences.push(format!("{path}: {counts:?}, but {up} of {specs} are up"));
        }
        let (shown, (least, most)) = (info.restarts_in_period, known.budget.count(early, late));
        if info.max_restarts.is_some() && !(least..=most).contains(&shown) {
            differences.push(format!("{path}: {shown} restarts count, not {least} to {most}"));
        }
        let mut names = node.children.iter().map(|child| position(child.child.path.name()));
        if !known.rules.dynamic && !names.by_ref().is_sorted() {
            differences.push(format!("{path}: its children are out of order"));
        }
    }

    fn compare_children(&self, node: &Node, differences: &mut Vec<String>) {
        let Some(known) = self.supervisors.get(node.child.path.as_str()) else { return };
        for Node { child, .. } in &node.children {
            let path = child.path.as_str();
            let now = (Some(child.lifecycle), Some(child.incarnation));
            match known.children.get(child.path.name()) {
                None if self.blind => {}
                Some(seen) if (seen.state, seen.incarnation) == now => {}
                seen => differences.push(format!("{path} is {now:?}, but was seen as {seen:?}")),
            }
            if child.kind == ChildKind::Supervisor {
                continue;
            }
            let lives: Vec<_> = self.lives.living_of(path).map(|it| it.incarnation).collect();
            let expected: &[u32] = if is_up(child.lifecycle) { &[child.incarnation] } else { &[] };
            if lives != expected {
                let state = child.lifecycle;
                differences.push(format!("{path} is {state}, {expected:?}, but {lives:?} live"));
            }
        }
    }

    /// Replaces the model with a snapshot that didn't differ, so that no event is missing any more.
    pub(crate) fn adopt(&mut self, zone: &Node) {
        let mut open = vec![zone];
        let mut known: HashMap<&str, HashSet<&str>> = HashMap::new();
        while let Some(node) = open.pop() {
            open.extend(&node.children);
            for Node { child, .. } in &node.children {
                let (parent, name) = split(child.path.as_str());
                known.entry(parent).or_default().insert(name);
                let Some(supervisor) = self.supervisors.get_mut(parent) else { continue };
                if self.blind {
                    let (state, incarnation) = (Some(child.lifecycle), Some(child.incarnation));
                    let seen = Seen { state, incarnation, ..Seen::UNKNOWN };
                    supervisor.children.entry(name.to_owned()).or_insert(seen);
                }
            }
        }
        self.blind = false;
        self.lives.keep(|parent, name| known.get(parent).is_some_and(|it| it.contains(name)));
    }

    /// Reports the findings that nothing explained, and clears them.
    pub(crate) fn give_up_on(&mut self, differences: &[String]) {
        for difference in differences {
            self.tally.violation(difference);
        }
        self.overlapped.clear();
        self.blind = true;
        self.supervisors.values_mut().for_each(|supervisor| supervisor.children.clear());
    }
}
