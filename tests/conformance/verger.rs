//! Runs scenarios on verger, through its public API, in paused time.
//!
//! The tree stands below an extra root, so that it can be killed and its exit observed like that of
//! any supervisor. A step is over when every task is idle: only then does paused time advance, and
//! a sleep of a millisecond end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use verger::policy::{AutoShutdown, Preset};
use verger::status::{ChildInfo, ChildKind, Event, EventKind};
use verger::{
    ChildSpec, ControlError, DynamicSupervisor, Lifecycle, RestartType, Shutdown, Strategy,
    Supervisor, SupervisorHandle, child,
};

use crate::child::Workers;
use crate::compare::Trace;
use crate::scenario::{
    self, Auto, Grace, Restart, Scenario, Spec, Step, Sup, is_dynamic, is_worker, join, split,
};

const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn run(scenario: &Scenario) -> Trace {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(trace(scenario))
}

async fn trace(scenario: &Scenario) -> Trace {
    let mut runner = Runner::new(scenario).await;
    let mut trace = Trace::default();
    for step in [&Step::Start].into_iter().chain(&scenario.steps) {
        trace.steps.push(runner.play(step).await);
    }
    let listed = runner.list().await;
    trace.steps.push(runner.settle(listed).await);
    trace.steps.push(runner.play(&Step::Stop("s".to_owned())).await);
    trace
}

/// A tree that a scenario is played on.
struct Runner {
    workers: Workers,
    root: Spec,
    /// The extra root above that of the scenario.
    top: SupervisorHandle,
    events: Arc<Mutex<Vec<Event>>>,
    /// The templates of dynamic supervisors.
    templates: HashMap<String, Spec>,
    /// The names of dynamic children in the tree, by their paths.
    addresses: HashMap<String, String>,
}

impl Runner {
    async fn new(scenario: &Scenario) -> Self {
        let top = Supervisor::builder("top").build().unwrap().start().await.unwrap();
        let events = Arc::<Mutex<Vec<Event>>>::default();
        let (mut stream, kept) = (top.events(), Arc::clone(&events));
        tokio::spawn(async move {
            while let Some(event) = stream.next().await {
                assert_eq!(stream.missed(), 0);
                kept.lock().unwrap().push(event);
            }
        });
        let (workers, templates, addresses) = Default::default();
        let root = Spec {
            id: "s".to_owned(),
            restart: Restart::Temporary,
            significant: false,
            shutdown: Grace::Default,
            sup: Some(scenario.tree.clone()),
        };
        let mut runner = Self { workers, root, top, events, templates, addresses };
        runner.learn("s", &scenario.tree);
        for step in &scenario.steps {
            if let Step::StartChild(path, spec) = step
                && let Some(sup) = &spec.sup
            {
                runner.learn(&join(path, &spec.id), sup);
            }
        }
        for (path, outcomes) in &scenario.starts {
            runner.workers.next_starts(path, outcomes);
        }
        runner.workers.start_slowly(scenario.slow_start.clone());
        runner
    }

    /// Records the templates below a supervisor.
    fn learn(&mut self, path: &str, sup: &Sup) {
        for spec in &sup.children {
            if is_dynamic(path) {
                self.templates.insert(path.to_owned(), spec.clone());
            } else if let Some(sup) = &spec.sup {
                self.learn(&join(path, &spec.id), sup);
            }
        }
    }

    /// Plays a step, and returns its lines.
    async fn play(&mut self, step: &Step) -> Vec<String> {
        let reply = self.step(step).await.map(|reply| format!("reply {reply}"));
        self.settle(reply.into_iter().collect()).await
    }

    /// Plays a step, and returns its reply.
    async fn step(&mut self, step: &Step) -> Option<String> {
        let (parent, _) = split(step.path());
        match step {
            Step::Start => {
                let started = self.top.start_child(self.child_spec("s", &self.root)).await;
                return Some(match started {
                    Err(ControlError::NameTaken { running: true, .. }) => "running".to_owned(),
                    started => started.map_or_else(|it| refusal(&it), |it| began(it.declined())),
                });
            }
            Step::NextStarts(path, outcomes) => {
                self.workers.next_starts(path, outcomes);
                return None;
            }
            Step::Ends(ends) => {
                let ended = ends.iter().filter(|(path, end)| self.workers.end(path, *end)).count();
                return (ended == 0).then(|| "nobody".to_owned());
            }
            Step::Kill(path) => {
                let killed = self.top.kill(&self.address(path)).await;
                let was_running = killed.is_ok_and(|it| it.was_running);
                return (!was_running).then(|| "nobody".to_owned());
            }
            _ => {}
        }
        let sup = match step {
            Step::Stop(path)
            | Step::StartChild(path, _)
            | Step::WhichChildren(path)
            | Step::CountChildren(path) => path,
            _ => parent,
        };
        let Some(handle) = self.supervisor(sup).await else { return Some("noproc".to_owned()) };
        let reply = timeout(HOUR / 2, self.call(&handle, step)).await;
        Some(match reply {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => refusal(&error),
            Err(_) => "nothing".to_owned(),
        })
    }

    async fn call(&mut self, sup: &SupervisorHandle, step: &Step) -> Result<String, ControlError> {
        let address = self.address(step.path());
        let (_, name) = split(&address);
        let done = |()| "ok".to_owned();
        Ok(match step {
            Step::Stop(_) => match sup.stop("a step says so").await {
                Ok(()) => "ok".to_owned(),
                Err(error) => error.to_string(),
            },
            Step::StartChild(path, spec) => {
                let path = join(path, &spec.id);
                began(sup.start_child(self.child_spec(&path, spec)).await?.declined())
            }
            Step::StartDynamic(path) => {
                let template = self.templates[split(path).0].clone();
                let template = Spec { id: split(path).1.to_owned(), ..template };
                if let Some(sup) = &template.sup {
                    self.learn(path, sup);
                }
                let started = sup.start_child(self.child_spec(path, &template)).await?;
                self.addresses.insert(path.clone(), started.name().to_owned());
                began(started.declined())
            }
            Step::RestartChild(_) => began(sup.otp().restart_child(name).await?.declined()),
            Step::TerminateChild(_) => sup.otp().terminate_child(name).await.map(done)?,
            Step::DeleteChild(_) => sup.otp().delete_child(name).await.map(done)?,
            Step::ChildSpec(_) => {
                let spec = sup.child_spec(name).await?;
                let shutdown = match spec.shutdown {
                    Shutdown::BrutalKill => "brutal_kill".to_owned(),
                    Shutdown::Infinity => "infinity".to_owned(),
                    Shutdown::Timeout(grace) | Shutdown::Drain(grace) => {
                        grace.as_millis().to_string()
                    }
                };
                let kind = if spec.kind == ChildKind::Worker { "worker" } else { "supervisor" };
                format!("{} {shutdown} {kind} {}", spec.restart, spec.significant)
            }
            Step::WhichChildren(path) => which(path, &sup.otp().which_children().await?),
            Step::CountChildren(path) => count(path, sup).await?,
            Step::Start | Step::NextStarts(..) | Step::Ends(_) | Step::Kill(_) => {
                unreachable!("these are no calls")
            }
        })
    }

    /// Returns every running child below the root.
    async fn list(&self) -> Vec<String> {
        let mut listed = Vec::new();
        let mut left = vec!["s".to_owned()];
        while let Some(path) = left.pop() {
            let Some(sup) = self.supervisor(&path).await else { continue };
            let children = sup.otp().which_children().await.unwrap_or_default();
            listed.push(format!("list {path}: {}", which(&path, &children)));
            let counts = count(&path, &sup).await.unwrap_or_else(|error| refusal(&error));
            listed.push(format!("count {path}: {counts}"));
            let names = children.iter().map(|child| plain(child.path.name()));
            let mut below: Vec<_> = names.map(|name| join(&path, name)).collect();
            below.sort();
            left.extend(below.into_iter().filter(|path| !is_worker(path)).rev());
        }
        listed
    }

    /// Waits until every task is idle, and returns the lines so far.
    async fn settle(&self, replies: Vec<String>) -> Vec<String> {
        sleep(Duration::from_millis(1)).await;
        let mut lines = self.workers.take_lines();
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        for event in &events {
            lines.extend(fact(event, &events));
        }
        lines.extend(replies);
        lines
    }

    /// Returns a path below the extra root.
    fn address(&self, path: &str) -> String {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let names = ends.map(|end| {
            let path = &path[..end];
            self.addresses.get(path).map_or(split(path).1, String::as_str)
        });
        names.collect::<Vec<_>>().join("/")
    }

    async fn supervisor(&self, path: &str) -> Option<SupervisorHandle> {
        self.top.supervisor(&self.address(path)).await.ok()
    }

    fn child_spec(&self, path: &str, spec: &Spec) -> ChildSpec {
        let made = match &spec.sup {
            None => {
                let (workers, path) = (self.workers.clone(), path.to_owned());
                child(spec.id.clone(), move || workers.worker(&path))
            }
            Some(sup) => self.supervisor_spec(path, &spec.id, sup),
        };
        let made = made.restart(match spec.restart {
            Restart::Permanent => RestartType::Permanent,
            Restart::Transient => RestartType::Transient,
            Restart::Temporary => RestartType::Temporary,
        });
        let made = if spec.significant { made.significant() } else { made };
        match spec.shutdown {
            Grace::Default => made,
            Grace::Timeout => made.shutdown(HOUR),
            Grace::Infinity => made.shutdown(Shutdown::Infinity),
            Grace::Brutal => made.shutdown(Shutdown::BrutalKill),
        }
    }

    fn supervisor_spec(&self, path: &str, name: &str, sup: &Sup) -> ChildSpec {
        let builder = match sup.strategy {
            scenario::Strategy::SimpleOneForOne => {
                let builder = DynamicSupervisor::builder(name).preset(Preset::otp());
                return builder.restarts(sup.intensity, HOUR).into_child();
            }
            scenario::Strategy::OneForOne => Strategy::OneForOne,
            scenario::Strategy::OneForAll => Strategy::OneForAll,
            scenario::Strategy::RestForOne => Strategy::RestForOne,
        };
        let builder = Supervisor::builder(name).preset(Preset::otp()).strategy(builder);
        let builder =
            builder.restarts(sup.intensity, HOUR).auto_shutdown(match sup.auto_shutdown {
                Auto::Never => AutoShutdown::Never,
                Auto::Any => AutoShutdown::AnySignificant,
                Auto::All => AutoShutdown::AllSignificant,
            });
        let children = sup.children.iter();
        let children = children.map(|spec| self.child_spec(&join(path, &spec.id), spec));
        children.fold(builder, |builder, child| builder.child(child)).into_child()
    }
}

/// Returns the line of an event about a supervisor of the scenario.
fn fact(event: &Event, events: &[Event]) -> Option<String> {
    let path = plain_path(event.path.as_str())?;
    match &event.kind {
        EventKind::GaveUp { .. } => {
            // The event is the same for a failed first start, which ends differently.
            let (above, _) = event.path.as_str().rsplit_once('/')?;
            let failed = |event: &Event| {
                event.path.as_str() == above
                    && matches!(&event.kind, EventKind::Moved { reason: Some(reason), .. }
                        if reason.kind() == "activation_failed")
            };
            let later = events.iter().skip_while(|it| it.seq <= event.seq);
            let ends = later.filter(|it| {
                it.path.as_str() == above
                    && matches!(it.kind, EventKind::Moved { reason: Some(_), .. })
            });
            let failed_to_start = ends.take(1).any(failed);
            let (above, _) = split(&path);
            (!failed_to_start).then(|| format!("gave_up {above}"))
        }
        EventKind::Moved { to: Lifecycle::Activating, .. } if !is_worker(&path) => {
            Some(format!("init {path}"))
        }
        EventKind::Moved { reason: Some(reason), .. } if !is_worker(&path) => {
            let why = match reason.kind() {
                "normal" | "shutdown" => "clean",
                "aborted" | "killed" => "killed",
                "activation_failed" => "failed",
                other => other,
            };
            Some(format!("down {path} {why}"))
        }
        _ => None,
    }
}

/// Returns a path as in the scenario: without the extra root, and without the numbers of dynamic
/// children.
fn plain_path(path: &str) -> Option<String> {
    let names = path.strip_prefix("top/")?.split('/').map(plain);
    Some(names.collect::<Vec<_>>().join("/"))
}

fn plain(name: &str) -> &str {
    name.split('#').next().unwrap_or(name)
}

fn which(path: &str, children: &[ChildInfo]) -> String {
    let words = children.iter().map(|child| {
        let state = match child.lifecycle {
            Lifecycle::Active => "running".to_owned(),
            state => state.to_string(),
        };
        format!("{}={state}", plain(child.path.name()))
    });
    let mut words: Vec<_> = words.collect();
    if is_dynamic(path) {
        words.sort();
    }
    if words.is_empty() { "none".to_owned() } else { words.join(" ") }
}

/// In OTP, a supervisor with a template counts it as its only spec, so this isn't a number of
/// children.
async fn count(path: &str, sup: &SupervisorHandle) -> Result<String, ControlError> {
    let counts = sup.otp().count_children().await?;
    let numbers = format!("{} {} {}", counts.active, counts.supervisors, counts.workers);
    Ok(if is_dynamic(path) { numbers } else { format!("{} {numbers}", counts.specs) })
}

fn began(declined: bool) -> String {
    if declined { "ignored" } else { "ok" }.to_owned()
}

fn refusal(error: &ControlError) -> String {
    let word = match error {
        ControlError::NameTaken { running: true, .. } => "already_started",
        ControlError::NameTaken { running: false, .. } => "already_present",
        ControlError::Running { .. } => "running",
        ControlError::Restarting { .. } => "restarting",
        ControlError::NotFound { .. } => "not_found",
        ControlError::NotRunning { .. } | ControlError::Ended { .. } => "noproc",
        ControlError::InvalidSpec(_) => "invalid",
        ControlError::ActivationFailed { .. } => "failed",
        other => return other.to_string(),
    };
    word.to_owned()
}
