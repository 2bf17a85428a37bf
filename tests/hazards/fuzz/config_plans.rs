//! Random edits of a configuration: a tree that follows them is as one that starts with the last.

use arbitrary::{Arbitrary, Unstructured};
use verger::config::Config;
use verger::{Context, DynamicSupervisor, Exit, Lifecycle, Supervisor, SupervisorBuilder, worker};

/// A value of a section. Some are wrong, or not for what is at the path.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Value {
    Enabled(bool),
    Restart(u8),
    Shutdown(u8),
    Backoff(u8),
    Retries(u8),
    Strategy(u8),
    MaxRestarts(u8),
    MaxChildren(u8),
    Wrong,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Line {
    path: u8,
    value: Value,
}

const PATHS: [&str; 9] =
    ["common", "app", "*", "a", "app/b", "below", "below/c", "below/*", "jobs/job"];
const WORDS: [&str; 4] = ["never", "always", "on_failure", "on_stop"];
const STRATEGIES: [&str; 3] = ["one_for_one", "one_for_all", "rest_for_one"];

/// Applies random files, one after the other.
pub(crate) fn run(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let running = tree().build().unwrap().start().await.unwrap();
        running.supervisor("jobs").await.unwrap().start_child(worker("job", idle)).await.unwrap();
        let mut last = Config::new();
        for _ in 0..4 {
            let Ok(lines) = Vec::<Line>::arbitrary(&mut input) else { break };
            let config = Config::from_toml(&file(&lines), "app.toml");
            let before = shape(&running).await;
            match running.plan(&config).await {
                Ok(plan) => {
                    running.apply(plan).await.expect("no child refuses");
                    last = config;
                }
                Err(_) => assert_eq!(shape(&running).await, before, "a mistake changes nothing"),
            }
            let again = running.plan(&last).await.expect("it was applied");
            assert!(again.is_empty(), "nothing is left: {again}");
        }
        let fresh = tree().build().unwrap().configured(&last).await.expect("it was applied");
        let fresh = fresh.start().await.unwrap();
        if let Ok(jobs) = fresh.supervisor("jobs").await {
            // A limit of children, or a section that takes the child out, may refuse it.
            let _ = jobs.start_child(worker("job", idle)).await;
        }
        let (mut running, mut fresh) = (shape(&running).await, shape(&fresh).await);
        for shape in [&mut running, &mut fresh] {
            shape.retain(|line| !line.starts_with("app/jobs/"));
        }
        assert_eq!(running, fresh);
    });
}

fn tree() -> SupervisorBuilder {
    let below = Supervisor::builder("below").unlimited_restarts().child(worker("c", idle));
    Supervisor::builder("app")
        .unlimited_restarts()
        .child(worker("a", idle))
        .child(worker("b", idle))
        .child(below)
        .child(DynamicSupervisor::builder("jobs"))
}

async fn idle(ctx: Context) -> Exit {
    ctx.cancelled().await;
    Ok(())
}

fn file(lines: &[Line]) -> String {
    let mut sections = std::collections::BTreeMap::<_, std::collections::BTreeMap<_, _>>::new();
    for Line { path, value } in lines.iter().take(12) {
        let path = PATHS[usize::from(*path) % PATHS.len()];
        let (key, value) = text(*value);
        sections.entry(path).or_default().insert(key, value);
    }
    let section = |(path, values): (&str, std::collections::BTreeMap<&str, String>)| {
        let values = values.into_iter().map(|(key, value)| format!("{key} = {value}\n"));
        format!("[\"{path}\"]\n{}", values.collect::<String>())
    };
    sections.into_iter().map(section).collect()
}

fn text(value: Value) -> (&'static str, String) {
    let word =
        |words: &[&str], number: u8| format!("\"{}\"", words[usize::from(number) % words.len()]);
    match value {
        Value::Enabled(enabled) => ("enabled", enabled.to_string()),
        Value::Restart(number) => ("restart", word(&WORDS, number)),
        Value::Shutdown(secs) => ("shutdown", format!("\"{secs}s\"")),
        Value::Backoff(secs) => (
            "restart",
            format!("{{ min_backoff = \"{secs}s\", max_backoff = \"{}s\" }}", u16::from(secs) + 7),
        ),
        Value::Retries(max) => ("restart", format!("{{ max_retries = {max} }}")),
        Value::Strategy(number) => ("strategy", word(&STRATEGIES, number)),
        Value::MaxRestarts(max) => ("intensity", format!("{{ max = {max}, period = \"60s\" }}")),
        Value::MaxChildren(max) => ("max_children", max.to_string()),
        Value::Wrong => ("shutdwon", "5".to_owned()),
    }
}

/// What a configuration decides of each child.
async fn shape(tree: &verger::SupervisorHandle) -> Vec<String> {
    let status = tree.status().await.expect("it runs");
    let (mut lines, mut open) = (Vec::new(), vec![&status.root]);
    while let Some(node) = open.pop() {
        let child = &node.child;
        let disabled = child.why == Some("disabled");
        let lifecycle = if disabled { Lifecycle::Discovered } else { child.lifecycle };
        let supervisor = node.supervisor.as_ref().map(|it| (it.strategy, it.max_restarts));
        let policy = &child.policy;
        lines.push(format!("{} {lifecycle} {supervisor:?} {policy:?}", child.path));
        open.extend(&node.children);
    }
    lines.sort();
    lines
}
