//! Typed values of children: checks, restarts, calls, secrets, and faults that reloads of others had.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
use verger::config::{ApplyError, ChildConfig, Config, Secret};
use verger::policy::RestartPolicy;
use verger::{
    ChildSpec, Context, ControlError, DynamicSupervisor, Exit, Lifecycle, Readiness, RestartType,
    Supervisor, SupervisorHandle, worker,
};

use super::{app, apply, config, idle, secs, start_with, try_apply};
use crate::common::settle;

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Server {
    port: u16,
    password: Secret<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self { port: 80, password: Secret::new(String::new()) }
    }
}

/// Ports that are taken, as an operating system keeps them.
#[derive(Clone, Default)]
struct Ports(Arc<Mutex<Vec<u16>>>);

struct Bound(Ports, u16);

impl Ports {
    fn bind(&self, port: u16) -> Result<Bound, String> {
        let mut taken = self.0.lock().unwrap();
        if port == 0 || taken.contains(&port) {
            return Err(format!("port {port} is taken"));
        }
        taken.push(port);
        Ok(Bound(self.clone(), port))
    }

    fn taken(&self) -> Vec<u16> {
        let mut taken = self.0.lock().unwrap().clone();
        taken.sort_unstable();
        taken
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().retain(|port| *port != self.1);
    }
}

/// A child that binds the port of its configuration at its start, and keeps it.
fn server(name: &str, ports: &Ports) -> ChildSpec {
    let ports = ports.clone();
    let run = move |ctx: Context| {
        let ports = ports.clone();
        async move {
            let port = ctx.config::<Server>()?.get().port;
            let _bound = ports.bind(port)?;
            ctx.ready();
            ctx.cancelled().await;
            Exit::Ok(())
        }
    };
    let config = ChildConfig::<Server>::new().restart_on_change();
    worker(name, run).readiness(Readiness::Signal).config(config)
}

async fn incarnation(tree: &SupervisorHandle, path: &str) -> u32 {
    tree.which_child(path).await.unwrap().incarnation
}

/// Vector started the new part of a topology before the old one had released its port.
#[tokio::test(start_paused = true)]
async fn a_port_that_moves_from_one_child_to_another_is_free_in_time() {
    let ports = Ports::default();
    let tree = app().child(server("a", &ports)).child(server("b", &ports));
    let tree = start_with(tree, "[a.config]\nport = 1\n[b.config]\nport = 2").await;
    assert_eq!(ports.taken(), [1, 2]);
    apply(&tree, "[a.config]\nport = 2\n[b.config]\nport = 1").await;
    assert_eq!(ports.taken(), [1, 2]);
    assert_eq!((incarnation(&tree, "a").await, incarnation(&tree, "b").await), (2, 2));

    // From a child that is taken out to one that changes.
    apply(&tree, "[a.config]\nport = 1\n[b]\nenabled = false\nconfig = { port = 1 }").await;
    assert_eq!(ports.taken(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_become_active_is_taken_back_with_the_whole_plan() {
    let ports = Ports::default();
    let tree = app().child(server("a", &ports)).child(server("b", &ports));
    let text = "[a.config]\nport = 1\n[b.config]\nport = 2";
    let tree = start_with(tree.child(worker("c", idle)), text).await;
    let new =
        "[a.config]\nport = 3\n[b.config]\nport = 0\n[c]\nshutdown = \"9s\"\nrestart = \"never\"";
    let error = try_apply(&tree, new).await.unwrap_err();
    assert_eq!(error, "rolled back, not active: `app/b`: activation failed: port 0 is taken");
    assert_eq!(ports.taken(), [1, 2]);
    for name in ["a", "b"] {
        assert_eq!(tree.which_child(name).await.unwrap().lifecycle, Lifecycle::Active);
        assert_eq!(tree.which_child(name).await.unwrap().failures, 0, "uncharged");
    }
    let c = tree.child_spec("c").await.unwrap();
    assert_eq!((c.shutdown, c.restart), (secs(5).into(), RestartType::Permanent));
    assert_eq!(incarnation(&tree, "c").await, 1);
    assert!(apply(&tree, text).await.is_empty(), "the old file is up to date");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_with_its_old_value_as_well_is_named_with_both_reasons() {
    let ports = Ports::default();
    // The old port is taken by something else while the child tries the new one.
    let stolen = Arc::new(Mutex::new(None));
    let (thief, kept) = (ports.clone(), Arc::clone(&stolen));
    let run = move |ctx: Context| {
        let (ports, stolen) = (thief.clone(), Arc::clone(&kept));
        async move {
            let port = ctx.config::<Server>()?.get().port;
            if port == 0 {
                *stolen.lock().unwrap() = ports.bind(1).ok();
            }
            let _bound = ports.bind(port)?;
            ctx.ready();
            ctx.cancelled().await;
            Exit::Ok(())
        }
    };
    let config = ChildConfig::<Server>::new().restart_on_change();
    let child = worker("a", run).readiness(Readiness::Signal).config(config);
    let tree = start_with(app().child(child), "[a.config]\nport = 1").await;
    let error = try_apply(&tree, "[a.config]\nport = 0").await.unwrap_err();
    assert_eq!(
        error,
        "rolled back, not active: `app/a`: activation failed: port 0 is taken; `app/a`: also with its \
         old configuration: activation failed: port 1 is taken"
    );
    // That is an ordinary failure, which its policy answers.
    drop(stolen.lock().unwrap().take());
    tokio::time::sleep(secs(5)).await;
    settle().await;
    assert_eq!(tree.which_child("a").await.unwrap().lifecycle, Lifecycle::Active);
    assert_eq!(ports.taken(), [1]);
}

/// Vector's reload waited without end for a part that didn't stop.
#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_stop_delays_a_plan_by_its_grace_only() {
    let deaf = worker("deaf", async |_| -> Exit {
        std::future::pending::<()>().await;
        Ok(())
    });
    let config = ChildConfig::<Server>::new().restart_on_change();
    let tree = start_with(app().child(deaf.config(config).shutdown(secs(7))), "").await;
    let began = Instant::now();
    apply(&tree, "[deaf.config]\nport = 9").await;
    assert_eq!(began.elapsed(), secs(7));
    assert_eq!(incarnation(&tree, "deaf").await, 2);
}

/// In Vector a forced set was kept, and forced the reloads that followed.
#[tokio::test(start_paused = true)]
async fn a_forced_plan_forces_nothing_after_it() {
    let checks = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&checks);
    let checked = ChildConfig::<Server>::new().validate(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async {}
    });
    let tree = start_with(app().child(worker("a", idle).config(checked)), "").await;
    let text = config("[a.config]\nport = 7");
    for (forced, expected) in [(false, 2), (true, 3), (false, 3), (false, 3)] {
        let plan = tree.plan(&text).await.unwrap();
        tree.apply(if forced { plan.forced() } else { plan }).await.unwrap();
        assert_eq!(checks.load(Ordering::Relaxed), expected);
    }
    tree.set_policy("a", RestartPolicy::new().restart(RestartType::Temporary)).await.unwrap();
    let plan = tree.plan(&text).await.unwrap();
    tree.apply(plan).await.unwrap();
    assert_eq!(tree.which_child("a").await.unwrap().restart, RestartType::Temporary);
    let plan = tree.plan(&text).await.unwrap().forced();
    tree.apply(plan).await.unwrap();
    assert_eq!(tree.which_child("a").await.unwrap().restart, RestartType::Permanent);
}

/// In Vector a component that became one of another kind under the same name kept what was left of the old.
#[tokio::test(start_paused = true)]
async fn two_children_that_change_places_are_both_replaced() {
    let tree = |first: ChildSpec, second: ChildSpec| {
        app().unlimited_restarts().child(first).child(second).build().unwrap()
    };
    let supervisor =
        |name: &str| ChildSpec::from(Supervisor::builder(name).child(worker("x", idle)));
    let running = tree(worker("a", idle), supervisor("b")).start().await.unwrap();
    let swapped = tree(supervisor("a"), worker("b", idle));
    let plan = running.plan_tree(&swapped, &Config::new()).await.unwrap();
    assert_eq!(plan.to_string(), "~ app/a  needs a restart\n~ app/b  needs a restart");
    running.apply(plan).await.unwrap();
    assert_eq!(
        running.supervisor("a").await.unwrap().otp().count_children().await.unwrap().specs,
        1
    );
    let b = running.supervisor("b").await.unwrap_err();
    assert!(matches!(b, ControlError::NotASupervisor { .. }), "{b}");
}

#[tokio::test(start_paused = true)]
async fn kin_152_a_valid_value_arrives_and_an_invalid_one_is_rejected_with_its_reason() {
    let check = ChildConfig::<Server>::new().validate(async |new: Arc<Server>| -> Exit {
        if new.port < 1024 { Err("privileged port".into()) } else { Ok(()) }
    });
    let seen = Arc::new(AtomicU32::new(0));
    let report = Arc::clone(&seen);
    let child = worker("a", move |ctx: Context| {
        let seen = Arc::clone(&report);
        async move {
            let mut config = ctx.config::<Server>()?;
            loop {
                seen.store(config.get().port.into(), Ordering::Relaxed);
                tokio::select! {
                    () = config.changed() => {}
                    () = ctx.cancelled() => return Exit::Ok(()),
                }
            }
        }
    });
    let tree = start_with(app().child(child.config(check)), "[a.config]\nport = 8080").await;
    settle().await;
    assert_eq!(seen.load(Ordering::Relaxed), 8080);
    let call = |port| Server { port, ..Server::default() };
    tree.set_config("a", call(9090)).await.unwrap();
    settle().await;
    assert_eq!(seen.load(Ordering::Relaxed), 9090);
    let refused = tree.set_config("a", call(80)).await.unwrap_err();
    assert_eq!(refused.to_string(), "refused by `app/a`: privileged port");
    let refused = try_apply(&tree, "[a.config]\nport = 80").await.unwrap_err();
    assert_eq!(refused, "refused by `app/a` (app.toml:1): privileged port");
    settle().await;
    assert_eq!(seen.load(Ordering::Relaxed), 9090, "the old value stays");
    let wrong = tree.set_config("a", 5_u8).await.unwrap_err().to_string();
    assert!(wrong.starts_with("refused by `app/a`: its configuration is a `"), "{wrong}");
    let missing = tree.set_config("b", call(1)).await.unwrap_err();
    assert!(matches!(missing, ApplyError::Control(ControlError::NotFound { .. })), "{missing}");
}

#[derive(Debug)]
struct Explodes;

impl<'de> Deserialize<'de> for Explodes {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("no idea")
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_child_refuses_a_value_that_does_not_fit_its_state() {
    let slots = Arc::new(AtomicU32::new(5));
    let used = Arc::clone(&slots);
    let child = worker("a", move |ctx: Context| {
        let used = Arc::clone(&used);
        async move {
            ctx.on_validate(move |new: Arc<Server>| {
                let used = used.load(Ordering::Relaxed);
                async move {
                    match u32::from(new.port) < used {
                        true => Err(format!("{used} are in use")),
                        false => Ok(()),
                    }
                }
            })?;
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    let tree = start_with(app().child(child.config(ChildConfig::<Server>::new())), "").await;
    settle().await;
    let refused = try_apply(&tree, "[a.config]\nport = 4").await.unwrap_err();
    assert_eq!(refused, "refused by `app/a` (app.toml:1): 5 are in use");
    slots.store(3, Ordering::Relaxed);
    apply(&tree, "[a.config]\nport = 4").await;

    // A child that is down has no state that a value must fit.
    tree.stop_child("a").await.unwrap();
    apply(&tree, "[a.config]\nport = 1").await;
}

#[tokio::test(start_paused = true)]
async fn kin_153_a_panic_while_a_value_is_read_or_checked_is_a_reason_that_names_the_child() {
    let spec = worker("a", idle).config(ChildConfig::<Explodes>::new());
    let tree = app().child(spec).build().unwrap();
    let error = tree.configured(&config("[a.config]\nx = 1")).await.unwrap_err().to_string();
    assert!(error.contains("panicked: no idea"), "{error}");
    assert!(error.contains("key: a.config"), "{error}");

    let check = ChildConfig::<Server>::new().validate(async |new: Arc<Server>| -> Exit {
        assert!(new.port != 7, "seven");
        Ok(())
    });
    let tree = start_with(app().child(worker("a", idle).config(check)), "").await;
    let error = try_apply(&tree, "[a.config]\nport = 7").await.unwrap_err();
    assert_eq!(error, "refused by `app/a` (app.toml:1): panicked: seven");
    let slow = ChildConfig::<Server>::new().validate_within(secs(2));
    let slow = slow.validate(async |new: Arc<Server>| -> Exit {
        if new.port == 7 {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    let tree = start_with(app().child(worker("a", idle).config(slow)), "").await;
    let began = Instant::now();
    let error = try_apply(&tree, "[a.config]\nport = 7").await.unwrap_err();
    assert_eq!(
        (error.as_str(), began.elapsed()),
        ("refused by `app/a` (app.toml:1): no answer within 2s", secs(2))
    );
}

#[tokio::test(start_paused = true)]
async fn kin_154_children_without_a_check_are_valid_and_a_check_starts_no_child() {
    let checked = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&checked);
    let check = ChildConfig::<Server>::new().start_when_configured().validate(move |_| {
        note.store(true, Ordering::Relaxed);
        async { Exit::Err("no".into()) }
    });
    let unchecked = worker("unchecked", idle).config(ChildConfig::<Server>::new());
    let tree = app().child(worker("checked", idle).config(check)).child(unchecked);
    let tree = start_with(tree, "").await;
    assert!(!checked.load(Ordering::Relaxed), "it has no value");
    apply(&tree, "[unchecked.config]\nport = 1").await;
    let error = try_apply(&tree, "[checked.config]\nport = 1").await.unwrap_err();
    assert_eq!(error, "refused by `app/checked` (app.toml:1): no");
    assert!(checked.load(Ordering::Relaxed));
    let info = tree.which_child("checked").await.unwrap();
    assert_eq!((info.lifecycle, info.incarnation), (Lifecycle::Discovered, 0), "not started");
}

#[tokio::test(start_paused = true)]
async fn kin_155_own_values_win_and_missing_ones_are_those_of_the_common_section() {
    let text = "[common.config]\nport = 1\n[a.config]\nport = 2\n[b]\n";
    let seen = Arc::new(Mutex::new(Vec::new()));
    let child = |name: &'static str| {
        let seen = Arc::clone(&seen);
        let run = move |ctx: Context| {
            let seen = Arc::clone(&seen);
            async move {
                let port = ctx.config::<Server>()?.get().port;
                seen.lock().unwrap().push((name, port));
                ctx.cancelled().await;
                Exit::Ok(())
            }
        };
        worker(name, run).config(ChildConfig::<Server>::new())
    };
    let below = Supervisor::builder("below").child(child("d"));
    let tree = app().unlimited_restarts().child(child("a")).child(child("b")).child(child("c"));
    let text = format!("{text}[\"below/d\".config]\nport = 4");
    let _tree = start_with(tree.child(below), &text).await;
    settle().await;
    assert_eq!(*seen.lock().unwrap(), [("a", 2), ("b", 1), ("c", 1), ("d", 4)]);
}

#[tokio::test(start_paused = true)]
async fn secrets_are_shown_nowhere() {
    let log = crate::log::Log::at(tracing::level_filters::LevelFilter::TRACE);
    let child = |name| worker(name, idle).config(ChildConfig::<Server>::new());
    let tree = app().child(child("a")).child(child("b")).child(DynamicSupervisor::builder("jobs"));
    let old = "[a.config]\npassword = \"hunter1\"";
    let tree = start_with(tree, old).await;
    let new = "[common.config]\npassword = \"hunter2\"\n[a.config]\npassword = \"hunter3\"\nport = 9\n\
               [\"jobs/job\".config]\nkey = \"hunter4\"";
    let plan = tree.plan(&config(new)).await.unwrap();
    let mut shown = format!("{plan} {plan:?} {}", serde_json::to_string(&plan).unwrap());
    assert!(shown.contains("app/a  config.password  [redacted] → [redacted]"), "{shown}");
    assert!(shown.contains("config.port  (code) → 9"), "{shown}");
    shown += &format!("{:?}", tree.apply(plan).await.unwrap());
    shown += &tree.status().await.unwrap().to_string();
    let wrong = config("[a.config]\npassword = 5");
    shown += &tree.plan(&wrong).await.unwrap_err().to_string();
    shown += &format!("{wrong:?}");
    shown += &log.lines().concat();
    assert!(!shown.contains("hunter"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_section_of_a_dynamic_supervisor_is_for_the_children_that_run_and_those_to_come() {
    let tree = start_with(app().child(DynamicSupervisor::builder("jobs")), "").await;
    let jobs = tree.supervisor("jobs").await.unwrap();
    let job = || worker("job", idle).config(ChildConfig::<Server>::new());
    let first = jobs.start_child(job()).await.unwrap();
    apply(&tree, "[\"jobs/job\"]\nshutdown = \"9s\"\nconfig = { port = 5 }").await;
    let second = jobs.start_child(job()).await.unwrap();
    for child in [first.name(), second.name()] {
        assert_eq!(jobs.child_spec(child).await.unwrap().shutdown, secs(9).into(), "{child}");
    }
    let other = jobs.start_child(worker("other", idle)).await.unwrap();
    assert_eq!(jobs.child_spec(other.name()).await.unwrap().shutdown, secs(5).into());
    tree.set_policy("jobs/job", RestartPolicy::new().consecutive_restarts(2)).await.unwrap();
    let spec = jobs.child_spec(first.name()).await.unwrap();
    assert_eq!(spec.consecutive_restarts, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_stop_answers_a_plan_with_shutting_down_and_an_ended_tree_with_ended() {
    let slow = worker("slow", async |ctx: Context| -> Exit {
        ctx.cancelled().await;
        tokio::time::sleep(secs(3)).await;
        Ok(())
    });
    let tree = start_with(app().child(slow), "").await;
    let plan = tree.plan(&config("[slow]\nshutdown = \"9s\"")).await.unwrap();
    let stopping = tokio::spawn({
        let tree = tree.clone();
        async move { tree.stop("done").await }
    });
    settle().await;
    let error = tree.apply(plan.clone()).await.unwrap_err();
    assert!(matches!(error, ApplyError::Control(ControlError::ShuttingDown { .. })), "{error}");
    stopping.await.unwrap().unwrap();
    let error = tree.apply(plan).await.unwrap_err();
    assert!(matches!(error, ApplyError::Control(ControlError::Ended { .. })), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_second_plan_waits_and_is_made_of_the_tree_as_it_is_then() {
    let slow = ChildConfig::<Server>::new().validate(async |_| -> Exit {
        tokio::time::sleep(Duration::from_secs(4)).await;
        Ok(())
    });
    let tree = start_with(app().child(worker("a", idle).config(slow)), "").await;
    let plan = tree.plan(&config("[a.config]\nport = 1")).await.unwrap();
    let (first, second) = (tree.apply(plan.clone()), tree.apply(plan));
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.unwrap().changes.len(), 1);
    assert_eq!(second.unwrap().to_string(), "up to date");
}

#[tokio::test(start_paused = true)]
async fn children_can_share_a_section_that_is_none_of_theirs() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let child = |name: &'static str| {
        let seen = Arc::clone(&seen);
        let run = move |ctx: Context| {
            let seen = Arc::clone(&seen);
            async move {
                let mut config = ctx.config::<Server>()?;
                loop {
                    seen.lock().unwrap().push((name, config.get().port));
                    tokio::select! {
                        () = config.changed() => {}
                        () = ctx.cancelled() => return Exit::Ok(()),
                    }
                }
            }
        };
        worker(name, run).config(ChildConfig::<Server>::new().section("storage"))
    };
    let tree =
        start_with(app().child(child("a")).child(child("b")), "[storage.config]\nport = 1").await;
    settle().await;
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [("a", 1), ("b", 1)]);
    let changes = apply(&tree, "[storage.config]\nport = 2").await;
    assert_eq!(changes, ["~ app/storage  config.port  1 → 2  live  app.toml:2"]);
    settle().await;
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [("a", 2), ("b", 2)]);
    let error = try_apply(&tree, "[storage]\nshutdown = \"1s\"\n[storage.config]\nport = 3").await;
    let error = error.unwrap_err();
    assert!(error.starts_with("app.toml:2:1: there is no child with this path"), "{error}");
    let error = try_apply(&tree, "[sotrage.config]\nport = 2").await.unwrap_err();
    assert!(error.starts_with("app.toml:1:2: there is no `app/sotrage`"), "{error}");
}

/// The kit wraps what makes a child, and keeps what its spec says.
#[cfg(feature = "testing")]
#[tokio::test(start_paused = true)]
async fn a_child_in_the_test_kit_has_its_configuration() {
    let run = async |ctx: Context| -> Exit {
        let mut config = ctx.config::<Server>()?;
        ctx.set_status(format!("port {}", config.get().port));
        ctx.cancelled().await;
        Ok(())
    };
    let spec = worker("server", run).config(ChildConfig::<Server>::new());
    let tree = verger::testing::TestTree::start(Supervisor::builder("app").child(spec)).await;
    settle().await;
    let server = tree.handle().which_child("server").await.unwrap();
    assert_eq!(server.status.as_deref(), Some("port 80"));
    tree.stop().await;
}

/// A value that panics when it is dropped.
#[derive(Deserialize)]
#[serde(default)]
struct Bomb {
    size: u32,
}

impl Default for Bomb {
    fn default() -> Self {
        Self { size: 1 }
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        // The default is dropped while a value is read.
        if self.size > 1 && !std::thread::panicking() {
            panic!("dropped at size {}", self.size);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_panics_on_drop_ends_no_reload() {
    let bomb = |name| worker(name, idle).config(ChildConfig::<Bomb>::new());
    let tree = app().child(bomb("a")).child(bomb("b")).child(worker("c", idle));
    let tree = start_with(tree, "[a.config]\nsize = 2\n[b.config]\nsize = 2").await;
    for size in 3..6 {
        let text = format!(
            "[a.config]\nsize = {size}\n[b.config]\nsize = {size}\n[c]\nshutdown = \"{size}s\""
        );
        let changes = apply(&tree, &text).await;
        assert_eq!(changes.len(), 3, "{changes:?}");
        assert_eq!(tree.child_spec("c").await.unwrap().shutdown, secs(size).into());
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_a_failure_with_a_new_value_do_not_show_its_secrets() {
    let log = crate::log::Log::at(tracing::level_filters::LevelFilter::INFO);
    let refuses = ChildConfig::<Server>::new().validate(async |new: Arc<Server>| -> Exit {
        match new.password.expose().as_str() {
            "" => Ok(()),
            password => Err(format!("`{password}` is too weak, {password:?}").into()),
        }
    });
    let fails = worker("fails", async |ctx: Context| -> Exit {
        let config = ctx.config::<Server>()?.get();
        if !config.password.expose().is_empty() {
            return Err(format!("no login with {}", config.password.expose()).into());
        }
        ctx.ready();
        idle(ctx).await
    });
    let fails =
        fails.readiness(Readiness::Signal).config(ChildConfig::<Server>::new().restart_on_change());
    let tree = app().child(worker("refuses", idle).config(refuses)).child(fails);
    let tree = start_with(tree, "").await;
    let error = try_apply(&tree, "[refuses.config]\npassword = \"hunter\\n2\"").await.unwrap_err();
    let expected =
        "refused by `app/refuses` (app.toml:1): `[redacted]` is too weak, \"[redacted]\"";
    assert_eq!(error, expected);
    log.lines();
    let error = try_apply(&tree, "[fails.config]\npassword = \"hunter3\"").await.unwrap_err();
    assert!(error.starts_with("rolled back, not active: `app/fails`"), "{error}");
    assert!(error.contains("no login with [redacted]"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_disabled_supervisor_shows_the_strategy_that_a_file_gives_it() {
    let group = verger::Supervisor::builder("group").child(worker("a", idle));
    let file = "[group]\nenabled = false\nstrategy = \"one_for_all\"";
    let tree = start_with(app().child(group), file).await;
    let group = tree.which_child("group").await.unwrap();
    assert_eq!(group.strategy, Some("one_for_all"));
    assert_eq!(serde_json::to_value(&group).unwrap()["strategy"], "one_for_all");
    tree.stop("done").await.unwrap();
}
