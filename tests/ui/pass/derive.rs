//! The derive macro with all options, few and none, beside other derives.

use verger::policy::Preset;
use verger::{
    ChildSpec, DynamicSupervisor, RestartType, Strategy, Supervisor, SupervisorBuilder, worker,
};

#[derive(Clone, Debug, Supervisor)]
#[tree(
    name = "root",
    strategy = "one_for_all",
    max_restarts = self.limit,
    period = "10s",
    preset = Preset::otp(),
    child(restart = "transient")
)]
struct Full<T>
where
    T: Clone,
{
    #[child(name = "tick", shutdown = "20s")]
    clock: T,
    #[dynamic(max_children = 5, restart = "temporary")]
    conns: DynamicSupervisor,
    #[tree(requires = "tick")]
    plain: SupervisorBuilder,
    limit: u32,
}

#[derive(Supervisor)]
struct Plain {
    #[child]
    clock: ChildSpec,
}

#[derive(Supervisor)]
struct Empty {}

#[derive(Supervisor)]
struct Unit;

fn clock() -> ChildSpec {
    worker("clock", async |ctx| ctx.cancelled().await)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let plain = || Plain { clock: clock() }.builder();
    let full = Full { clock: clock(), conns: DynamicSupervisor, plain: plain(), limit: 9 };
    let conns = DynamicSupervisor::builder("conns").max_children(5).into_child();
    let by_builder = Supervisor::builder("root")
        .strategy(Strategy::OneForAll)
        .preset(Preset::otp())
        .restarts(9, std::time::Duration::from_secs(10))
        .child(clock().named("tick").shutdown(std::time::Duration::from_secs(20)))
        .child(conns.restart(RestartType::Temporary))
        .child(plain().into_child().named("plain").requires("tick"));
    assert_eq!(format!("{:?}", full.clone().builder()), format!("{by_builder:?}"));
    assert!(format!("{:?}", full.into_child()).contains("Transient"));

    let app = Supervisor::builder("app").child(Empty {}).child(Unit).child(plain());
    let tree = app.build().unwrap().start().await.unwrap();
    assert_eq!(tree.otp().count_children().await.unwrap().supervisors, 3);
    tree.stop("the test is over").await.unwrap();
}
