//! A tree as a whole program: stages, stop orders, hooks, causes, exit codes.

use std::future::pending;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::app::{Hook, Stage, StopStages, hook};
use verger::error::BuildWarning;
use verger::{
    Application, BuildError, ChildSpec, Context, ControlError, DynamicSupervisor, Exit,
    RestartType, Shutdown, Supervisor, SupervisorBuilder, worker, worker_with,
};

use crate::log::Log;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Entries, each with the seconds since the application was asked to stop, 1 s after the diary was created.
#[derive(Clone)]
pub(crate) struct Diary {
    began: Instant,
    entries: Arc<Mutex<Vec<(f64, String)>>>,
}

impl Diary {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now() + secs(1), entries: Arc::default() }
    }

    fn note(&self, what: impl Into<String>) {
        self.entries.lock().unwrap().push((self.began.elapsed().as_secs_f64(), what.into()));
    }

    /// Returns all entries as text: `5 a cancelled, 10 a gone`.
    pub(crate) fn text(&self) -> String {
        let entries = self.entries.lock().unwrap();
        let entries = entries.iter().map(|(at, what)| format!("{at} {what}"));
        entries.collect::<Vec<_>>().join(", ")
    }

    /// Returns a child that ignores its cancellation.
    pub(crate) fn deaf(&self, name: &str) -> ChildSpec {
        self.child(name, None)
    }

    /// Returns a child that takes this long to stop.
    fn slow(&self, name: &str, takes: Duration) -> ChildSpec {
        self.child(name, Some(takes))
    }

    fn child(&self, name: &str, takes: Option<Duration>) -> ChildSpec {
        struct Gone(Diary, String);
        impl Drop for Gone {
            fn drop(&mut self) {
                self.0.note(format!("{} gone", self.1));
            }
        }
        worker_with(name, self.clone(), move |ctx: Context, diary: Diary| async move {
            let name = ctx.path().name().to_owned();
            let _gone = Gone(diary.clone(), name.clone());
            ctx.cancelled().await;
            diary.note(format!("{name} cancelled"));
            match takes {
                Some(takes) => sleep(takes).await,
                None => pending().await,
            }
        })
    }

    pub(crate) fn hook(&self, name: &'static str, takes: Duration) -> Hook {
        let diary = self.clone();
        hook(name, move |cause: Arc<str>| async move {
            diary.note(format!("{name} begins ({cause})"));
            sleep(takes).await;
            diary.note(format!("{name} ends"));
        })
    }
}

/// Runs an application that doesn't end the process, and that is stopped with the cause `test` after 1 s.
async fn run(app: Application) -> ExitCode {
    let stop = async {
        sleep(secs(1)).await;
        "test"
    };
    app.listen_to_signals(false).exit_grace(Duration::MAX).stop_on(stop).run().await
}

#[track_caller]
pub(crate) fn assert_code(code: ExitCode, expected: u8) {
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(expected)));
}

#[tokio::test(start_paused = true)]
async fn of_ten_children_that_ignore_cancellation_four_end_in_polite_and_six_in_closing() {
    let diary = Diary::new();
    let app = (0..10).fold(Supervisor::builder("app"), |app, number| {
        app.child(diary.deaf(&number.to_string()).shutdown(secs(5)))
    });
    let code = run(Application::new(app)).await;
    assert_eq!(
        diary.text(),
        "0 9 cancelled, 5 9 gone, 5 8 cancelled, 10 8 gone, 10 7 cancelled, 15 7 gone, 15 6 cancelled, \
         20 6 gone, 20 5 cancelled, 20 4 cancelled, 20 3 cancelled, 20 2 cancelled, 20 1 cancelled, \
         20 0 cancelled, 25 0 gone, 25 1 gone, 25 2 gone, 25 3 gone, 25 4 gone, 25 5 gone"
    );
    assert_eq!(diary.began.elapsed(), secs(25));
    assert_code(code, 3);
}

#[tokio::test(start_paused = true)]
async fn seed4_43_in_polite_nothing_is_started_and_a_pending_restart_is_abandoned() {
    let diary = Diary::new();
    let failing = worker("failing", async |_| Err("no"));
    let refused = diary.clone();
    let starter = worker_with("starter", refused, async |ctx: Context, diary: Diary| {
        let parent = ctx.parent();
        ctx.cancelled().await;
        let error = parent.start_child(worker("late", async |_| ())).await.unwrap_err();
        assert!(matches!(error, ControlError::ShuttingDown { .. }), "{error}");
        diary.note("refused");
    });
    let app = Supervisor::builder("app").child(failing).child(starter);
    let code = run(Application::new(app)).await;
    assert_eq!(diary.text(), "0 refused");
    assert_eq!(diary.began.elapsed(), secs(0), "nothing waits for the restart");
    assert_code(code, 0);
}

#[tokio::test(start_paused = true)]
async fn seed4_46_in_closing_all_children_at_every_level_are_cancelled_at_once() {
    let diary = Diary::new();
    let inner = Supervisor::builder("inner")
        .child(diary.slow("x", secs(1)))
        .child(diary.deaf("y").shutdown(Shutdown::Infinity));
    let many = DynamicSupervisor::builder("many");
    let starter = worker_with("starter", diary.clone(), async |ctx: Context, diary: Diary| {
        let many = ctx.parent().supervisor("many").await.unwrap();
        many.start_child(diary.deaf("z").shutdown(secs(60))).await.unwrap();
    });
    let app = Supervisor::builder("app").child(diary.slow("a", secs(2))).child(inner).child(many);
    let app = app.child(starter.restart(RestartType::Transient));
    let app = app.child(diary.deaf("last").shutdown(secs(60)));
    let code = run(Application::new(app)).await;
    assert_eq!(
        diary.text(),
        "0 last cancelled, 20 a cancelled, 20 z#1 cancelled, 20 y cancelled, 20 x cancelled, 21 x gone, \
         22 a gone, 25 last gone, 25 z#1 gone, 25 y gone"
    );
    assert_code(code, 3);
}

/// Runs a program until it has started, and returns what it logged about the duration of a stop.
async fn announced(app: SupervisorBuilder) -> Vec<String> {
    let log = Log::at(LevelFilter::INFO);
    assert_code(run(Application::new(app)).await, 0);
    log.lines().into_iter().filter(|line| line.contains("graces=")).collect()
}

#[tokio::test(start_paused = true)]
async fn the_default_grace_of_a_dynamic_supervisor_is_announced_once() {
    let minute = || {
        let many = DynamicSupervisor::builder("many").defaults(|child| child.shutdown(secs(60)));
        Supervisor::builder("app").child(many)
    };
    let bound = "INFO verger::shutdown: time for a stop at_most=26s \
                 stages=\"drain 0ns, polite 20s, closing 5s, abort 1s\"";
    let excess = "WARN verger::shutdown: the graces add up to more than the stages: the children that stop \
                  last have less than theirs";
    assert_eq!(
        announced(minute()).await,
        [format!("{bound} graces=60s"), format!("{excess} graces=60s available=25s")]
    );

    // Children of one dynamic supervisor stop at the same time, siblings one after the other.
    let diary = Diary::new();
    let more = minute().child(diary.slow("a", secs(0)).shutdown(secs(2)));
    let last = announced(more).await;
    assert_eq!(last[0], format!("{bound} graces=62s"));
    let ten = DynamicSupervisor::builder("many").defaults(|child| child.shutdown(secs(10)));
    let ten = Supervisor::builder("app").child(ten);
    assert_eq!(announced(ten).await, [format!("{bound} graces=10s")]);

    // The defaults of the supervisor above don't apply to a supervisor.
    let above = Supervisor::builder("app").defaults(|child| child.shutdown(secs(60)));
    let above = above.child(DynamicSupervisor::builder("many"));
    assert_eq!(announced(above).await, [format!("{bound} graces=0ns")]);
    // A grace of the dynamic supervisor itself bounds those of its children.
    let many = DynamicSupervisor::builder("many").defaults(|child| child.shutdown(secs(60)));
    let bounded = Supervisor::builder("app").child(many.into_child().shutdown(secs(3)));
    assert_eq!(announced(bounded).await, [format!("{bound} graces=3s")]);
}

#[tokio::test(start_paused = true)]
async fn graces_that_fit_into_the_stages_are_no_warning_even_if_they_add_up_to_more() {
    let warns = async |stages: &StopStages, children: &[(u64, i8)]| {
        let log = Log::at(LevelFilter::WARN);
        let app =
            children.iter().enumerate().fold(Supervisor::builder("app"), |app, (n, child)| {
                let spec = Diary::new().slow(&format!("c{n}"), secs(0));
                app.child(spec.shutdown(secs(child.0)).stop_order(child.1))
            });
        assert_code(run(Application::new(app).stages(stages.clone())).await, 0);
        !log.lines().is_empty()
    };
    let closing = StopStages::new([Stage::Closing(secs(5))]);
    // In parallel: 4 s. A child with a different stop order waits for the other.
    assert!(!warns(&closing, &[(4, 0), (4, 0)]).await);
    assert!(warns(&closing, &[(4, 1), (4, 0)]).await);
    assert!(warns(&closing, &[(6, 0)]).await);
    // Of six children with 5 s each, two have theirs in *closing*.
    let default = StopStages::default();
    assert!(!warns(&default, &[(5, 0); 6]).await);
    assert!(warns(&default, &[(15, 0); 2]).await);
    assert!(warns(&default, &[(26, 0)]).await);
    assert!(!warns(&default, &[(25, 0)]).await);
}

#[tokio::test(start_paused = true)]
async fn seed4_47_the_stages_are_a_list_and_after_the_last_one_nothing_is_waited_for() {
    let diary = Diary::new();
    let log = Log::at(LevelFilter::INFO);
    let app = Supervisor::builder("app").child(diary.deaf("a").shutdown(secs(60)));
    let stages = StopStages::new([Stage::Polite(secs(2)), Stage::Closing(secs(3))]);
    let code = run(Application::new(app.child(diary.slow("b", secs(1)))).stages(stages)).await;
    assert_eq!(diary.text(), "0 b cancelled, 1 b gone, 1 a cancelled, 5 a gone");
    assert_code(code, 3);
    let lines: Vec<_> = log.lines().into_iter().filter(|line| line.contains("stage")).collect();
    assert_eq!(
        lines,
        [
            "INFO verger::shutdown: time for a stop at_most=6s stages=\"drain 0ns, polite 2s, closing 3s, abort 1s\" graces=60s",
            "WARN verger::shutdown: the graces add up to more than the stages: the children that stop last have less than theirs graces=60s available=5s",
            "INFO verger::shutdown: stage begins cause=\"test\" stage=\"polite\" length=2s",
            "WARN verger::shutdown: stage expired stage=\"polite\" count=1 children=\"app/a\"",
            "INFO verger::shutdown: stage begins cause=\"test\" stage=\"closing\" length=3s",
            "WARN verger::shutdown: stage expired stage=\"closing\" count=1 children=\"app/a\"",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn seed4_48_stop_orders_stop_one_after_the_other_and_the_logger_last() {
    let children = |diary: &Diary| {
        let (early, log) =
            (diary.slow("early", secs(1)).stop_order(-1), diary.slow("log", secs(1)));
        let (db, api) = (diary.slow("db", secs(1)), diary.slow("api", secs(1)));
        Supervisor::builder("app").child(early).child(db).child(log.stop_order(100)).child(api)
    };
    let diary = Diary::new();
    let code = run(Application::new(children(&diary))).await;
    assert_eq!(
        diary.text(),
        "0 early cancelled, 1 early gone, 1 api cancelled, 2 api gone, 2 db cancelled, 3 db gone, \
         3 log cancelled, 4 log gone"
    );
    assert_code(code, 0);

    let diary = Diary::new();
    let closing = StopStages::new([Stage::Closing(secs(5))]);
    let code = run(Application::new(children(&diary)).stages(closing)).await;
    assert_eq!(
        diary.text(),
        "0 early cancelled, 1 early gone, 1 api cancelled, 1 db cancelled, 2 api gone, 2 db gone, \
         2 log cancelled, 3 log gone"
    );
    assert_code(code, 0);

    let diary = Diary::new();
    let app = Supervisor::builder("app")
        .child(diary.deaf("log").stop_order(100))
        .child(diary.deaf("a").shutdown(secs(9)));
    let closing = StopStages::new([Stage::Closing(secs(5))]);
    run(Application::new(app).stages(closing)).await;
    assert_eq!(
        diary.text(),
        "0 a cancelled, 4 log cancelled, 5 a gone, 5 log gone",
        "1 s before the end the order no longer counts"
    );
}

#[test]
fn a_child_may_not_stop_after_what_it_requires() {
    let idle = |name: &str| worker(name, async |ctx: Context| ctx.cancelled().await);
    let app = Supervisor::builder("app")
        .child(idle("db"))
        .child(idle("log").stop_order(100).requires("db"));
    let error = app.build().unwrap_err();
    assert!(matches!(error, BuildError::StopOrder { .. }));
    assert_eq!(
        error.to_string(),
        "`app/log` has the stop order 100 and requires `db`, which has 0 and would stop before it; give `db` at \
         least 100"
    );
    // It starts first, although it is declared later.
    let app = Supervisor::builder("app")
        .child(idle("api").requires("db"))
        .child(idle("db").stop_order(1));
    assert!(app.build().is_ok());
}

#[tokio::test(start_paused = true)]
async fn seed4_49_the_cause_is_visible_to_children_before_they_are_cancelled() {
    let diary = Diary::new();
    let watcher = worker_with("watcher", diary.clone(), async |ctx: Context, diary: Diary| {
        assert_eq!(ctx.stop_reason(), None);
        sleep(secs(2)).await;
        let reason = ctx.stop_reason();
        diary.note(format!("{:?}, cancelled: {}", reason.as_deref(), ctx.is_cancelled()));
        ctx.cancelled().await;
    });
    let inner = Supervisor::builder("inner").child(watcher);
    let app = Supervisor::builder("app").child(inner).child(diary.slow("b", secs(3)));
    run(Application::new(app)).await;
    assert_eq!(diary.text(), "0 b cancelled, 1 Some(\"test\"), cancelled: false, 3 b gone");
}

#[tokio::test(start_paused = true)]
async fn seed4_50_the_times_of_the_stages_are_settings() {
    for (stages, ends) in [
        (StopStages::default(), 25),
        (StopStages::elfo(), 45),
        (StopStages::new([]), 0),
        (StopStages::default().drain(secs(5)), 25),
    ] {
        let diary = Diary::new();
        let app = Supervisor::builder("app").child(diary.deaf("a").shutdown(Shutdown::Infinity));
        assert_code(run(Application::new(app).stages(stages)).await, 3);
        assert_eq!(diary.began.elapsed(), secs(ends));
    }
}

/// With *polite*, the last child is cancelled; with *closing*, the other one; with the abort, both are gone.
#[tokio::test(start_paused = true)]
async fn seed4_50_each_stage_begins_and_ends_at_its_own_time() {
    let polite = |time| Stage::Polite(secs(time));
    let closing = |time| Stage::Closing(secs(time));
    for (stages, expected) in [
        (StopStages::default(), "0 b cancelled, 20 a cancelled, 25 b gone, 25 a gone"),
        (StopStages::elfo(), "0 b cancelled, 30 a cancelled, 45 b gone, 45 a gone"),
        (
            StopStages::default().drain(secs(5)),
            "5 b cancelled, 20 a cancelled, 25 b gone, 25 a gone",
        ),
        (
            StopStages::new([polite(4), closing(7)]),
            "0 b cancelled, 4 a cancelled, 11 b gone, 11 a gone",
        ),
        (StopStages::new([polite(4)]), "0 b cancelled, 4 b gone, 4 a gone"),
        (StopStages::new([closing(7)]), "0 b cancelled, 0 a cancelled, 7 b gone, 7 a gone"),
    ] {
        let diary = Diary::new();
        let deaf = |name| diary.deaf(name).shutdown(Shutdown::Infinity);
        let app = Supervisor::builder("app").child(deaf("a")).child(deaf("b"));
        assert_code(run(Application::new(app).stages(stages.clone())).await, 3);
        assert_eq!(diary.text(), expected, "{stages}");
    }
}

#[tokio::test(start_paused = true)]
async fn during_the_drain_nothing_stops() {
    let diary = Diary::new();
    let app = Supervisor::builder("app").child(diary.slow("a", secs(1)));
    run(Application::new(app).drain(secs(5))).await;
    assert_eq!(diary.text(), "5 a cancelled, 6 a gone");
}

#[tokio::test(start_paused = true)]
async fn kin_137_hooks_of_a_step_run_at_once_and_steps_in_order_with_the_cause() {
    let diary = Diary::new();
    let app = Application::new(Supervisor::builder("app").child(diary.slow("a", secs(1))))
        .before_stop([diary.hook("x", secs(2)), diary.hook("y", secs(1))])
        .before_stop(diary.hook("z", secs(0)))
        .after_stop(diary.hook("flush", secs(1)));
    run(app).await;
    assert_eq!(
        diary.text(),
        "0 x begins (test), 0 y begins (test), 1 y ends, 2 x ends, 2 z begins (test), 2 z ends, \
         2 a cancelled, 3 a gone, 3 flush begins (test), 4 flush ends"
    );
}

#[tokio::test(start_paused = true)]
async fn kin_138_hooks_run_once_and_those_before_a_stop_only_if_there_is_one() {
    let diary = Diary::new();
    let ends = worker("ends", async |_| sleep(secs(2)).await)
        .restart(RestartType::Transient)
        .significant();
    let tree = Supervisor::builder("app")
        .auto_shutdown(verger::policy::AutoShutdown::AnySignificant)
        .child(ends);
    let app = Application::new(tree)
        .before_stop(diary.hook("before", secs(0)))
        .after_stop(diary.hook("after", secs(0)));
    let code = app.listen_to_signals(false).exit_grace(Duration::MAX).run().await;
    assert_eq!(diary.text(), "1 after begins (ended), 1 after ends");
    assert_code(code, 0);
}

#[tokio::test(start_paused = true)]
async fn kin_140_a_hook_that_fails_panics_or_hangs_is_named_and_the_next_goes_on() {
    let diary = Diary::new();
    let log = Log::at(LevelFilter::ERROR);
    let app = Application::new(Supervisor::builder("app").child(diary.slow("a", secs(0))))
        .before_stop(hook("fails", async |_| -> Exit { Err("no route".into()) }))
        .before_stop(hook("panics", async |_| -> Exit { panic!("oh") }))
        .before_stop(hook("panics at once", |_| -> std::future::Ready<()> { panic!("at once") }))
        .before_stop(hook("hangs", |_| pending::<()>()).within(secs(3)))
        .before_stop(diary.hook("next", secs(0)));
    let code = run(app).await;
    assert_eq!(diary.text(), "3 next begins (test), 3 next ends, 3 a cancelled, 3 a gone");
    assert_code(code, 0);
    assert_eq!(
        log.lines(),
        [
            "ERROR verger::shutdown: hook failed hook=\"fails\" cause=\"no route\"",
            "ERROR verger::shutdown: hook failed hook=\"panics\" cause=\"panicked: oh\"",
            "ERROR verger::shutdown: hook failed hook=\"panics at once\" cause=\"panicked: at once\"",
            "ERROR verger::shutdown: hook failed hook=\"hangs\" cause=\"took longer than 3s\"",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn kin_143_the_exit_code_says_how_the_application_ended() {
    let gives_up = || {
        let fails = worker("fails", async |_| Err("no"));
        Supervisor::builder("app").restarts(0, secs(60)).child(fails)
    };
    let endless = |name: &str| worker(name, |_| pending::<()>());
    let cases: [(SupervisorBuilder, u8); 5] = [
        (Supervisor::builder("app").child(Diary::new().slow("a", secs(1))), 0),
        (gives_up(), 1),
        (Supervisor::builder("no/name"), 2),
        (Supervisor::builder("app").child(endless("deaf")), 3),
        (Supervisor::builder("app").child(endless("killed").shutdown(Shutdown::BrutalKill)), 0),
    ];
    for (tree, code) in cases {
        assert_code(run(Application::new(tree)).await, code);
    }
}

#[tokio::test(start_paused = true)]
async fn kin_149_a_grace_is_used_and_the_stop_ends_well_before_the_child_would() {
    let diary = Diary::new();
    let app = Supervisor::builder("app")
        .child(diary.slow("a", secs(60)).shutdown(Duration::from_millis(300)));
    assert_code(run(Application::new(app)).await, 3);
    assert_eq!(diary.text(), "0 a cancelled, 0.3 a gone");
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_the_service_manager_that_is_too_short_is_a_warning() {
    let log = Log::at(LevelFilter::WARN);
    for (limit, lines) in [(30, 0), (26, 0), (25, 1)] {
        let diary = Diary::new();
        let app = Supervisor::builder("app").child(diary.slow("a", secs(0)));
        run(Application::new(app).stop_limit(secs(limit))).await;
        assert_eq!(log.lines().len(), lines, "{limit}");
    }
}

#[test]
fn a_deadline_that_is_shorter_than_a_grace_below_it_is_a_warning() {
    let app = |deadline| {
        let child = Diary::new().slow("a", secs(0)).shutdown(secs(20));
        let inner = Supervisor::builder("inner").child(child);
        let app = Supervisor::builder("app").stop_deadline(secs(deadline)).child(inner);
        app.build().unwrap()
    };
    assert!(app(20).warnings().is_empty());
    let tree = app(19);
    let [warning @ BuildWarning::ShortStopDeadline { .. }] = tree.warnings() else { panic!("one") };
    assert_eq!(
        warning.to_string(),
        "`app` stops within 19s, but a child below has a grace of 20s: it is aborted before"
    );
    let many = DynamicSupervisor::builder("many").defaults(|child| child.shutdown(secs(20)));
    let app = Supervisor::builder("app").stop_deadline(secs(19)).child(many).build().unwrap();
    assert_eq!(app.warnings(), tree.warnings());
}

#[tokio::test(start_paused = true)]
async fn in_closing_a_supervisor_below_obeys_its_own_stop_deadline() {
    let diary = Diary::new();
    let inner = Supervisor::builder("inner")
        .stop_deadline(secs(1))
        .child(diary.deaf("a").shutdown(secs(60)));
    let closing = StopStages::new([Stage::Closing(secs(10))]);
    run(Application::new(Supervisor::builder("app").child(inner)).stages(closing)).await;
    assert_eq!(diary.text(), "0 a cancelled, 1 a gone");
}

#[tokio::test(start_paused = true)]
async fn a_stop_future_that_panics_stops_the_tree_in_order_with_exit_code_1() {
    async fn fails() -> String {
        sleep(secs(1)).await;
        panic!("no file")
    }
    let diary = Diary::new();
    let app = Application::new(Supervisor::builder("app").child(diary.slow("a", secs(1))))
        .after_stop(diary.hook("after", secs(0)))
        .stop_on(fails());
    let app = app.listen_to_signals(false).exit_grace(Duration::MAX);
    assert_code(app.run().await, 1);
    assert_eq!(
        diary.text(),
        "0 a cancelled, 1 a gone, 1 after begins (panicked: no file), 1 after ends"
    );
}

/// With the real clock: the hook blocks its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_blocks_its_thread_delays_nothing_longer_than_its_bound() {
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let unblock = Mutex::new(Some(unblock));
    let child = worker_with(
        "a",
        Arc::new(unblock),
        async |ctx: Context, unblock: Arc<Mutex<Option<_>>>| {
            ctx.cancelled().await;
            drop(unblock.lock().unwrap().take());
        },
    );
    let (send, unblocked) = std::sync::mpsc::channel();
    let blocks = hook("blocks", move |_| async move {
        let result = blocked.recv_timeout(secs(5));
        let _ = send.send(result == Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    });
    let app = Application::new(Supervisor::builder("app").child(child))
        .before_stop(blocks.within(Duration::from_millis(1)))
        .stop_on(std::future::ready("test"));
    app.listen_to_signals(false).exit_grace(Duration::MAX).run().await;
    // On a busy machine, the hook may not even be polled within its bound.
    assert_ne!(unblocked.recv(), Ok(false), "the child was cancelled while the hook blocked");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_on_start_is_logged() {
    let diary = Diary::new();
    let log = Log::at(LevelFilter::ERROR);
    let app = Application::new(Supervisor::builder("app").child(diary.slow("a", secs(0))));
    run(app.on_start(|_| panic!("no router"))).await;
    assert_eq!(log.lines(), ["ERROR verger::lifecycle: a function of `on_start` has panicked"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_child_that_has_to_be_aborted_in_a_stop_is_exit_code_3() {
    let diary = Diary::new();
    let hung = diary.deaf("hung").watchdog(Duration::from_millis(500)).shutdown(secs(60));
    let code = run(Application::new(Supervisor::builder("app").child(hung))).await;
    assert_eq!(diary.text(), "0 hung cancelled, 25 hung gone");
    assert_code(code, 3);
}
