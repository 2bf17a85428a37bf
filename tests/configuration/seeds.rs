//! Rules of elfo's configurer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
use tracing::level_filters::LevelFilter;
use verger::config::{ApplyError, ChildConfig, Config};
use verger::policy::{PolicySource, RestartPolicy};
use verger::{
    Application, Backoff, ChildSpec, Context, Exit, Lifecycle, RestartType, RunError, Supervisor,
    SupervisorHandle, worker,
};

use super::{app, apply, config, idle, secs, start, start_with};
use crate::common::settle;
use crate::log::Log;

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Limit {
    limit: u32,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Optional {
    limit: u32,
    region: String,
}

/// What children have seen and done, in order.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// A child that notes each value of its configuration.
    fn reader(&self, name: &'static str) -> ChildSpec {
        let journal = self.clone();
        worker(name, move |ctx: Context| {
            let journal = journal.clone();
            async move {
                let mut config = ctx.config::<Optional>()?;
                loop {
                    journal.note(format!("{name}#{} {}", ctx.incarnation(), config.get().limit));
                    tokio::select! {
                        () = config.changed() => {}
                        () = ctx.cancelled() => return Exit::Ok(()),
                    }
                }
            }
        })
    }

    /// A check that notes its value, and refuses odd ones.
    fn check(&self, name: &'static str) -> ChildConfig<Optional> {
        let journal = self.clone();
        ChildConfig::new().validate(move |new: Arc<Optional>| {
            let journal = journal.clone();
            async move {
                journal.note(format!("check {name} {}", new.limit));
                if new.limit % 2 == 1 { Err("odd".into()) } else { Exit::Ok(()) }
            }
        })
    }
}

async fn lifecycle(tree: &SupervisorHandle, path: &str) -> Lifecycle {
    tree.which_child(path).await.unwrap().lifecycle
}

async fn refused(tree: &SupervisorHandle, text: &str) -> String {
    let plan = tree.plan(&config(text)).await.unwrap();
    tree.apply(plan).await.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn seed4_01_children_that_need_a_configuration_wait_for_it_and_the_others_start() {
    let waits = worker("waits", idle).config(ChildConfig::<Limit>::new().start_when_configured());
    let tree = start(app().child(waits).child(worker("entry", idle))).await;
    assert_eq!(lifecycle(&tree, "entry").await, Lifecycle::Active);
    let waits = tree.which_child("waits").await.unwrap();
    assert_eq!(waits.lifecycle, Lifecycle::Discovered);
    assert_eq!(waits.why, Some("waits for its configuration"));
}

#[tokio::test(start_paused = true)]
async fn seed4_02_a_child_that_starts_at_once_and_requires_a_key_is_an_error_at_the_start() {
    let child = || worker("entry", idle).config(ChildConfig::<Limit>::new());
    let tree = app().child(child()).build().unwrap();
    let error = tree.configured(&Config::new()).await.unwrap_err().to_string();
    assert!(error.starts_with("the key `limit` is missing; add it"), "{error}");
    assert!(error.contains("key: \"app/entry\".config"), "{error}");

    let tree = app().child(worker("entry", idle).config(ChildConfig::<Optional>::new()));
    let _ = tree.build().unwrap().configured(&Config::new()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed4_03_a_child_starts_at_its_first_configuration() {
    let journal = Journal::default();
    let spec = journal.reader("a").config(ChildConfig::<Optional>::new().start_when_configured());
    let tree = start(app().child(spec).child(worker("b", idle).requires("a"))).await;
    assert_eq!(lifecycle(&tree, "b").await, Lifecycle::Discovered);
    apply(&tree, "[a.config]\nlimit = 4").await;
    settle().await;
    assert_eq!(journal.take(), ["a#1 4"]);
    assert_eq!(lifecycle(&tree, "b").await, Lifecycle::Active, "what it requires is there");
}

/// elfo starts an actor if the configuration is routed to its key (`Unicast`, `Multicast`), and not if it
/// only reaches those that run.
#[tokio::test(start_paused = true)]
async fn seed4_04_a_first_configuration_starts_the_child_that_it_is_for() {
    let waits =
        |name| worker(name, idle).config(ChildConfig::<Optional>::new().start_when_configured());
    let tree = || app().child(waits("a")).child(waits("b"));
    let started = async |text: &str| {
        let tree = start_with(tree(), text).await;
        let mut started = Vec::new();
        for name in ["a", "b"] {
            if lifecycle(&tree, name).await == Lifecycle::Active {
                started.push(name);
            }
        }
        started.concat()
    };
    // For one child, and for each child of a supervisor.
    assert_eq!(started("[\"app/a\".config]\nlimit = 2").await, "a");
    assert_eq!(started("[\"app/*\".config]\nlimit = 2").await, "ab");
    // For all that run, for none, for one that is taken out, and for nobody in particular.
    assert_eq!(started("[common.config]\nlimit = 2").await, "");
    assert_eq!(started("").await, "");
    assert_eq!(started("[a]\nenabled = false\nconfig = { limit = 2 }").await, "");
    assert_eq!(started("[a]\nshutdown = \"1s\"").await, "");

    // A child that a call has stopped isn't started by a new value either.
    let tree = start_with(tree(), "[a.config]\nlimit = 2").await;
    tree.stop_child("a").await.unwrap();
    apply(&tree, "[a.config]\nlimit = 4").await;
    assert_eq!(lifecycle(&tree, "a").await, Lifecycle::Stopped);
}

#[tokio::test(start_paused = true)]
async fn seed4_05_an_invalid_configuration_ends_the_start_with_all_reasons() {
    let journal = Journal::default();
    let tree = || {
        let a = journal.reader("a").config(journal.check("a"));
        app().child(a).child(journal.reader("b").config(journal.check("b")))
    };
    let text = "[a.config]\nlimit = 1\n[b.config]\nlimit = 3";
    let app = Application::new(tree()).config(move || config(text));
    let error = app.run_to_end().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "refused by `app/a` (app.toml:1): odd; `app/b` (app.toml:3): odd"
    );
    assert_eq!(error.exit_code(), 2);
    assert_eq!(journal.take(), ["check a 1", "check b 3"], "nothing was started");

    let text = "[a.config]\nlimit = -1\n[b.config]\nlimit = \"x\"\n[c]\n";
    let app = Application::new(tree()).config(move || config(text));
    let error = app.run_to_end().await.unwrap_err();
    assert!(matches!(error, RunError::Config { .. }));
    let error = error.to_string();
    assert!(error.contains("app.toml:2:9: "), "{error}");
    assert!(error.contains("app.toml:4:9: "), "{error}");
    assert!(error.contains("app.toml:5:2: there is no `app/c`; the nearest paths are"), "{error}");
    assert_eq!(journal.take(), Vec::<String>::new());
}

/// One round shows what can't be read and what children refuse.
#[tokio::test(start_paused = true)]
async fn mistakes_and_refusals_are_shown_together() {
    let journal = Journal::default();
    let tree = || {
        let a = journal.reader("a").config(journal.check("a"));
        app().child(a).child(journal.reader("b").config(journal.check("b")))
    };
    let error = async |text: &'static str| {
        let app = Application::new(tree()).config(move || config(text)).check_only(true);
        app.run_to_end().await.unwrap_err().to_string()
    };
    let text = error("[a.config]\nlimit = 1\n[b.config]\nlimit = -3\n[c]\n").await;
    assert!(text.contains("app.toml:1:"), "{text}");
    assert!(text.contains("`app/a` refuses its values: odd\n   key: a.config"), "{text}");
    assert!(text.contains("app.toml:4:9: "), "{text}");
    assert!(text.contains("app.toml:5:2: there is no `app/c`"), "{text}");
    assert_eq!(journal.take(), ["check a 1"]);

    // After an error in the syntax, values may be missing, so that nothing is checked.
    let text = error("[a.config]\nlimit = 1\n[b.config\nlimit = 3\n").await;
    assert!(!text.contains("refuses"), "{text}");
    assert_eq!(journal.take(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn seed4_06_a_check_starts_nothing() {
    for (text, result) in [("[a.config]\nlimit = 2", Ok(())), ("[a.config]\nlimit = 1", Err(2))] {
        let journal = Journal::default();
        let tree = app().child(journal.reader("a").config(journal.check("a")));
        let app = Application::new(tree).config(move || config(text)).check_only(true);
        let checked = app.run_to_end().await.map_err(|error| error.exit_code());
        assert_eq!(checked, result);
        assert_eq!(journal.take().len(), 1, "only the check has run");
    }
}

#[tokio::test(start_paused = true)]
async fn seed4_07_a_reload_can_be_requested_and_answers_with_its_result() {
    let journal = Journal::default();
    let text = Arc::new(Mutex::new("[a.config]\nlimit = 2"));
    let source = Arc::clone(&text);
    let tree = app().child(journal.reader("a").config(journal.check("a")));
    let app = Application::new(tree).config(move || config(*source.lock().unwrap()));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (start, started) = tokio::sync::oneshot::channel();
    let reloader = app.reloader();
    let app = app.on_start(|_| start.send(()).unwrap());
    assert!(matches!(
        Application::new(Supervisor::builder("x")).reloader().reload().await,
        Err(ApplyError::NotRunning)
    ));
    let app = app.stop_on(async {
        let _ = stopped.await;
        "the test is over"
    });
    let running = tokio::spawn(app.run_to_end());
    started.await.unwrap();
    *text.lock().unwrap() = "[a.config]\nlimit = 4";
    let applied = reloader.reload().await.unwrap();
    assert_eq!(applied.to_string(), "1 change, 0 unchanged");
    *text.lock().unwrap() = "[a.config]\nlimit = 5";
    let error = reloader.reload().await.unwrap_err();
    assert_eq!(error.to_string(), "refused by `app/a` (app.toml:1): odd");
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(matches!(reloader.reload().await, Err(ApplyError::NotRunning)));
}

#[tokio::test(start_paused = true)]
async fn seed4_10_only_what_has_changed_is_sent_and_a_forced_reload_sends_all() {
    let log = Log::at(LevelFilter::INFO);
    let journal = Journal::default();
    let tree = app().child(journal.reader("a").config(journal.check("a")));
    let tree = tree.child(journal.reader("b").config(journal.check("b")));
    let text = "[a.config]\nlimit = 2\n[b.config]\nlimit = 4";
    let tree = start_with(tree, text).await;
    settle().await;
    assert_eq!(journal.take(), ["check a 2", "check b 4", "a#1 2", "b#1 4"]);
    assert_eq!(apply(&tree, text).await, Vec::<String>::new());
    settle().await;
    assert_eq!(journal.take(), Vec::<String>::new());
    apply(&tree, "[a.config]\nlimit = 6\n[b.config]\nlimit = 4").await;
    settle().await;
    assert_eq!(journal.take(), ["check a 6", "a#1 6"]);
    let plan = tree.plan(&config(text)).await.unwrap().forced();
    tree.apply(plan).await.unwrap();
    settle().await;
    let mut all = journal.take();
    all.sort();
    assert_eq!(all, ["a#1 2", "b#1 4", "check a 2", "check b 4"]);
    drop(log);
}

#[tokio::test(start_paused = true)]
async fn seed4_11_no_value_is_sent_before_the_last_check_has_answered() {
    let journal = Journal::default();
    let slow = journal.clone();
    let slow = ChildConfig::<Optional>::new().validate(move |new: Arc<Optional>| {
        let journal = slow.clone();
        async move {
            tokio::time::sleep(secs(3)).await;
            journal.note(format!("check b {}", new.limit));
        }
    });
    let tree = app().child(journal.reader("a").config(journal.check("a")));
    let tree = start_with(tree.child(journal.reader("b").config(slow)), "").await;
    settle().await;
    journal.take();
    apply(&tree, "[a.config]\nlimit = 2\n[b.config]\nlimit = 4").await;
    settle().await;
    assert_eq!(journal.take(), ["check a 2", "check b 4", "a#1 2", "b#1 4"]);
}

#[tokio::test(start_paused = true)]
async fn seed4_12_a_value_is_valid_if_its_check_accepts_it_or_if_there_is_none() {
    let journal = Journal::default();
    let tree = app()
        .child(journal.reader("checked").config(journal.check("checked")))
        .child(journal.reader("unchecked").config(ChildConfig::<Optional>::new()))
        .child(journal.reader("down").config(journal.check("down")));
    let tree = start(tree).await;
    tree.stop_child("down").await.unwrap();
    journal.take();
    apply(
        &tree,
        "[checked.config]\nlimit = 2\n[unchecked.config]\nlimit = 3\n[down.config]\nlimit = 4",
    )
    .await;
    settle().await;
    let seen = journal.take();
    assert_eq!(seen, ["check checked 2", "check down 4", "checked#1 2", "unchecked#1 3"]);
    // A child that is down is asked as well, because the function is that of its spec.
    assert_eq!(
        refused(&tree, "[down.config]\nlimit = 5").await,
        "refused by `app/down` (app.toml:1): odd"
    );
}

#[tokio::test(start_paused = true)]
async fn seed4_13_one_refusal_keeps_every_child_as_it_was() {
    let journal = Journal::default();
    let tree = app().child(journal.reader("a").config(journal.check("a")));
    let tree = start(tree.child(journal.reader("b").config(journal.check("b")))).await;
    settle().await;
    journal.take();
    let text = "[a]\nshutdown = \"9s\"\n[a.config]\nlimit = 2\n[b.config]\nlimit = 3";
    assert_eq!(refused(&tree, text).await, "refused by `app/b` (app.toml:5): odd");
    settle().await;
    assert_eq!(journal.take(), ["check a 2", "check b 3"]);
    assert_eq!(tree.child_spec("a").await.unwrap().shutdown, secs(5).into());
}

#[tokio::test(start_paused = true)]
async fn seed4_14_a_reload_does_not_wait_until_a_busy_child_uses_its_value() {
    let (busy, used) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counters = (Arc::clone(&busy), Arc::clone(&used));
    let child = worker("a", move |ctx: Context| {
        let (busy, used) = counters.clone();
        async move {
            let mut config = ctx.config::<Optional>()?;
            loop {
                tokio::time::sleep(secs(10)).await;
                busy.fetch_add(1, Ordering::Relaxed);
                used.store(config.get().limit, Ordering::Relaxed);
            }
            #[allow(unreachable_code, reason = "names the type")]
            Exit::Ok(())
        }
    });
    let tree = start(app().child(child.config(ChildConfig::<Optional>::new()))).await;
    settle().await;
    let began = Instant::now();
    apply(&tree, "[a.config]\nlimit = 8").await;
    assert_eq!((began.elapsed(), used.load(Ordering::Relaxed)), (Duration::ZERO, 0));
    tokio::time::sleep(secs(11)).await;
    assert_eq!(used.load(Ordering::Relaxed), 8);
}

#[tokio::test(start_paused = true)]
async fn seed4_15_a_child_that_fails_with_a_new_value_finds_it_when_it_comes_back() {
    let journal = Journal::default();
    let notes = journal.clone();
    let child = worker("a", move |ctx: Context| {
        let journal = notes.clone();
        async move {
            let mut config = ctx.config::<Optional>()?;
            journal.note(format!("a#{} {}", ctx.incarnation(), config.get().limit));
            config.changed().await;
            Exit::Err("can't use it".into())
        }
    });
    let backoff = Backoff::constant(secs(1));
    let tree =
        start(app().child(child.backoff(backoff).config(ChildConfig::<Optional>::new()))).await;
    settle().await;
    apply(&tree, "[a.config]\nlimit = 8").await;
    tokio::time::sleep(secs(3)).await;
    settle().await;
    assert_eq!(journal.take(), ["a#1 0", "a#2 8"]);
}

#[tokio::test(start_paused = true)]
async fn seed4_16_values_are_checked_before_any_child_exists() {
    let journal = Journal::default();
    let tree = app().child(journal.reader("a").config(journal.check("a")));
    let tree = tree.build().unwrap().configured(&config("[a.config]\nlimit = 2")).await.unwrap();
    assert_eq!(journal.take(), ["check a 2"]);
    let _tree = tree.start().await.unwrap();
    settle().await;
    assert_eq!(journal.take(), ["a#1 2"]);
}

#[tokio::test(start_paused = true)]
async fn seed4_17_a_value_that_cannot_be_read_keeps_the_old_one() {
    let journal = Journal::default();
    let tree = app().child(journal.reader("a").config(journal.check("a")));
    let tree = start_with(tree, "[a.config]\nlimit = 2").await;
    settle().await;
    journal.take();
    let error = tree.plan(&config("[a.config]\nlimit = -1")).await.unwrap_err().to_string();
    assert!(error.starts_with("app.toml:2:9: "), "{error}");
    settle().await;
    assert_eq!(journal.take(), Vec::<String>::new());
    tree.restart("a").await.unwrap();
    settle().await;
    assert_eq!(journal.take(), ["a#2 2"]);
}

#[tokio::test(start_paused = true)]
async fn seed4_18_common_values_are_merged_below_each_child_table_by_table() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let child = |name: &'static str| {
        let seen = Arc::clone(&seen);
        let run = move |ctx: Context| {
            let seen = Arc::clone(&seen);
            async move {
                let mut config = ctx.config::<Optional>()?;
                let Optional { limit, region } = &*config.get();
                seen.lock().unwrap().push(format!("{name} {limit} {region}"));
                ctx.cancelled().await;
                Exit::Ok(())
            }
        };
        worker(name, run).config(ChildConfig::<Optional>::new())
    };
    let text = "[common]\nshutdown = \"9s\"\nrestart = { when = \"on_failure\", failing_for = \"1h\" }\n\
                [common.config]\nlimit = 1\nregion = \"eu\"\n\
                [\"app/*\".config]\nlimit = 2\n\
                [a]\nrestart = { when = \"always\" }\n[a.config]\nregion = \"us\"";
    let tree = start_with(app().child(child("a")).child(child("b")), text).await;
    settle().await;
    assert_eq!(*seen.lock().unwrap(), ["a 2 us", "b 2 eu"]);
    for (name, restart) in [("a", RestartType::Permanent), ("b", RestartType::Transient)] {
        let spec = tree.child_spec(name).await.unwrap();
        let values = (spec.restart, spec.failing_for, spec.shutdown);
        assert_eq!(values, (restart, Some(secs(3600)), secs(9).into()));
    }
}

#[tokio::test(start_paused = true)]
async fn seed4_18_changed_common_values_reach_the_children_whose_own_sections_are_the_same() {
    let journal = Journal::default();
    let child = |name| journal.reader(name).config(ChildConfig::<Optional>::new());
    let tree = app().child(child("own")).child(child("region")).child(child("none"));
    let sections = "[own.config]\nlimit = 7\n[region.config]\nregion = \"eu\"";
    let text = |limit: u32| format!("[common.config]\nlimit = {limit}\n{sections}");
    let tree = start_with(tree, &text(1)).await;
    settle().await;
    assert_eq!(journal.take(), ["own#1 7", "region#1 1", "none#1 1"]);

    let changes = apply(&tree, &text(2)).await;
    settle().await;
    assert_eq!(journal.take(), ["region#1 2", "none#1 2"], "{changes:?}");
}

#[tokio::test(start_paused = true)]
async fn seed4_19_values_arrive_in_start_order_slow_checks_are_named_and_a_full_mailbox_blocks_nothing()
 {
    let log = Log::at(LevelFilter::WARN);
    let journal = Journal::default();
    let slow = ChildConfig::<Optional>::new().validate(async |_| -> Exit {
        tokio::time::sleep(secs(12)).await;
        Ok(())
    });
    let (address, mailbox) = verger::mailbox_with_capacity::<u32>(1);
    // It reads its values, and never its mailbox.
    let notes = journal.clone();
    let full = verger::worker_with_mailbox("full", mailbox, move |ctx: Context, inbox| {
        let notes = notes.clone();
        async move {
            let mut config = ctx.config::<Optional>()?;
            while ctx.run_until_cancelled(config.changed()).await.is_some() {
                notes.note(format!("full#{} {}", ctx.incarnation(), config.get().limit));
            }
            drop(inbox);
            Exit::Ok(())
        }
    });
    // A logger stops last, so it starts first, and gets its values first.
    let tree = app()
        .child(journal.reader("api").config(ChildConfig::<Optional>::new()))
        .child(journal.reader("logger").stop_order(100).config(slow))
        .child(full.config(ChildConfig::<Optional>::new()));
    let tree = start(tree).await;
    address.send(1).await.unwrap();
    assert!(address.try_send(2).is_err(), "it is full");
    settle().await;
    journal.take();
    let text = "[api.config]\nlimit = 2\n[logger.config]\nlimit = 2\n[full.config]\nlimit = 2";
    let began = Instant::now();
    apply(&tree, text).await;
    assert_eq!(began.elapsed(), secs(12), "the check, and no wait for room in a mailbox");
    settle().await;
    assert_eq!(journal.take(), ["logger#1 2", "api#1 2", "full#1 2"]);
    let waits = log.lines();
    let waits: Vec<_> =
        waits.iter().filter(|line| line.contains("waiting for the check")).collect();
    assert_eq!(waits.len(), 2, "{waits:?}");
    assert!(waits[0].contains("app/logger") && waits[0].contains("waited=5s"), "{waits:?}");
    assert!(waits[1].contains("waited=10s"), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn seed4_24_the_code_is_below_the_file_the_file_below_a_call_and_a_call_below_the_child() {
    let child = worker("a", async |ctx: Context| -> Exit {
        tokio::time::sleep(secs(60)).await;
        ctx.set_restart_policy(Some(RestartPolicy::new().restart(RestartType::OnAbort)))?;
        ctx.cancelled().await;
        Ok(())
    });
    let tree = start(app().child(child.restart(RestartType::Transient))).await;
    let restart = async || {
        let policy = tree.which_child("a").await.unwrap().policy.unwrap();
        let restart = policy.restart();
        (restart.value.restart_type(), restart.source)
    };
    assert_eq!(restart().await, (RestartType::Transient, PolicySource::Spec));
    apply(&tree, "[a]\nrestart = \"never\"").await;
    assert_eq!(restart().await, (RestartType::Temporary, PolicySource::File));
    let policy = RestartPolicy::new().restart(RestartType::OnSuccess);
    tree.set_policy("a", policy).await.unwrap();
    assert_eq!(restart().await, (RestartType::OnSuccess, PolicySource::Call));
    tokio::time::sleep(secs(61)).await;
    settle().await;
    assert_eq!(restart().await, (RestartType::OnAbort, PolicySource::Child));
    tree.restart("a").await.unwrap();
    assert_eq!(restart().await, (RestartType::OnSuccess, PolicySource::Call), "one incarnation");
    tree.clear_policy("a").await.unwrap();
    assert_eq!(restart().await, (RestartType::Temporary, PolicySource::File));
    apply(&tree, "").await;
    assert_eq!(restart().await, (RestartType::Transient, PolicySource::Spec));
}

#[tokio::test(start_paused = true)]
async fn seed4_25_the_three_sections_of_the_documentation_load_as_they_stand() {
    let text = r#"
[group_a.system.restart_policy]
when = "Never" # Override group policy.

[group_b.system.restart_policy]
when = "Always" # or "OnFailure".
min_backoff = "5s" # Required.
max_backoff = "30s" # Required.
factor = "2.0" # Optional.
max_retries = "20" # Optional.
auto_reset = "5s" # Optional.

[group_c]
# If the restart policy is not specified, the restart policy from the blueprint will be used.
"#;
    let group = |name| worker(name, idle).restart(RestartType::OnSuccess);
    let tree = app().child(group("group_a")).child(group("group_b")).child(group("group_c"));
    let tree = start_with(tree, text).await;
    let spec = async |name| tree.child_spec(name).await.unwrap();
    assert_eq!(spec("group_a").await.restart, RestartType::Temporary);
    let b = spec("group_b").await;
    assert_eq!((b.restart, b.consecutive_restarts), (RestartType::Permanent, Some(20)));
    let elfo = Backoff::exponential(secs(5), secs(30)).jitter(verger::policy::Jitter::None);
    assert_eq!(b.backoff, elfo.reset_after(secs(5)).at_once_after_reset());
    assert_eq!(spec("group_c").await.restart, RestartType::OnSuccess);

    for (word, restart) in
        [("OnFailure", RestartType::Transient), ("on_failure", RestartType::Transient)]
    {
        let text = format!("[group_a]\nrestart = {{ when = \"{word}\" }}");
        apply(&tree, &text).await;
        assert_eq!(spec("group_a").await.restart, restart);
    }
    let error = tree.plan(&config("[group_a.restart]\nwhen = \"sometimes\"")).await.unwrap_err();
    let error = error.to_string();
    let expected = "app.toml:2:8: unknown restart type `sometimes`; write `permanent`, `always`, \
                    `transient`, `on_failure`, `temporary`, `never`, ";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn seed4_26_both_backoffs_are_required_and_numbers_may_be_quoted() {
    let tree = start(app().child(worker("a", idle))).await;
    for (text, expected) in [
        ("min_backoff = \"5s\"", "`max_backoff`"),
        ("max_backoff = \"5s\"", "`min_backoff`"),
        ("min_backoff = \"5s\"\nmax_backoff = \"9s\"\nfactor = \"two\"", "app.toml:4:10"),
        ("min_backoff = 5\nmax_backoff = \"9s\"", "app.toml:2:15"),
    ] {
        let error = tree.plan(&config(&format!("[a.restart]\n{text}"))).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
    for (factor, retries) in [("3.0", "7"), ("\"3.0\"", "\"7\""), ("\"3\"", "7")] {
        let text = format!(
            "[a.restart]\nmin_backoff = \"1s\"\nmax_backoff = \"9s\"\nfactor = {factor}\nmax_retries = {retries}"
        );
        apply(&tree, &text).await;
        let spec = tree.child_spec("a").await.unwrap();
        assert_eq!(spec.consecutive_restarts, Some(7), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn seed4_27_a_child_without_a_section_has_the_policy_of_its_code() {
    let tree = app().child(worker("a", idle).restart(RestartType::Transient));
    let tree = start_with(tree.child(worker("b", idle)), "[b]\nrestart = \"never\"").await;
    let a = tree.which_child("a").await.unwrap();
    assert_eq!(a.policy.unwrap().restart().source, PolicySource::Spec);
    assert!(a.configured.is_empty());
    assert_eq!(a.restart, RestartType::Transient);
}

#[tokio::test(start_paused = true)]
async fn seed4_29_a_policy_that_changes_while_a_child_runs_decides_on_its_next_failure() {
    let child = worker("a", async |ctx: Context| -> Exit {
        tokio::time::sleep(secs(10)).await;
        drop(ctx);
        Err("no".into())
    });
    let tree = start(app().child(child.restart(RestartType::Permanent))).await;
    tokio::time::sleep(secs(5)).await;
    apply(&tree, "[a]\nrestart = \"never\"").await;
    assert_eq!(lifecycle(&tree, "a").await, Lifecycle::Active);
    tokio::time::sleep(secs(6)).await;
    settle().await;
    assert!(tree.which_child("a").await.is_err(), "a temporary child is removed");
}
