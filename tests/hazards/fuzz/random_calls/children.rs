//! The tree of a script: its children, and the calls that they and the callers make.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use verger::policy::{AutoShutdown, Start};
use verger::{
    Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, ExitError, Readiness,
    RestartType, Shutdown, Strategy, Supervisor, SupervisorBuilder, SupervisorHandle, worker,
};

use super::checks::check_status;
use super::script::{Call, ChildPlan, End, Life, Script, SupervisorPlan};
use super::world::{Alive, World, yields};
use super::{PATIENCE, PERIOD};

/// Returns the tree of a script.
pub(super) fn tree(script: &Script, world: &Arc<World>) -> SupervisorBuilder {
    let root = supervisor(&script.root, Supervisor::builder("app"));
    let nest: ChildSpec = if script.nest_is_dynamic {
        let nest = DynamicSupervisor::builder("nest").leak_timeout(PERIOD);
        nest.max_children(4).into_child()
    } else {
        let nest = supervisor(&script.nest, Supervisor::builder("nest"));
        let nested = script.nested.iter().enumerate();
        let nested = nested.map(|(index, plan)| {
            spec(plan, &format!("n{index}"), world, script.nest.auto_shutdown)
        });
        nested.fold(nest, SupervisorBuilder::child).into_child()
    };
    let nest = nest.backoff(Backoff::none());
    let root = if script.nest_is_first { root.child(nest.clone()) } else { root };
    let children = script.children.iter().enumerate().map(|(index, plan)| {
        let spec = spec(plan, &format!("c{index}"), world, script.root.auto_shutdown);
        if plan.requires_first && index > 0 { spec.requires("c0") } else { spec }
    });
    let root = children.fold(root, SupervisorBuilder::child);
    if script.nest_is_first { root } else { root.child(nest) }
}

/// Applies a plan to a supervisor.
fn supervisor(plan: &SupervisorPlan, supervisor: SupervisorBuilder) -> SupervisorBuilder {
    let strategies = [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne];
    let supervisor = supervisor
        .strategy(strategies[usize::from(plan.strategy % 3)])
        .restarts(plan.max_restarts(), PERIOD)
        .on_exhausted(plan.on_exhausted())
        .leak_timeout(PERIOD);
    let supervisor = if plan.concurrent { supervisor.start(Start::Concurrent) } else { supervisor };
    if plan.auto_shutdown {
        supervisor.auto_shutdown(AutoShutdown::AnySignificant)
    } else {
        supervisor
    }
}

/// Returns a child that follows a plan.
fn spec(plan: &ChildPlan, name: &str, world: &Arc<World>, auto_shutdown: bool) -> ChildSpec {
    let (own, world) = (Arc::new(plan.clone()), Arc::clone(world));
    let lives = Arc::new(AtomicUsize::new(0));
    let spec = worker(name, move |ctx| {
        let life = own.lives.get(lives.fetch_add(1, Ordering::Relaxed)).cloned();
        live(ctx, life, own.is_endless(), Arc::clone(&world))
    });
    let spec = match plan.restart % 3 {
        0 => spec,
        1 => spec.restart(RestartType::Transient),
        _ => spec.restart(RestartType::Temporary),
    };
    let spec = if plan.signals { spec.readiness(Readiness::Signal) } else { spec };
    let millisecond = Backoff::constant(Duration::from_millis(1));
    let spec = spec.backoff(if plan.backs_off { millisecond } else { Backoff::none() });
    let spec = match plan.max_restarts {
        Some(max) => {
            let max = u32::from(max % 4);
            spec.consecutive_restarts(max).own_restarts(max, PERIOD)
        }
        None => spec,
    };
    let spec = match plan.shutdown % 4 {
        0 => spec.shutdown(Shutdown::BrutalKill),
        1 => spec.shutdown(Duration::ZERO),
        2 => spec.shutdown(Duration::from_millis(1)),
        _ => spec.shutdown(Shutdown::Infinity),
    };
    let significant = plan.significant && auto_shutdown && !plan.restart.is_multiple_of(3);
    if significant { spec.significant() } else { spec }
}

/// Runs one incarnation of a child.
async fn live(ctx: Context, life: Option<Life>, endless: bool, world: Arc<World>) -> Exit {
    let panics = life.as_ref().is_some_and(|life| life.panics_on_drop);
    let _alive = Alive::new(&ctx, panics, Arc::clone(&world));
    let Some(life) = life else {
        ctx.ready();
        ctx.cancelled().await;
        return Ok(());
    };
    if life.ready {
        ctx.ready();
    }
    yields(life.yields).await;
    if let Some(call) = life.call {
        // The call may wait for a sibling that starts after this child.
        ctx.ready();
        let tree = world.tree.lock().unwrap().clone();
        if let Some(tree) = tree {
            ctx.run_until_cancelled(make(call, &tree, &world)).await;
        }
    }
    match life.end {
        End::Fail => return Err("on purpose".into()),
        // Calls no panic hook, since a fuzzer's hook ends the process.
        End::Panic => resume_unwind(Box::new("on purpose")),
        End::Finish => return Ok(()),
        End::Decline => return Err(ExitError::ignore()),
        End::StopSelf => ctx.stop_self(),
        End::Deaf if !endless => {
            ctx.ready();
            std::future::pending::<()>().await;
        }
        End::Deaf | End::Idle | End::FailLate => {}
    }
    ctx.ready();
    ctx.cancelled().await;
    if life.end == End::FailLate { Err("late".into()) } else { Ok(()) }
}

/// Makes a call and checks its answer.
pub(super) async fn make(call: Call, tree: &SupervisorHandle, world: &Arc<World>) {
    let script = &world.script;
    let answer = timeout(PATIENCE, async {
        match call {
            Call::Start(plan, nested) => start(plan, nested, tree, world).await,
            Call::Terminate(to) => tree.stop_child(&script.target(to)).await,
            Call::RestartStopped(to) => {
                tree.otp().restart_child(&script.target(to)).await.map(drop)
            }
            Call::Restart(to) => tree.restart(&script.target(to)).await.map(drop),
            Call::Kill(to) => tree.kill(&script.target(to)).await.map(drop),
            Call::Delete(to) => tree.otp().delete_child(&script.target(to)).await,
            Call::Resume(to) => tree.resume(&script.target(to)).await.map(drop),
            Call::Which(to) => {
                let target = script.target(to);
                let child = tree.which_child(&target).await?;
                if child.path.as_str() != format!("app/{target}") {
                    world.violation(format!("{} is the answer about {target}", child.path));
                }
                Ok(())
            }
            Call::WhichAll(nest) => {
                let tree = if nest { tree.supervisor("nest").await? } else { tree.clone() };
                let children = tree.children().await?;
                let paths: BTreeSet<_> = children.iter().map(|child| child.path.as_str()).collect();
                if paths.len() != children.len() {
                    world.violation(format!("a path is listed twice: {children:#?}"));
                }
                Ok(())
            }
            Call::Count(nest) => {
                let tree = if nest { tree.supervisor("nest").await? } else { tree.clone() };
                let counts = tree.otp().count_children().await?;
                let running = counts.active + counts.restarting;
                if counts.specs != counts.supervisors + counts.workers || running > counts.specs {
                    world.violation(format!("the counters contradict each other: {counts:?}"));
                }
                Ok(())
            }
            Call::Spec(to) => tree.child_spec(&script.target(to)).await.map(drop),
            Call::Status => {
                check_status(&tree.status().await?, world);
                Ok(())
            }
            Call::Supervisor => tree.supervisor("nest").await.map(drop),
            Call::StopNest => {
                let nest = tree.supervisor("nest").await?;
                let _ = nest.stop("on purpose").await;
                Ok(())
            }
        }
    });
    match answer.await {
        Ok(Ok(())) => {}
        Ok(Err(ControlError::ShuttingDown { .. } | ControlError::Ended { .. })) => {}
        Ok(Err(error)) if error.to_string().contains("app") => {}
        Ok(Err(error)) => world.violation(format!("{call:?}: the answer names no path: {error}")),
        Err(_) => world.violation(format!("{call:?} was not answered")),
    }
}

async fn start(
    plan: u8,
    nested: bool,
    tree: &SupervisorHandle,
    world: &Arc<World>,
) -> Result<(), ControlError> {
    let script = &world.script;
    let (plans, letter) = if nested { (&script.nested, 'n') } else { (&script.children, 'c') };
    if plans.is_empty() {
        return Ok(());
    }
    let budget = |starts: usize| starts.checked_sub(1);
    if world.starts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, budget).is_err() {
        return Ok(());
    }
    let index = usize::from(plan) % plans.len();
    let tree = if nested { tree.supervisor("nest").await? } else { tree.clone() };
    let spec = spec(&plans[index], &format!("{letter}{index}"), world, false);
    let started = tree.start_child(spec).await?;
    if started.path().parent().is_none_or(|above| above != tree.path()) {
        world.violation(format!("{} was started below {}", started.path(), tree.path()));
    }
    Ok(())
}
