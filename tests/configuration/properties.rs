//! Random configurations of random trees.

use proptest::prelude::*;
use proptest::sample::select;
use verger::config::Config;
use verger::{DynamicSupervisor, Lifecycle, Supervisor, SupervisorBuilder, worker};

use super::idle;

/// The children of a random tree: two levels at most.
#[derive(Clone, Debug)]
enum Declared {
    Worker,
    Supervisor(Vec<usize>),
    Dynamic,
}

fn declared() -> impl Strategy<Value = Vec<Declared>> {
    let child = prop_oneof![
        3 => Just(Declared::Worker),
        1 => proptest::collection::vec(0..3_usize, 0..3).prop_map(Declared::Supervisor),
        1 => Just(Declared::Dynamic),
    ];
    proptest::collection::vec(child, 1..5)
}

fn tree(children: &[Declared]) -> SupervisorBuilder {
    let app = Supervisor::builder("app").unlimited_restarts().strategy(verger::Strategy::OneForOne);
    children.iter().enumerate().fold(app, |app, (number, child)| {
        let name = format!("c{number}");
        match child {
            Declared::Worker => app.child(worker(name, idle)),
            Declared::Dynamic => app.child(DynamicSupervisor::builder(name)),
            Declared::Supervisor(below) => {
                let supervisor = Supervisor::builder(name).unlimited_restarts();
                app.child((0..below.len()).fold(supervisor, |supervisor, number| {
                    supervisor.child(worker(format!("d{number}"), idle))
                }))
            }
        }
    })
}

/// A file for the tree: some of its paths, with some values.
fn file(children: Vec<Declared>) -> impl Strategy<Value = String> {
    let mut paths = vec![("common".to_owned(), true), ("*".to_owned(), true)];
    for (number, child) in children.iter().enumerate() {
        paths.push((format!("app/c{number}"), matches!(child, Declared::Worker)));
        if let Declared::Supervisor(below) = child {
            paths.extend((0..below.len()).map(|below| (format!("c{number}/d{below}"), true)));
            paths.push((format!("c{number}/*"), true));
        }
    }
    let values = select(vec![
        "restart = \"never\"",
        "restart = \"on_failure\"",
        "enabled = false",
        "enabled = true",
        "shutdown = \"7s\"",
        "on_leak = \"park\"",
        "activation_timeout = \"3s\"",
        "restart = { when = \"always\", consecutive_restarts = 4 }",
        "restart = { min_backoff = \"1s\", max_backoff = \"4s\" }",
    ]);
    let section = (select(paths), proptest::collection::btree_set(values, 0..3));
    proptest::collection::btree_map(
        section.clone().prop_map(|(path, _)| path),
        section.prop_map(|(_, values)| values),
        0..6,
    )
    .prop_map(|sections| {
        let mut text = String::new();
        for ((path, _), values) in sections {
            let mut keys = std::collections::BTreeSet::new();
            text.push_str(&format!("[\"{path}\"]\n"));
            for value in values {
                if keys.insert(value.split(' ').next().unwrap_or_default()) {
                    text.push_str(value);
                    text.push('\n');
                }
            }
        }
        text
    })
}

/// Everything of the status that a configuration decides: not times, and not how often a child was started.
async fn shape(tree: &verger::SupervisorHandle) -> Vec<String> {
    let status = tree.status().await.unwrap();
    let mut lines = Vec::new();
    let mut open = vec![&status.root];
    while let Some(node) = open.pop() {
        let child = &node.child;
        // Whether it was started before it was taken out doesn't matter.
        let lifecycle =
            if child.why == Some("disabled") { Lifecycle::Discovered } else { child.lifecycle };
        let supervisor = node.supervisor.as_ref().map(|it| (it.strategy, it.max_restarts));
        let spec = match child.path.as_str().split_once('/') {
            Some((_, path)) => tree.child_spec(path).await.map(|spec| format!("{spec:?}")).ok(),
            None => None,
        };
        let policy = &child.policy;
        lines.push(format!(
            "{} {lifecycle} {:?} {supervisor:?} {policy:?} {spec:?} {:?}",
            child.path,
            child.why,
            child.configured.keys().collect::<Vec<_>>()
        ));
        open.extend(&node.children);
    }
    lines.sort();
    lines
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(crate::random_cases::cases(32))]

    /// Whatever was applied before, the tree is then as a fresh one that starts with the last file.
    #[test]
    fn applying_leads_to_the_same_as_starting_with_it(
        (children, files) in declared().prop_flat_map(|children| {
            let files = proptest::collection::vec(file(children.clone()), 1..4);
            (Just(children), files)
        }),
    ) {
        let (changed, fresh) = block_on(async {
            let running = tree(&children).build().unwrap().start().await.unwrap();
            for text in &files {
                let plan = running.plan(&Config::from_toml(text, "app.toml")).await.unwrap();
                running.apply(plan).await.unwrap();
            }
            let last = Config::from_toml(files.last().unwrap(), "app.toml");
            let again = running.plan(&last).await.unwrap();
            assert!(again.is_empty(), "it is up to date: {again}");
            let fresh = tree(&children).build().unwrap().configured(&last).await.unwrap();
            let fresh = fresh.start().await.unwrap();
            (shape(&running).await, shape(&fresh).await)
        });
        prop_assert_eq!(changed, fresh);
    }

    /// A plan that is refused, or has mistakes, changes nothing: no status and no event.
    #[test]
    fn a_refused_plan_changes_nothing(
        (children, good, bad) in declared().prop_flat_map(|children| {
            (Just(children.clone()), file(children.clone()), file(children))
        }),
    ) {
        block_on(async {
            let running = tree(&children).build().unwrap().start().await.unwrap();
            let plan = running.plan(&Config::from_toml(&good, "app.toml")).await.unwrap();
            running.apply(plan).await.unwrap();
            let (before, mut events) = (shape(&running).await, running.events());
            let bad = format!("{bad}[nothing_here]\nenabled = false\n");
            running.plan(&Config::from_toml(&bad, "app.toml")).await.unwrap_err();
            crate::common::settle().await;
            assert_eq!(before, shape(&running).await);
            assert!(events.try_next().is_none());
        });
    }
}
