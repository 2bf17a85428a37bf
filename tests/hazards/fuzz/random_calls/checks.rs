//! What holds in every snapshot, and in the list of all events.

use std::collections::{BTreeMap, BTreeSet};

use verger::Lifecycle;
use verger::policy::OnExhausted;
use verger::status::{Event, EventKind, Node, Status};

use super::script::ChildPlan;
use super::world::World;

/// Checks the counters of each supervisor.
pub(super) fn check_status(status: &Status, world: &World) {
    fn check_node(node: &Node, world: &World) {
        let (child, children) = (&node.child, &node.children);
        if child.restarts != child.incarnation.saturating_sub(1) {
            world.violation(format!("{}: restarts and incarnations differ", child.path));
        }
        let names: BTreeSet<_> = children.iter().map(|it| it.child.path.name()).collect();
        if names.len() != children.len() {
            world.violation(format!("{}: a child is listed twice", child.path));
        }
        if let Some(supervisor) = &node.supervisor {
            let counts = &supervisor.counts;
            let kinds = counts.supervisors + counts.workers;
            if counts.specs as usize != children.len() || kinds != counts.specs {
                world.violation(format!("{}: {counts:?}, not {}", child.path, children.len()));
            }
            let max = supervisor.max_restarts;
            if max.is_some_and(|max| supervisor.restarts_in_period > max as usize) {
                world.violation(format!("{}: above its limit: {supervisor:?}", child.path));
            }
        }
        children.iter().for_each(|node| check_node(node, world));
    }

    check_node(&status.root, world);
}

/// Counts the restarts in a list of all events.
///
/// A failed child leaves *errored* for a restart only if the restart was granted, except by
/// [`retry`](SupervisorHandle::retry).
pub(super) fn check_limits(mut events: Vec<Event>, world: &World) {
    let script = &world.script;
    events.sort_by_key(|event| event.seq);
    let mut charged: BTreeMap<String, u32> = BTreeMap::new();
    let mut granted: BTreeMap<String, u32> = BTreeMap::new();
    let mut was_active: BTreeSet<String> = BTreeSet::new();
    let mut last: BTreeMap<String, u32> = BTreeMap::new();
    for event in &events {
        let path = event.path.as_str();
        let (above, name) = path.rsplit_once('/').expect("a child of the root");
        let EventKind::Moved { from, to, .. } = &event.kind else { continue };
        match (from, to) {
            (Lifecycle::Resolved, Lifecycle::Activating) => {
                if path == "app/nest" {
                    charged.remove(path);
                }
                if event.incarnation == 1 {
                    // The child was added again, or its supervisor was restarted.
                    granted.remove(path);
                    last.remove(path);
                }
                let before = last.insert(path.to_owned(), event.incarnation).unwrap_or(0);
                if event.incarnation <= before {
                    world.violation(format!("{path}: {} follows {before}", event.incarnation));
                }
            }
            (Lifecycle::Active, Lifecycle::Errored) => drop(was_active.insert(path.to_owned())),
            (_, Lifecycle::Errored) => drop(was_active.remove(path)),
            (Lifecycle::Errored, Lifecycle::Restarting | Lifecycle::Resolved) => {
                *granted.entry(path.to_owned()).or_default() += 1;
                if was_active.contains(path) {
                    *charged.entry(above.to_owned()).or_default() += 1;
                }
                let index = name.split('#').next().and_then(|name| name[1..].parse().ok());
                let plans = if above == "app" { &script.children } else { &script.nested };
                let plan: Option<&ChildPlan> = index.and_then(|index: usize| plans.get(index));
                let own = plan.and_then(|plan| plan.max_restarts).map(|max| u32::from(max % 4));
                let (plan, dynamic) = match above {
                    "app" => (&script.root, false),
                    _ => (&script.nest, script.nest_is_dynamic),
                };
                let charged = charged.get(above).copied().unwrap_or(0);
                // Otherwise a group restart may start a child that was given up.
                let escalates = plan.on_exhausted() == OnExhausted::Escalate;
                if (dynamic || escalates) && own.is_some_and(|max| granted[path] > max) {
                    world.violation(format!("{path} restarts above its own limit of {own:?}"));
                }
                if !dynamic && escalates && charged > plan.max_restarts() {
                    world.violation(format!("{path} restarts above the limit of {above}"));
                }
            }
            _ => {}
        }
    }
}
