//! Each option of the table, in all places where it can be written: in code, in a file by its own section, by a section
//! for several and by the common one; and where it can't be.

use std::time::Duration;

use super::reference::written;
use crate::child::{ChildSpec, Context};
use crate::config::{Change, Config, Effect};
use crate::handle::SupervisorHandle;
use crate::policy::option_table::{OPTIONS, OptionInfo, OptionOf, OptionText, TakesEffect};
use crate::policy::{AutoShutdown, OnExhausted, OnLeak, RestartType, Shutdown, Start, Strategy};
use crate::spec::{DynamicSupervisor, DynamicSupervisorBuilder, Supervisor, SupervisorBuilder};
use crate::worker;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// How the code sets an option.
enum Setter {
    Ordered(fn(SupervisorBuilder) -> SupervisorBuilder),
    Dynamic(fn(DynamicSupervisorBuilder) -> DynamicSupervisorBuilder),
    Child(fn(ChildSpec) -> ChildSpec),
}

/// An option with two values.
struct Case {
    setters: Vec<Setter>,
    /// The value of the code, in the words of a file.
    code: &'static str,
    /// The lines that set the other value, and that value.
    file: &'static str,
    new: &'static str,
}

use Setter::{Child, Dynamic, Ordered};

/// The setter of an option that both builders of supervisors have.
macro_rules! any {
    (|$it:ident| $call:expr) => {
        vec![Ordered(|$it| $call), Dynamic(|$it| $call)]
    };
}

/// The case of an option. A new one needs one here.
fn case(key: &str) -> Case {
    let (setters, code, file, new) = match key {
        "strategy" => (
            vec![Ordered(|it| it.strategy(Strategy::RestForOne))],
            "\"rest_for_one\"",
            "strategy = \"one_for_all\"",
            "\"one_for_all\"",
        ),
        "auto_shutdown" => (
            vec![Ordered(|it| it.auto_shutdown(AutoShutdown::AnySignificant))],
            "\"any_significant\"",
            "auto_shutdown = \"all_significant\"",
            "\"all_significant\"",
        ),
        "start" => (
            vec![Ordered(|it| it.start(Start::Concurrent))],
            "\"concurrent\"",
            "start = \"sequential\"",
            "\"sequential\"",
        ),
        "max_restarts" => {
            (any!(|it| it.restarts(5, secs(60))), "5", "max_restarts = 7\nperiod = \"9s\"", "7")
        }
        "period" => (
            any!(|it| it.restarts(5, secs(60))),
            "\"1m\"",
            "max_restarts = 7\nperiod = \"9s\"",
            "\"9s\"",
        ),
        "intensity" => (
            any!(|it| it.restarts(5, secs(60))),
            "{ max = 5, period = \"1m\" }",
            "intensity = { max = 3.5, half_life = \"30s\" }",
            "{ max = 3.5, half_life = \"30s\" }",
        ),
        "unlimited_restarts" => {
            (any!(|it| it.restarts(5, secs(60))), "false", "unlimited_restarts = true", "true")
        }
        "count_failed_starts" => (
            any!(|it| it.count_failed_starts(true)),
            "true",
            "count_failed_starts = false",
            "false",
        ),
        "on_exhausted" => (
            any!(|it| it.on_exhausted(OnExhausted::Park)),
            "\"park\"",
            "on_exhausted = { pause = \"15s\" }",
            "{ pause = \"15s\" }",
        ),
        "leak_timeout" => {
            (any!(|it| it.leak_timeout(secs(3))), "\"3s\"", "leak_timeout = \"4s\"", "\"4s\"")
        }
        "stop_deadline" => {
            (any!(|it| it.stop_deadline(secs(30))), "\"30s\"", "stop_deadline = \"40s\"", "\"40s\"")
        }
        "max_children" => {
            (vec![Dynamic(|it| it.max_children(10))], "10", "max_children = 20", "20")
        }
        "min_ready" => (vec![Dynamic(|it| it.min_ready(1))], "1", "min_ready = 2", "2"),
        "restart" => (
            vec![Child(|it| it.restart(RestartType::Transient))],
            "\"transient\"",
            "restart = \"temporary\"",
            "\"temporary\"",
        ),
        "shutdown" => {
            (vec![Child(|it| it.shutdown(secs(7)))], "\"7s\"", "shutdown = \"8s\"", "\"8s\"")
        }
        "drain" => (
            vec![Child(|it| it.shutdown(Shutdown::Drain(secs(7))))],
            "\"7s\"",
            "drain = \"8s\"",
            "\"8s\"",
        ),
        "activation_timeout" => (
            vec![Child(|it| it.activation_timeout(secs(7)))],
            "\"7s\"",
            "activation_timeout = \"8s\"",
            "\"8s\"",
        ),
        "watchdog" => {
            (vec![Child(|it| it.watchdog(secs(7)))], "\"7s\"", "watchdog = \"8s\"", "\"8s\"")
        }
        "run_time_limit" => (
            vec![Child(|it| it.run_time_limit(secs(7_000)))],
            "\"1h 56m 40s\"",
            "run_time_limit = \"2h\"",
            "\"2h\"",
        ),
        "on_leak" => (
            vec![Child(|it| it.on_leak(OnLeak::Park))],
            "\"park\"",
            "on_leak = \"restart\"",
            "\"restart\"",
        ),
        key => panic!("`{key}` is new; write here how code sets it, and two values"),
    };
    Case { setters, code, file, new }
}

/// The options with a value. `enabled` takes a child out, `config` is read by the child, and `mailbox` needs one.
fn options() -> impl Iterator<Item = (&'static OptionInfo, Case)> {
    let options = OPTIONS.iter().filter(|it| !matches!(it.key, "enabled" | "config" | "mailbox"));
    options.map(|option| (option, case(option.key)))
}

async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

/// A tree in which the code sets the option for `app/it`, a supervisor with the child `w`, or a worker.
async fn start(setter: &Setter) -> SupervisorHandle {
    let app = Supervisor::builder("app");
    let app = match setter {
        Ordered(set) => app.child(set(Supervisor::builder("it").child(worker("w", idle)))),
        Dynamic(set) => app.child(set(DynamicSupervisor::builder("it"))),
        Child(set) => app.child(set(worker("it", idle))),
    };
    let app = app.build().expect("valid values").start().await.expect("it starts");
    if let Dynamic(_) = setter {
        app.start_child(worker("top", idle)).await.expect("it starts");
        let it = app.supervisor("it").await.expect("it runs");
        it.start_child(worker("w", idle)).await.expect("it starts");
    }
    app
}

/// Returns the value that the machines go by, in the words of a file.
async fn value(app: &SupervisorHandle, option: &OptionInfo) -> Option<String> {
    let (above, name) = match option.text {
        OptionText::OfSupervisor(_) => (app.path().join("it"), "w"),
        OptionText::OfChild(_) => (app.path(), "it"),
    };
    let supervisors = app.all_at(&above);
    let children = app.all_facts(&supervisors[0], 9).await.expect("the supervisor runs");
    let child = children.into_iter().find(|child| &*child.name == name).expect("the child exists");
    match option.text {
        OptionText::OfSupervisor(text) => text(&child.rules.supervisor),
        OptionText::OfChild(text) => text(&child.rules),
    }
}

fn file(header: &str, lines: &str) -> Config {
    Config::from_toml(&format!("{header}\n{lines}\n"), "feed.toml")
}

#[tokio::test(start_paused = true)]
async fn an_option_is_set_by_code_and_by_each_section_that_applies() {
    let cases = options().flat_map(|(option, Case { setters, code, file, new })| {
        let of_both = matches!(option.of, OptionOf::Supervisor);
        assert_eq!(
            setters.len() == 2,
            of_both,
            "{}: both builders of supervisors set it",
            option.key
        );
        setters.into_iter().map(move |setter| (option, setter, code, file, new))
    });
    for (option, setter, code, lines, new) in cases {
        let key = option.key;
        for header in ["[\"app/it\"]", "[\"app/*\"]", "[common]"] {
            let app = start(&setter).await;
            assert_eq!(value(&app, option).await.as_deref(), Some(code), "{key} in code");

            let plan = app.plan(&file(header, lines)).await.expect(key);
            // A table is listed by its keys.
            let is_of = |it: &str| it.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
            let is_listed = |it: &&Change| it.key == key || is_of(&it.key);
            let change = plan.changes().iter().find(is_listed);
            let change = change.unwrap_or_else(|| panic!("{key} of {header} is in no plan"));
            if change.key == key {
                assert_eq!(change.new.as_deref(), Some(new), "{key} of {header}");
                let is_own = header == "[\"app/it\"]";
                assert_eq!(change.old.as_deref(), is_own.then_some(code), "{key} of {header}");
            }
            let effect = match option.takes_effect {
                TakesEffect::Live => Effect::Live,
                TakesEffect::AtNextFailure => Effect::AtNextFailure,
            };
            assert_eq!(change.effect, effect, "{key}");
            assert!(change.place.as_ref().is_some_and(|at| at.starts_with("feed.toml:")), "{key}");

            app.apply(plan).await.expect(key);
            assert_eq!(value(&app, option).await.as_deref(), Some(new), "{key} of {header}");
            let status = app.status().await.expect("it runs");
            let mut children = status.root.children.iter();
            let it = children.find(|it| it.child.path.name() == "it").expect("it is listed");
            let places = match option.of.is_of_supervisor() {
                true => &it.supervisor.as_ref().expect("a supervisor").configured,
                false => &it.child.configured,
            };
            let named = match key {
                "max_restarts" | "period" | "unlimited_restarts" => "intensity",
                key => key,
            };
            let shown = places.get(named).map(|at| at.to_string());
            assert_eq!(shown.as_deref(), Some("feed.toml:2"), "{key} of {header}");
            app.stop("the test is over").await.expect("it stops");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_option_is_refused_where_it_has_no_meaning() {
    let app = Supervisor::builder("app")
        .child(Supervisor::builder("ordered"))
        .child(DynamicSupervisor::builder("dynamic"))
        .child(worker("worker", idle));
    let app = app.build().expect("a valid tree").start().await.expect("it starts");
    for (option, Case { file: lines, .. }) in options() {
        let refused: &[&str] = match option.of {
            OptionOf::Supervisor => &["worker"],
            OptionOf::OrderedSupervisor => &["worker", "dynamic"],
            OptionOf::DynamicSupervisor => &["worker", "ordered"],
            OptionOf::Child => &[],
            OptionOf::Worker => &["ordered", "dynamic"],
        };
        let mut headers: Vec<_> = refused.iter().map(|name| format!("[\"app/{name}\"]")).collect();
        if !option.of.is_of_supervisor() {
            headers.push("[app]".to_owned());
        }
        for header in headers {
            let error = app.plan(&file(&header, lines)).await.expect_err(option.key).to_string();
            let names_it = error.contains(&format!("`{}`", option.key));
            assert!(names_it && error.contains("remove it"), "{}: {error}", option.key);
        }
    }
    app.stop("the test is over").await.expect("it stops");
}

#[tokio::test(start_paused = true)]
async fn a_duration_can_be_zero_where_the_reference_says_so() {
    let it = Supervisor::builder("it").child(worker("w", idle));
    let app = Supervisor::builder("app").child(it).build().expect("a valid tree");
    let app = app.start().await.expect("it starts");
    let mut compared = 0;
    for (option, _) in options().filter(|(option, _)| option.key != "period") {
        let can_be_zero = match written(option.key) {
            "a duration above zero" => false,
            text if text.starts_with("a duration") => true,
            _ => continue,
        };
        let path = if option.of.is_of_supervisor() { "app/it" } else { "app/it/w" };
        let zero = file(&format!("[\"{path}\"]"), &format!("{} = \"0s\"", option.key));
        assert_eq!(app.plan(&zero).await.is_ok(), can_be_zero, "{}", option.key);
        compared += 1;
    }
    assert_eq!(compared, 7, "durations of the table");
    app.stop("the test is over").await.expect("it stops");
}
