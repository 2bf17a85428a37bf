//! The options of children and supervisors: rules 12 to 25.

use std::time::Duration;

use crate::common::{End, FakeChildren, conns, counts, start};
use verger::policy::{AutoShutdown, Preset};
use verger::status::ChildKind;
use verger::{
    BuildError, Child, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, RestartType,
    RunError, Shutdown, Supervisor, SupervisorBuilder, async_trait, child, component, worker,
};

const HOUR: Duration = Duration::from_secs(3600);

async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn otp_12_a_minimal_spec_has_otps_defaults() {
    let tree = start(
        Supervisor::builder("app")
            .child(worker("a", idle))
            .child(Supervisor::builder("sub"))
            .child(DynamicSupervisor::builder("conns")),
    )
    .await;

    let table = [
        ("a", ChildKind::Worker, Shutdown::Timeout(Duration::from_secs(5))),
        ("sub", ChildKind::Supervisor, Shutdown::Infinity),
        ("conns", ChildKind::Supervisor, Shutdown::Infinity),
    ];
    for (name, kind, shutdown) in table {
        let spec = tree.child_spec(name).await.unwrap();
        assert_eq!(spec.name, name);
        assert_eq!((spec.kind, spec.shutdown), (kind, shutdown), "{name}");
        assert_eq!((spec.restart, spec.significant), (RestartType::Permanent, false), "{name}");
        assert_eq!(spec.activation_timeout, None, "{name}");
    }
}

/// OTP returns the template. verger has no templates, so each child has its own spec.
#[tokio::test(start_paused = true)]
async fn otp_13_the_spec_of_a_dynamic_child_is_found_by_its_handle() {
    let (_tree, conns) = conns().await;
    let spec = worker("a", idle).restart(RestartType::Transient).shutdown(Shutdown::BrutalKill);
    let a = conns.start_child(spec).await.unwrap();
    let b = conns.start_child(worker("b", idle)).await.unwrap();

    let spec = conns.child_spec(a.name()).await.unwrap();
    assert_eq!((spec.restart, spec.shutdown), (RestartType::Transient, Shutdown::BrutalKill));
    let spec = conns.child_spec(b.name()).await.unwrap();
    assert_eq!(spec.restart, RestartType::Permanent);
    assert_eq!(spec.shutdown, Shutdown::Timeout(Duration::from_secs(5)));
    assert!(matches!(conns.child_spec("c#3").await, Err(ControlError::NotFound { .. })));
}

/// A spec without a start, or with an unknown key, doesn't compile. A name is any text.
#[test]
fn otp_14_each_kind_of_invalid_name_has_its_own_error() {
    let long = "a".repeat(256);
    let table = [
        ("", "is empty"),
        ("a/b", "contains `/`, which separates the names in a path"),
        ("a#1", "contains `#`, which comes before the serial number of a dynamic child"),
        (" a", "begins or ends with white space"),
        ("a\u{7}b", "contains a control character"),
        (&long, "is longer than 255 bytes"),
    ];
    for (name, problem) in table {
        let error = Supervisor::builder("app").child(worker(name, idle)).build().unwrap_err();
        assert!(matches!(&error, BuildError::BadName { parent, .. } if parent == "app"));
        assert!(error.to_string().contains(&format!("{problem}; write ")), "{error}");
    }
}

#[test]
fn otp_15_only_significant_with_permanent_and_significant_with_never_are_refused() {
    let shutdowns = [
        Shutdown::BrutalKill,
        Shutdown::Timeout(Duration::ZERO),
        Shutdown::Timeout(Duration::from_secs(1)),
        Shutdown::Infinity,
    ];
    let kinds: [fn() -> ChildSpec; 2] =
        [|| worker("a", idle), || Supervisor::builder("a").into_child()];
    let (mut accepted, mut refused) = (0, 0);
    for restart in [RestartType::Permanent, RestartType::Transient, RestartType::Temporary] {
        for (shutdown, kind) in shutdowns.into_iter().flat_map(|it| kinds.map(|kind| (it, kind))) {
            for (significant, auto_shutdown) in [
                (false, AutoShutdown::Never),
                (false, AutoShutdown::AnySignificant),
                (false, AutoShutdown::AllSignificant),
                (true, AutoShutdown::Never),
                (true, AutoShutdown::AnySignificant),
                (true, AutoShutdown::AllSignificant),
            ] {
                let mut spec = kind().restart(restart).shutdown(shutdown);
                if significant {
                    spec = spec.significant();
                }
                let tree = Supervisor::builder("app").auto_shutdown(auto_shutdown).child(spec);
                let permanent = restart == RestartType::Permanent;
                match tree.build() {
                    Ok(_) => {
                        assert!(
                            !significant || (!permanent && auto_shutdown != AutoShutdown::Never)
                        );
                        accepted += 1;
                    }
                    Err(BuildError::SignificantPermanent { path }) => {
                        assert!(significant && permanent);
                        assert_eq!(path.as_str(), "app/a");
                        refused += 1;
                    }
                    Err(BuildError::SignificantWithoutAutoShutdown { path, parent }) => {
                        assert!(significant && !permanent && auto_shutdown == AutoShutdown::Never);
                        assert_eq!((path.as_str(), parent.as_str()), ("app/a", "app"));
                        refused += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    assert_eq!((accepted, refused), (8 * (9 + 4), 8 * (3 + 2)));
}

/// There are no templates, so there can't be none or two of them.
#[test]
fn otp_16_two_children_with_one_name_are_an_error_that_states_the_name() {
    let tree = Supervisor::builder("app").child(worker("a", idle)).child(worker("b", idle));
    let error = tree.child(Supervisor::builder("a")).build().unwrap_err();

    assert!(matches!(
        error,
        BuildError::DuplicateChild { parent, name } if parent.as_str() == "app" && name == "a"
    ));
}

/// A bad strategy, intensity or auto-shutdown doesn't compile. An endless period is legal here.
#[test]
fn otp_17_a_period_of_zero_is_refused_and_an_endless_one_is_not() {
    let refused = |result: Result<Supervisor, BuildError>| matches!(result, Err(BuildError::ZeroPeriod { path, max: 3 }) if path.as_str() == "app");

    assert!(refused(Supervisor::builder("app").restarts(3, Duration::ZERO).build()));
    assert!(refused(DynamicSupervisor::builder("app").restarts(3, Duration::ZERO).build()));
    assert!(Supervisor::builder("app").restarts(3, Duration::MAX).build().is_ok());
}

/// Elixir requires a strategy; verger defaults to `one_for_one`.
#[tokio::test(start_paused = true)]
async fn otp_21_elixirs_preset_alone_means_three_restarts_in_five_seconds() {
    let fakes = FakeChildren::new();
    let tree =
        start(Supervisor::builder("app").preset(Preset::elixir()).child(fakes.child("a"))).await;

    let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!(supervisor.strategy, "one_for_one");
    assert_eq!(supervisor.max_restarts, Some(3));
    assert_eq!(supervisor.period, Duration::from_secs(5));

    for incarnation in 2..=4 {
        fakes.end("a", End::Error).await;
        assert_eq!(tree.which_child("a").await.unwrap().incarnation, incarnation);
    }
    fakes.end("a", End::Error).await;
    let ended = tokio::time::timeout(HOUR, tree.wait()).await.expect("it has not given up");
    assert!(matches!(ended, Err(RunError::GaveUp { .. })));
}

/// A significant child is refused where there is no auto-shutdown, so it shows the default.
#[tokio::test(start_paused = true)]
async fn otp_21_by_default_there_is_no_auto_shutdown() {
    let job = |fakes: &FakeChildren| fakes.child("a").restart(RestartType::Transient);
    for app in [
        Supervisor::builder as fn(&'static str) -> SupervisorBuilder,
        |name| Supervisor::builder(name).preset(Preset::elixir()),
        |name| Supervisor::builder(name).preset(Preset::otp()),
    ] {
        let fakes = FakeChildren::new();
        let error = app("app").child(job(&fakes).significant()).build().unwrap_err();
        assert!(matches!(&error, BuildError::SignificantWithoutAutoShutdown { .. }), "{error}");

        // The only child ends, and the supervisor goes on without one.
        let tree = start(app("app").child(job(&fakes))).await;
        fakes.end("a", End::Normal).await;
        assert!(tokio::time::timeout(HOUR, tree.wait()).await.is_err());
        tree.stop("next").await.unwrap();
    }
}

/// There are no unknown modules: a value that is no child doesn't compile.
#[tokio::test(start_paused = true)]
async fn otp_22_every_child_spec_can_be_overridden_and_the_last_override_wins() {
    let tree = start(
        Supervisor::builder("app")
            .defaults(|child| {
                child.restart(RestartType::Temporary).shutdown(Duration::from_secs(9))
            })
            .child(worker("defaults", idle))
            .child(worker("own", idle).restart(RestartType::Permanent).shutdown(Shutdown::Infinity))
            .child(
                worker("last", idle)
                    .restart(RestartType::Permanent)
                    .restart(RestartType::Transient),
            )
            .child(ChildSpec::from(Supervisor::builder("sub").build().unwrap()).shutdown(HOUR)),
    )
    .await;

    let table = [
        ("defaults", RestartType::Temporary, Shutdown::Timeout(Duration::from_secs(9))),
        ("own", RestartType::Permanent, Shutdown::Infinity),
        ("last", RestartType::Transient, Shutdown::Timeout(Duration::from_secs(9))),
        ("sub", RestartType::Temporary, Shutdown::Timeout(HOUR)),
    ];
    for (name, restart, shutdown) in table {
        let spec = tree.child_spec(name).await.unwrap();
        assert_eq!((spec.restart, spec.shutdown), (restart, shutdown), "{name}");
    }
}

/// The equivalent of a module with `child_spec/1`, whose argument is the port.
#[derive(Clone)]
struct Listener {
    port: u16,
}

#[async_trait]
impl Child for Listener {
    fn child_spec(spec: ChildSpec) -> ChildSpec {
        spec.restart(RestartType::Transient).shutdown(HOUR)
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.set_status(format!("port {}", self.port));
        ctx.cancelled().await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn otp_22_overrides_win_over_the_spec_of_a_type_a_value_or_a_full_spec() {
    let of_type = || child("listener", || Listener { port: 80 });
    let of_value = |name| component(name, Listener { port: 81 });
    let full = || Listener::child_spec(worker("full", idle)).shutdown(Shutdown::BrutalKill);
    let overridden = [of_type(), of_value("value"), full()].map(|spec| {
        let name = format!("{}-2", spec.name());
        spec.named(name).restart(RestartType::Temporary).shutdown(Shutdown::Infinity)
    });
    let specs = [of_type(), of_value("value"), full(), component("full-3", full())];
    let specs = specs.into_iter().chain(overridden);
    let tree = start(specs.fold(Supervisor::builder("app"), SupervisorBuilder::child)).await;

    let (own, overridden) = (RestartType::Transient, RestartType::Temporary);
    let table = [
        ("listener", own, Shutdown::Timeout(HOUR), Some("port 80")),
        ("value", own, Shutdown::Timeout(HOUR), Some("port 81")),
        ("full", own, Shutdown::BrutalKill, None),
        ("full-3", own, Shutdown::BrutalKill, None),
        ("listener-2", overridden, Shutdown::Infinity, Some("port 80")),
        ("value-2", overridden, Shutdown::Infinity, Some("port 81")),
        ("full-2", overridden, Shutdown::Infinity, None),
    ];
    assert_eq!(tree.otp().which_children().await.unwrap().len(), table.len());
    for (name, restart, shutdown, status) in table {
        let spec = tree.child_spec(name).await.unwrap();
        assert_eq!((spec.restart, spec.shutdown), (restart, shutdown), "{name}");
        let child = tree.which_child(name).await.unwrap();
        assert_eq!(child.status.as_deref(), status, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_23_the_child_spec_of_a_supervisor_takes_options() {
    let specs =
        [Supervisor::builder("sub").into_child(), DynamicSupervisor::builder("conns").into_child()];
    let specs = specs.map(|spec| spec.restart(RestartType::Transient).shutdown(HOUR));
    let tree =
        start(specs.into_iter().fold(Supervisor::builder("app"), SupervisorBuilder::child)).await;

    for name in ["sub", "conns"] {
        let spec = tree.child_spec(name).await.unwrap();
        assert_eq!((spec.name.as_str(), spec.kind), (name, ChildKind::Supervisor));
        assert_eq!(spec.restart, RestartType::Transient);
        assert_eq!(spec.shutdown, Shutdown::Timeout(HOUR));
    }
}

#[test]
fn otp_24_a_root_with_an_ill_formed_name_is_refused_and_does_not_crash_later() {
    for name in ["", "a/b", "a#1"] {
        for result in [Supervisor::builder(name).build(), DynamicSupervisor::builder(name).build()]
        {
            let error = result.unwrap_err();
            assert!(matches!(&error, BuildError::BadName { parent, .. } if parent == "the root"));
        }
    }
}

/// A path is a name, so each child has one. An invalid path has another error than a missing child.
#[tokio::test(start_paused = true)]
async fn otp_24_a_child_has_exactly_one_path() {
    let (_tree, conns) = conns().await;
    conns.start_child(worker("conn", idle)).await.unwrap();
    assert_eq!(conns.which_child("conn#1").await.unwrap().path.as_str(), "app/conns/conn#1");

    for path in ["conn", "conn#", "conn#01", "conn#+1", "conn#2", "conn#x", "other#1", "conn#1#1"] {
        let error = conns.which_child(path).await.unwrap_err();
        assert!(matches!(error, ControlError::NotFound { .. }), "{path}: {error}");
    }
    for path in ["", "/", "/conn#1", "conn#1/", "a//b"] {
        let error = conns.which_child(path).await.unwrap_err();
        assert!(matches!(error, ControlError::NotAChild { .. }), "{path:?}: {error}");
    }
}

/// Every supervisor has a name here; Elixir falls back to the type, so that two names collide.
#[tokio::test(start_paused = true)]
async fn otp_25_a_second_dynamic_supervisor_with_one_name_is_already_started() {
    let (tree, _conns) = conns().await;

    let same = tree.start_child(DynamicSupervisor::builder("conns")).await;
    assert!(matches!(
        same,
        Err(ControlError::NameTaken { path, running: true }) if path.as_str() == "app/conns"
    ));
    let other = tree.start_child(DynamicSupervisor::builder("jobs")).await.unwrap();
    assert_eq!(other.path().as_str(), "app/jobs");
    assert_eq!(counts(&tree).await, [2, 2, 2, 0]);
}
