//! Limits of a supervisor, of a child and of all children, and what happens when one is exceeded.

use std::time::Duration;

use verger::policy::{Intensity, OnExhausted};
use verger::{
    ChildSpec, Context, DynamicSupervisor, Exit, Lifecycle, Supervisor, SupervisorHandle,
    supervisor, worker,
};

const SECOND: Duration = Duration::from_secs(1);
const SCORE: f64 = 2.5;

#[supervisor(
    intensity = Intensity::tumbling(100, 60 * SECOND),
    on_exhausted = OnExhausted::Exit(3),
    defaults(
        intensity = Intensity::decaying(SCORE, 30 * SECOND),
        consecutive_restarts = 9,
        failing_for = "1h",
        on_exhausted = "stop_child"
    )
)]
struct App {
    #[child]
    plain: ChildSpec,
    #[child(own_restarts(max = 1, period = "10s"), on_exhausted = OnExhausted::Pause(15 * SECOND))]
    paused: ChildSpec,
    #[child(
        intensity = Intensity::sliding(self.most, SECOND),
        consecutive_restarts = 3,
        failing_for = "10m",
        on_exhausted = "park"
    )]
    parked: ChildSpec,
    #[child(own_restarts(max = 0, period = "1s"), fallback = simple(self.answer))]
    offers: ChildSpec,
    #[dynamic(
        max_restarts = 7,
        period = "7s",
        on_exhausted = "park",
        child(intensity = Intensity::tumbling(2, SECOND), on_exhausted = OnExhausted::Exit(0))
    )]
    conns: DynamicSupervisor,
    most: u32,
    answer: u32,
}

#[worker(backoff(constant, delay = "1s"))]
async fn broken() -> Exit {
    Err("broken".into())
}

#[worker]
async fn simple(ctx: Context, answer: u32) {
    ctx.set_status(format!("the answer is {answer}"));
    ctx.cancelled().await;
}

fn app() -> App {
    App {
        plain: simple(1),
        paused: broken(),
        parked: broken(),
        offers: broken(),
        conns: DynamicSupervisor,
        most: 2,
        answer: 42,
    }
}

async fn lifecycle(tree: &SupervisorHandle, path: &str) -> Lifecycle {
    tree.which_child(path).await.unwrap().lifecycle
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let conns = DynamicSupervisor::builder("conns")
        .restarts(7, 7 * SECOND)
        .on_exhausted(OnExhausted::Park)
        .into_child()
        .intensity(Intensity::tumbling(2, SECOND))
        .on_exhausted(OnExhausted::Exit(0));
    let parked = broken()
        .named("parked")
        .intensity(Intensity::sliding(2, SECOND))
        .consecutive_restarts(3)
        .failing_for(600 * SECOND)
        .on_exhausted(OnExhausted::Park);
    let paused = broken().named("paused").own_restarts(1, 10 * SECOND);
    let by_builder = Supervisor::builder("app")
        .intensity(Intensity::tumbling(100, 60 * SECOND))
        .on_exhausted(OnExhausted::Exit(3))
        .defaults(|child| {
            child
                .intensity(Intensity::decaying(2.5, 30 * SECOND))
                .consecutive_restarts(9)
                .failing_for(3600 * SECOND)
                .on_exhausted(OnExhausted::StopChild)
        })
        .child(simple(1).named("plain"))
        .child(paused.on_exhausted(OnExhausted::Pause(15 * SECOND)))
        .child(parked)
        .child(broken().named("offers").own_restarts(0, SECOND).fallback(simple(42)))
        .child(conns);
    assert_eq!(format!("{:?}", app().builder()), format!("{by_builder:?}"));

    let tree = app().builder().build().unwrap().start().await.unwrap();
    let plain = tree.child_spec("plain").await.unwrap();
    assert_eq!(plain.intensity, Some(Intensity::decaying(2.5, 30 * SECOND)));
    assert_eq!((plain.consecutive_restarts, plain.failing_for), (Some(9), Some(3600 * SECOND)));
    assert_eq!(plain.on_exhausted, OnExhausted::StopChild);
    let conns = tree.child_spec("conns").await.unwrap();
    assert_eq!(conns.intensity, Some(Intensity::tumbling(2, SECOND)));
    assert_eq!(conns.on_exhausted, OnExhausted::Exit(0));

    // One restart a second: the second one within 10 s is too many for one, the fourth in a row for
    // the other, and the third child has none.
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(lifecycle(&tree, "paused").await, Lifecycle::Restarting);
    assert_eq!(lifecycle(&tree, "parked").await, Lifecycle::Errored);
    assert_eq!(tree.which_child("paused").await.unwrap().incarnation, 2);
    assert_eq!(tree.which_child("parked").await.unwrap().incarnation, 4);
    let offers = tree.which_child("offers").await.unwrap();
    assert_eq!(offers.status.as_deref(), Some("the answer is 42"));

    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(tree.which_child("paused").await.unwrap().incarnation, 4);
    tree.stop("the test is over").await.unwrap();
}
