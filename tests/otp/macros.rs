//! Elixir's `use Supervisor` and `child_spec/1`, as attributes.
#![cfg(feature = "macros")]

use std::time::Duration;

use crate::common::start;
use verger::policy::{AutoShutdown, Preset};
use verger::status::ChildKind;
use verger::{BuildError, Context, RestartType, RunError, Shutdown, supervisor, worker};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone)]
struct Db;

#[worker(restart = "transient", shutdown = "20s")]
impl Db {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

/// Elixir requires a strategy and allows 3 restarts in 5 s; verger defaults to `one_for_one` and 5
/// in 60 s.
#[tokio::test(start_paused = true)]
async fn otp_21_options_that_a_declaration_omits_have_their_defaults() {
    #[supervisor]
    struct Nothing {}

    #[supervisor(strategy = "one_for_all")]
    struct Strategy {
        #[child]
        db: Db,
    }

    #[supervisor(strategy = "one_for_all", preset = Preset::elixir())]
    struct Elixir {}

    let table = [
        (Nothing {}.builder(), "one_for_one", None, 0),
        (Strategy { db: Db }.builder(), "one_for_all", None, 0),
        (Elixir {}.builder(), "one_for_all", Some(3), 5),
    ];
    for (builder, strategy, max, secs) in table {
        let tree = start(builder).await;
        let root = tree.status().await.unwrap().root.supervisor.unwrap();
        assert_eq!(root.strategy, strategy);
        assert_eq!((root.max_restarts, root.period), (max, Duration::from_secs(secs)));
        tree.stop("next").await.unwrap();
    }

    // A significant child is refused, because there is no auto-shutdown.
    let declared = || {
        let job = verger::worker("job", async |ctx: Context| ctx.cancelled().await);
        let job = job.restart(RestartType::Transient).significant();
        Strategy { db: Db }.builder().child(job)
    };
    let error = declared().build().unwrap_err();
    assert!(matches!(&error, BuildError::SignificantWithoutAutoShutdown { .. }), "{error}");
    assert!(declared().auto_shutdown(AutoShutdown::AnySignificant).build().is_ok());

    // The end of the only child ends nothing.
    let tree = start(Strategy { db: Db }.builder()).await;
    tree.otp().terminate_child("db").await.unwrap();
    assert!(tokio::time::timeout(HOUR, tree.wait()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn otp_22_options_at_a_childs_declaration_win_over_its_type() {
    #[supervisor]
    struct App {
        #[child]
        plain: Db,
        #[child(name = "other", restart = "temporary", shutdown = "brutal_kill")]
        overridden: Db,
    }

    let tree = start(App { plain: Db, overridden: Db }.builder()).await;

    let table = [
        ("plain", RestartType::Transient, Shutdown::Timeout(Duration::from_secs(20))),
        ("other", RestartType::Temporary, Shutdown::BrutalKill),
    ];
    for (name, restart, shutdown) in table {
        let spec = tree.child_spec(name).await.unwrap();
        assert_eq!((spec.restart, spec.shutdown), (restart, shutdown), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_23_the_child_spec_of_an_annotated_supervisor_has_its_options_and_can_be_overridden() {
    #[supervisor(name = "sub", child(restart = "transient", shutdown = "1h"))]
    struct Node {
        #[child]
        db: Db,
    }

    #[supervisor]
    struct App {
        #[supervisor]
        plain: Node,
        #[supervisor(restart = "temporary", shutdown = "infinity")]
        overridden: Node,
    }

    let node = || Node { db: Db };
    let app = App { plain: node(), overridden: node() };
    let manual = node().into_child().named("manual").restart(RestartType::Permanent);
    let tree = start(app.builder().child(node()).child(manual)).await;

    let hour = Shutdown::Timeout(HOUR);
    let table = [
        ("plain", RestartType::Transient, hour),
        ("overridden", RestartType::Temporary, Shutdown::Infinity),
        ("sub", RestartType::Transient, hour),
        ("manual", RestartType::Permanent, hour),
    ];
    for (name, restart, shutdown) in table {
        let spec = tree.child_spec(name).await.unwrap();
        assert_eq!((spec.name.as_str(), spec.kind), (name, ChildKind::Supervisor));
        assert_eq!((spec.restart, spec.shutdown), (restart, shutdown), "{name}");
        // The declared children are started.
        let db = tree.which_child(&format!("{name}/db")).await.unwrap();
        assert_eq!(db.path.as_str(), format!("app/{name}/db"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_declared_tree_runs_until_it_ends() {
    #[worker]
    async fn once() -> Result<(), &'static str> {
        Err("no such file")
    }

    #[supervisor(max_restarts = 0, period = "1s")]
    struct App {
        #[child]
        once: verger::ChildSpec,
    }

    let ended = App { once: once() }.run().await;
    let Err(RunError::GaveUp { child, reason, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!((child.as_str(), reason.to_string().as_str()), ("app/once", "failed: no such file"));
}
