//! Counts of children, the memory they keep, and their order: rules 34 to 38.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, counts, settle, start};
use verger::policy::Preset;
use verger::{
    Backoff, Child, Context, ControlError, DynamicSupervisor, Exit, RestartType, Strategy,
    Supervisor, SupervisorHandle, async_trait, child, worker,
};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a root `app` and a dynamic supervisor `conns` below it, whose children restart after a
/// second.
async fn conns() -> (SupervisorHandle, SupervisorHandle) {
    let conns = DynamicSupervisor::builder("conns")
        .unlimited_restarts()
        .defaults(|child| child.backoff(Backoff::constant(SECOND)));
    let tree = start(Supervisor::builder("app").child(conns)).await;
    let conns = tree.supervisor("conns").await.unwrap();
    (tree, conns)
}

async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

/// OTP counts one template. Here, as in Elixir, each child has a spec.
#[tokio::test(start_paused = true)]
async fn otp_34_a_thousand_and_two_thousand_dynamic_children_are_counted_by_their_type() {
    let worker = worker("a", idle).restart(RestartType::Temporary);
    let supervisor = Supervisor::builder("sub").child(worker.clone());
    let supervisor = supervisor.into_child().restart(RestartType::Temporary);
    for (spec, supervisors) in [(worker, 0), (supervisor, 1)] {
        let (tree, conns) = conns().await;
        let mut names = Vec::new();
        for many in [1000, 2000] {
            while names.len() < many {
                names.push(conns.start_child(spec.clone()).await.unwrap().name().to_owned());
            }
            let many = u32::try_from(many).unwrap();
            let supervisors = supervisors * many;
            assert_eq!(counts(&conns).await, [many, many, supervisors, many - supervisors]);
        }

        for name in &names {
            conns.kill(name).await.unwrap();
        }
        settle().await;
        assert_eq!(counts(&conns).await, [0; 4]);
        tree.stop("the test is over").await.unwrap();
    }
}

/// OTP restarts without a delay, so the state is brief; here, attempts are a second apart.
#[tokio::test(start_paused = true)]
async fn otp_35_children_that_are_being_restarted_count_but_not_as_active() {
    let fakes = FakeChildren::new();
    let (_tree, conns) = conns().await;
    let mut children = Vec::new();
    for name in ["a", "b", "c"] {
        children.push(conns.start_child(fakes.child(name)).await.unwrap());
    }
    assert_eq!(counts(&conns).await, [3, 3, 0, 3]);

    fakes.next_starts("b", [NextStart::Error]);
    fakes.next_starts("c", [NextStart::Error]);
    fakes.end("b", End::Error).await;
    fakes.end("c", End::Error).await;
    assert_eq!(counts(&conns).await, [3, 1, 0, 3], "they wait");
    assert_eq!(conns.otp().count_children().await.unwrap().restarting, 2);

    tokio::time::sleep(SECOND).await;
    settle().await;
    assert_eq!(fakes.actions()[5..], ["try b", "try c"]);
    assert_eq!(counts(&conns).await, [3, 1, 0, 3], "they could not start");

    tokio::time::sleep(SECOND).await;
    settle().await;
    assert_eq!(fakes.actions(), ["start b", "start c"]);
    assert_eq!(counts(&conns).await, [3, 3, 0, 3], "they are back");
    assert_eq!(conns.otp().count_children().await.unwrap().restarting, 0);

    for (left, child) in (0..3).rev().zip(&children) {
        conns.otp().terminate_child(child.name()).await.unwrap();
        assert_eq!(counts(&conns).await, [left, left, 0, left]);
    }
}

/// OTP drops a temporary child's arguments at once. Here, all children of a spec share them.
#[tokio::test(start_paused = true)]
async fn otp_36_the_parts_of_a_spec_are_kept_once_and_dropped_with_its_last_child() {
    struct Idle;

    #[async_trait]
    impl Child for Idle {
        async fn run(&mut self, ctx: &Context) -> Exit {
            ctx.cancelled().await;
            Ok(())
        }
    }

    let large = Arc::new(vec![0; 1_000_000]);
    let spec = {
        let large = Arc::clone(&large);
        let factory = move || {
            assert_eq!(large.len(), 1_000_000);
            Idle
        };
        child("a", factory).restart(RestartType::Temporary)
    };
    let (_tree, conns) = conns().await;
    let earlier = conns.start_child(spec.clone()).await.unwrap();
    conns.kill(earlier.name()).await.unwrap();
    let mut children = Vec::new();
    for _ in 0..100 {
        children.push(conns.start_child(spec.clone()).await.unwrap());
    }
    drop(spec);
    settle().await;
    assert_eq!(counts(&conns).await, [100, 100, 0, 100]);
    assert_eq!(Arc::strong_count(&large), 2, "ours, and one for the hundred");

    for child in children {
        conns.otp().terminate_child(child.name()).await.unwrap();
    }
    settle().await;
    assert_eq!(Arc::strong_count(&large), 1, "it can't be started again");
}

#[tokio::test(start_paused = true)]
async fn otp_37_a_name_is_free_again_only_after_a_temporary_child_however_it_ended() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Death {
        Terminated,
        Killed,
        Ended(End),
    }
    use Death::{Ended, Killed, Terminated};

    let deaths = [Terminated, Killed, Ended(End::Normal), Ended(End::Error), Ended(End::Panic)];
    let strategies = [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne];
    for (strategy, death) in strategies.into_iter().flat_map(|it| deaths.map(|death| (it, death))) {
        for restart in [RestartType::Permanent, RestartType::Transient, RestartType::Temporary] {
            let fakes = FakeChildren::new();
            let spec = || fakes.child("a").restart(restart);
            let tree = start(
                Supervisor::builder("app").preset(Preset::otp()).strategy(strategy).child(spec()),
            )
            .await;

            match death {
                Terminated => tree.otp().terminate_child("a").await.unwrap(),
                Killed => drop(tree.kill("a").await.unwrap()),
                Ended(end) => fakes.end_without_settling("a", end),
            }
            settle().await;
            let answer = tree.start_child(spec()).await;

            let case = format!("{strategy}, {restart}, {death:?}: {answer:?}");
            let kept = match restart {
                RestartType::Transient => matches!(death, Terminated | Ended(End::Normal)),
                _ => death == Terminated,
            };
            match answer {
                Ok(_) => assert_eq!(restart, RestartType::Temporary, "{case}"),
                Err(ControlError::NameTaken { running: false, .. }) => {
                    assert!(restart != RestartType::Temporary && kept, "{case}");
                }
                Err(ControlError::NameTaken { running: true, .. }) => {
                    assert!(restart != RestartType::Temporary && !kept, "{case}");
                }
                Err(_) => panic!("{case}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_38_children_start_and_stop_in_declaration_order_and_not_by_name() {
    let fakes = FakeChildren::new();
    let names = ["delta", "alpha", "echo", "bravo", "charlie"];
    let builder = Supervisor::builder("app").preset(Preset::otp()).strategy(Strategy::RestForOne);
    let tree = start(names.iter().fold(builder, |it, name| it.child(fakes.child(name)))).await;
    assert_eq!(
        fakes.actions(),
        ["start delta", "start alpha", "start echo", "start bravo", "start charlie"],
    );

    fakes.end("echo", End::Error).await;
    assert_eq!(
        fakes.actions(),
        ["end echo", "stop charlie", "stop bravo", "start echo", "start bravo", "start charlie"],
    );

    tree.stop("the test is over").await.unwrap();
    assert_eq!(
        fakes.actions(),
        ["stop charlie", "stop bravo", "stop echo", "stop alpha", "stop delta"],
    );
}
