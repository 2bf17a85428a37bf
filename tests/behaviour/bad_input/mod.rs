//! Invalid trees are refused when they are built or when a child is added, with the path, the
//! mistake and its remedy.

mod warnings;

use std::time::Duration;

use verger::policy::{AutoShutdown, Start};
use verger::{
    Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, RestartType, Supervisor,
    SupervisorBuilder, SupervisorHandle, worker,
};

const MINUTE: Duration = Duration::from_secs(60);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

async fn idle(ctx: Context) -> Exit {
    ctx.cancelled().await;
    Ok(())
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app")
}

/// Returns the error of building a tree in which `faulty` is two levels below the root.
fn refused_below(faulty: impl Into<ChildSpec>) -> String {
    refused(app().child(Supervisor::builder("ingest").child(faulty)))
}

fn refused(builder: SupervisorBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

/// Returns the error of `start_child` for a child.
async fn refused_later(handle: &SupervisorHandle, faulty: impl Into<ChildSpec>) -> String {
    let error = handle.start_child(faulty).await.unwrap_err();
    assert!(matches!(error, ControlError::InvalidSpec(_)), "{error:?}");
    error.to_string()
}

/// Invalid names, and the error for each.
fn bad_names() -> [(String, &'static str); 7] {
    [
        (String::new(), r#"the name "" is empty; write "worker", for example"#),
        (
            "mq/tt".to_owned(),
            r#"the name "mq/tt" contains `/`, which separates the names in a path; write "mq-tt", for example"#,
        ),
        (
            "conn#1".to_owned(),
            r#"the name "conn#1" contains `#`, which comes before the serial number of a dynamic child; write "conn-1", for example"#,
        ),
        (
            " mqtt".to_owned(),
            r#"the name " mqtt" begins or ends with white space; write "mqtt", for example"#,
        ),
        (
            " ".to_owned(),
            r#"the name " " begins or ends with white space; write "worker", for example"#,
        ),
        (
            "mq\ntt".to_owned(),
            r#"the name "mq\ntt" contains a control character; write "mq-tt", for example"#,
        ),
        (
            "x".repeat(256),
            r#"the name "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" is longer than 255 bytes; write "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…", for example"#,
        ),
    ]
}

/// Invalid backoffs, and the error for each.
fn bad_backoffs() -> [(Backoff, &'static str); 8] {
    let good = Backoff::exponential(ms(200), Duration::from_secs(30));
    let jitter = "`jitter` of the backoff is 1.5; write a fraction from 0 to 1, such as 0.2";
    [
        (good.clone().jitter(1.5), jitter),
        (Backoff::constant(ms(1)).jitter(1.5), jitter),
        (
            good.clone().jitter(-0.1),
            "`jitter` of the backoff is -0.1; write a fraction from 0 to 1, such as 0.2",
        ),
        (
            good.clone().jitter(f64::NAN),
            "`jitter` of the backoff is NaN; write a fraction from 0 to 1, such as 0.2",
        ),
        (
            Backoff::exponential(ms(500), ms(200)),
            "`max` of the backoff is 200ms; write at least `min`, which is 500ms",
        ),
        (
            Backoff::linear(ms(0), ms(100), ms(200)),
            "`min` of the backoff is 0s; write a first delay above zero, or `Backoff::none()` for no delay",
        ),
        (
            good.factor(0.5),
            "`factor` of the backoff is 0.5; write a finite number of at least 1, such as 2",
        ),
        (
            Backoff::constant(ms(1)).factor(3.0),
            "`factor` of the backoff is 3; leave it out, or use `Backoff::exponential`, the only curve that has it",
        ),
    ]
}

#[test]
fn an_invalid_name_is_refused_with_a_valid_suggestion() {
    for (name, problem) in bad_names() {
        assert_eq!(
            refused(Supervisor::builder(name.clone())),
            format!("the root has a bad name: {problem}"),
        );
        assert_eq!(
            refused(app().child(worker(name.clone(), idle))),
            format!("`app` has a child with a bad name: {problem}"),
        );
        assert_eq!(
            refused(app().child(Supervisor::builder("pool").into_child().named(name.clone()))),
            format!("`app` has a child with a bad name: {problem}"),
        );
        assert_eq!(
            refused_below(worker(name.clone(), idle)),
            format!("`app/ingest` has a child with a bad name: {problem}"),
        );
        let dynamic = DynamicSupervisor::builder(name).build().unwrap_err().to_string();
        assert_eq!(dynamic, format!("the root has a bad name: {problem}"));
    }
    let longest = "x".repeat(255);
    assert!(app().child(worker(longest, idle)).build().is_ok());
}

#[test]
fn two_children_with_the_same_name_are_refused() {
    let pair = |builder: SupervisorBuilder| {
        builder.child(worker("db", idle)).child(Supervisor::builder("db"))
    };
    assert_eq!(
        refused(pair(app())),
        "`app` has two children named `db`; give one of them another name",
    );
    assert_eq!(
        refused_below(pair(Supervisor::builder("pool"))),
        "`app/ingest/pool` has two children named `db`; give one of them another name",
    );
    // Under different parents, they are different children.
    let same = || Supervisor::builder("db").child(worker("db", idle));
    assert!(app().child(same()).child(Supervisor::builder("other").child(same())).build().is_ok());
}

#[test]
fn a_restart_period_of_zero_is_refused() {
    let remedy = "write a period such as `Duration::from_secs(60)`, or `unlimited_restarts()`";
    assert_eq!(
        refused(app().restarts(3, Duration::ZERO)),
        format!("`app` allows 3 restarts in a period of zero; {remedy}"),
    );
    assert_eq!(
        refused_below(Supervisor::builder("pool").restarts(0, Duration::ZERO)),
        format!("`app/ingest/pool` allows 0 restarts in a period of zero; {remedy}"),
    );
    assert_eq!(
        refused_below(DynamicSupervisor::builder("conns").restarts(3, Duration::ZERO)),
        format!("`app/ingest/conns` allows 3 restarts in a period of zero; {remedy}"),
    );
    assert!(
        app().restarts(0, MINUTE).build().is_ok(),
        "no restarts at all is something to ask for"
    );
}

#[test]
fn a_requirement_cycle_is_refused_with_its_members() {
    let circle = |builder: SupervisorBuilder| {
        builder
            .child(worker("log", idle))
            .child(worker("a", idle).requires("log").requires("b"))
            .child(worker("b", idle).requires("c"))
            .child(worker("c", idle).requires("a"))
    };
    for start in [Start::Sequential, Start::Concurrent] {
        assert_eq!(
            refused(circle(app().start(start))),
            "the children of `app` require each other in a cycle: a → b → c → a; remove one of these requirements",
        );
    }
    assert_eq!(
        refused_below(circle(Supervisor::builder("pool"))),
        "the children of `app/ingest/pool` require each other in a cycle: a → b → c → a; remove one of these requirements",
    );
    assert_eq!(
        refused(app().child(worker("a", idle).requires("a"))),
        "the children of `app` require each other in a cycle: a → a; remove one of these requirements",
    );
}

#[test]
fn an_unknown_requirement_is_refused_with_the_existing_names() {
    let api = || worker("api", idle).requires("bd");
    assert_eq!(
        refused(app().child(worker("db", idle)).child(worker("log", idle)).child(api())),
        "`app/api` requires `bd`, but `app` has no such child; it has `db`, `log`",
    );
    assert_eq!(
        refused_below(api()),
        "`app/ingest/api` requires `bd`, but `app/ingest` has no such child; it has no other children",
    );
    let many = (0..12).fold(app(), |app, n| app.child(worker(format!("w{n}"), idle)));
    assert_eq!(
        refused(many.child(api())),
        "`app/api` requires `bd`, but `app` has no such child; it has `w0`, `w1`, `w2`, `w3`, \
         `w4`, `w5`, `w6`, `w7`, `w8`, `w9` and 2 more",
    );
}

#[test]
fn a_later_requirement_is_refused_unless_children_start_concurrently() {
    let pair = |builder: SupervisorBuilder| {
        builder.child(worker("api", idle).requires("db")).child(worker("db", idle))
    };
    let remedy = "is declared after it and would be started later; declare `db` first, or start \
                  the children with `Start::Concurrent`";
    assert_eq!(refused(pair(app())), format!("`app/api` requires `db`, which {remedy}"));
    assert_eq!(
        refused_below(pair(Supervisor::builder("pool"))),
        format!("`app/ingest/pool/api` requires `db`, which {remedy}"),
    );
    assert!(pair(app().start(Start::Concurrent)).build().is_ok());
}

#[test]
fn a_significant_child_that_ends_nothing_is_refused() {
    let auto = || Supervisor::builder("jobs").auto_shutdown(AutoShutdown::AnySignificant);
    let transient = || worker("migrate", idle).restart(RestartType::Transient).significant();

    assert_eq!(
        refused(app().child(auto().child(worker("migrate", idle).significant()))),
        "`app/jobs/migrate` is significant, but restarted after every exit, as a permanent child \
         is; make it transient or temporary",
    );
    assert_eq!(
        refused_below(transient()),
        "`app/ingest/migrate` is significant, but `app/ingest` has no auto-shutdown; add \
         `auto_shutdown(AutoShutdown::AnySignificant)` to it, or remove `significant()`",
    );
    assert!(app().child(auto().child(transient())).build().is_ok());
    let by_default = auto().defaults(|child| child.restart(RestartType::Transient));
    assert!(by_default.child(worker("migrate", idle).significant()).build().is_ok());
}

#[test]
fn an_invalid_backoff_is_refused() {
    for (backoff, problem) in bad_backoffs() {
        assert_eq!(
            refused(app().child(worker("db", idle).backoff(backoff.clone()))),
            format!("the backoff of `app/db` cannot work: {problem}"),
        );
        assert_eq!(
            refused_below(worker("db", idle).backoff(backoff.clone())),
            format!("the backoff of `app/ingest/db` cannot work: {problem}"),
        );
        let default = Supervisor::builder("pool").defaults(|child| child.backoff(backoff.clone()));
        assert_eq!(
            refused_below(default),
            format!("the backoff of `app/ingest/pool` cannot work: {problem}"),
        );
        assert_eq!(
            refused_below(Supervisor::builder("pool").into_child().backoff(backoff)),
            format!("the backoff of `app/ingest/pool` cannot work: {problem}"),
        );
    }
}

#[test]
fn an_activation_timeout_of_zero_is_refused() {
    assert_eq!(
        refused_below(worker("db", idle).activation_timeout(Duration::ZERO)),
        "the activation timeout of `app/ingest/db` is zero; write a duration such as `10s`",
    );
    let default = |child: verger::ChildDefaults| child.activation_timeout(Duration::ZERO);
    assert_eq!(
        refused_below(Supervisor::builder("pool").defaults(default)),
        "the default activation timeout of `app/ingest/pool` is zero; write a duration such as `10s`",
    );
}

#[test]
fn a_watchdog_of_zero_and_one_of_a_supervisor_are_refused() {
    assert_eq!(
        refused_below(worker("db", idle).watchdog(Duration::ZERO)),
        "the watchdog of `app/ingest/db` is zero; write a duration such as `30s`",
    );
    let default = |child: verger::ChildDefaults| child.watchdog(Duration::ZERO);
    assert_eq!(
        refused_below(Supervisor::builder("pool").defaults(default)),
        "the default watchdog of `app/ingest/pool` is zero; write a duration such as `10s`",
    );
    assert_eq!(
        refused_below(Supervisor::builder("pool").into_child().watchdog(Duration::from_secs(30))),
        "`app/ingest/pool` is a supervisor, which sends no heartbeats; remove its `watchdog`, or set \
         it in the `defaults` of its children",
    );
}

#[tokio::test(start_paused = true)]
async fn an_added_child_is_refused_with_the_same_text() {
    let ingest = Supervisor::builder("ingest").child(worker("log", idle));
    let app = app().child(ingest).build().unwrap().start().await.unwrap();
    let ingest = app.supervisor("ingest").await.unwrap();

    for (name, problem) in bad_names() {
        assert_eq!(
            refused_later(&ingest, worker(name, idle)).await,
            format!("`app/ingest` has a child with a bad name: {problem}"),
        );
    }
    for (backoff, problem) in bad_backoffs() {
        assert_eq!(
            refused_later(&ingest, worker("db", idle).backoff(backoff)).await,
            format!("the backoff of `app/ingest/db` cannot work: {problem}"),
        );
    }
    let zero = worker("db", idle).activation_timeout(Duration::ZERO);
    let twice = Supervisor::builder("pool").child(worker("a", idle)).child(worker("a", idle));
    let circle = Supervisor::builder("pool").child(worker("a", idle).requires("a"));
    let transient = worker("db", idle).restart(RestartType::Transient).significant();
    let table = [
        (zero, "the activation timeout of `app/ingest/db` is zero; write a duration such as `10s`"),
        (
            worker("db", idle).significant(),
            "`app/ingest/db` is significant, but restarted after every exit, as a permanent child \
             is; make it transient or temporary",
        ),
        (
            transient,
            "`app/ingest/db` is significant, but `app/ingest` has no auto-shutdown; add \
             `auto_shutdown(AutoShutdown::AnySignificant)` to it, or remove `significant()`",
        ),
        (
            twice.into(),
            "`app/ingest/pool` has two children named `a`; give one of them another name",
        ),
        (
            circle.into(),
            "the children of `app/ingest/pool` require each other in a cycle: a → a; remove one of these requirements",
        ),
        (
            Supervisor::builder("pool").restarts(1, Duration::ZERO).into(),
            "`app/ingest/pool` allows 1 restarts in a period of zero; write a period such as \
             `Duration::from_secs(60)`, or `unlimited_restarts()`",
        ),
        (
            worker("db", idle).requires("lgo"),
            "`app/ingest/db` requires `lgo`, but `app/ingest` has no such child; it has `log`",
        ),
    ];
    for (spec, text) in table {
        assert_eq!(refused_later(&ingest, spec).await, text);
    }
    let names: Vec<_> = ingest.children().await.unwrap();
    assert_eq!(names.len(), 1, "nothing was added");
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_supervisor_refuses_options_that_need_an_order() {
    let app = app().child(DynamicSupervisor::builder("conns")).build().unwrap();
    let app = app.start().await.unwrap();
    let conns = app.supervisor("conns").await.unwrap();

    assert_eq!(
        refused_later(&conns, worker("conn", idle).requires("db")).await,
        "`app/conns/conn` has `requires`, which a dynamic supervisor does not have; there is no \
         start order in it; remove it, or use a `Supervisor`",
    );
    let significant = worker("conn", idle).restart(RestartType::Temporary).significant();
    assert_eq!(
        refused_later(&conns, significant).await,
        "`app/conns/conn` has `significant`, which a dynamic supervisor does not have; its \
         children come and go; remove `significant()`",
    );
    assert_eq!(conns.otp().count_children().await.unwrap().specs, 0);
    app.stop("done").await.unwrap();
}

#[test]
fn the_first_mistake_in_declaration_order_is_reported() {
    let two = app().child(worker("", idle)).child(worker("b", idle).requires("c"));
    assert_eq!(
        refused(two),
        "`app` has a child with a bad name: the name \"\" is empty; write \"worker\", for example",
    );
}

#[tokio::test(start_paused = true)]
async fn a_path_that_only_looks_full_is_relative() {
    let ingest = Supervisor::builder("ingest").child(worker("mqtt", idle));
    let app = app().child(ingest).build().unwrap().start().await.unwrap();
    let ingest = app.supervisor("ingest").await.unwrap();
    for (handle, path, full) in [
        (&app, "app", "app/app"),
        (&ingest, "app", "app/ingest/app"),
        (&ingest, "ingest/mqtt", "app/ingest/ingest/mqtt"),
        (&ingest, "application/mqtt", "app/ingest/application/mqtt"),
        (&ingest, "app/mqtt", "app/mqtt"),
    ] {
        let error = handle.which_child(path).await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("there is no `{full}`")), "{text}");
        assert_eq!(format!("{error:?}"), text);
    }
    for path in ["app/", "app//mqtt", "/app"] {
        let error = ingest.which_child(path).await.unwrap_err();
        assert!(matches!(error, ControlError::NotAChild { .. }), "{error}");
    }
    let other = app.which_child("application").await.unwrap_err();
    assert_eq!(other.to_string(), "there is no `app/application`");
    app.stop("done").await.unwrap();
}
