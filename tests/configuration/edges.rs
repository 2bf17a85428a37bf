//! Values where a tree isn't simple: supervisors below dynamic ones, children that can't start now, supervisors
//! that don't run.

use tokio::time::Instant;
use verger::config::{ApplyError, ChildConfig, Config};
use verger::policy::{Intensity, Jitter, RestartPolicy};
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, Lifecycle, Shutdown, Strategy,
    Supervisor, SupervisorBuilder, SupervisorHandle, worker,
};

use super::{Server, app, apply, config, idle, secs, start, state, try_apply};
use crate::common::{End, FakeChildren, settle};

async fn refused(tree: &SupervisorHandle, text: &str) -> String {
    try_apply(tree, text).await.unwrap_err()
}

async fn upgrade(
    tree: &SupervisorHandle,
    new: SupervisorBuilder,
    text: &str,
) -> Result<(), ApplyError> {
    let plan = tree.plan_tree(&new.build().unwrap(), &config(text)).await?;
    tree.apply(plan).await.map(drop)
}

fn typed(name: &str) -> ChildSpec {
    worker(name, idle).config(ChildConfig::<Server>::new())
}

#[tokio::test(start_paused = true)]
async fn children_below_a_dynamic_child_share_a_section_without_serial_numbers() {
    let tree = start(app().child(DynamicSupervisor::builder("rooms"))).await;
    let rooms = tree.supervisor("rooms").await.unwrap();
    let room = || Supervisor::builder("room").child(typed("writer")).child(worker("reader", idle));
    let mut names = Vec::new();
    for _ in 0..2 {
        names.push(rooms.start_child(room()).await.unwrap().name().to_owned());
    }
    apply(&tree, "[\"rooms/room/writer\"]\nshutdown = \"9s\"\nconfig = { port = 5 }").await;
    names.push(rooms.start_child(room()).await.unwrap().name().to_owned());
    assert_eq!(names, ["room#1", "room#2", "room#3"]);
    for name in &names {
        let room = rooms.supervisor(name).await.unwrap();
        assert_eq!(room.child_spec("writer").await.unwrap().shutdown, secs(9).into(), "{name}");
        assert_eq!(room.child_spec("reader").await.unwrap().shutdown, secs(5).into(), "{name}");
    }
    apply(
        &tree,
        "[\"rooms/room/writer\"]\nenabled = false\n[\"rooms/room\"]\nstrategy = \"one_for_all\"",
    )
    .await;
    for name in &names {
        let room = rooms.supervisor(name).await.unwrap();
        let writer = room.which_child("writer").await.unwrap();
        assert_eq!(writer.lifecycle, Lifecycle::Discovered, "{name}");
    }
    let error = refused(&tree, "[\"rooms/room/writer\".config]\nport = \"x\"").await;
    assert!(error.starts_with("app.toml:2:8: "), "{error}");

    let room = rooms.supervisor("room#1").await.unwrap();
    room.set_policy("reader", RestartPolicy::new().consecutive_restarts(2)).await.unwrap();
    for name in &names {
        let room = rooms.supervisor(name).await.unwrap();
        let reader = room.child_spec("reader").await.unwrap();
        assert_eq!(reader.consecutive_restarts, Some(2), "{name}");
    }
    let error = tree.set_config("rooms/room#1/writer", Server { port: 6 }).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "refused by `app/rooms/room#1/writer`: children with one name share their values; write \
         `rooms/room/writer` instead"
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_its_requirement_does_not_delay_the_plan_that_restarts_it() {
    let fakes = FakeChildren::new();
    let long = Backoff::constant(secs(600)).jitter(Jitter::None);
    let user = worker("user", idle).requires("db");
    let user = user.config(ChildConfig::<Server>::new().restart_on_change());
    let tree = start(app().child(fakes.child("db").backoff(long)).child(user)).await;
    fakes.end("db", End::Error).await;
    settle().await;
    let began = Instant::now();
    apply(&tree, "[user.config]\nport = 1").await;
    assert_eq!(began.elapsed(), secs(0));
    assert_eq!(tree.which_child("user").await.unwrap().lifecycle, Lifecycle::Discovered);
    tokio::time::sleep(secs(600)).await;
    settle().await;
    let user = tree.which_child("user").await.unwrap();
    assert_eq!((user.lifecycle, user.incarnation), (Lifecycle::Active, 2));
}

#[tokio::test(start_paused = true)]
async fn new_code_waits_for_a_group_restart_only_so_long_and_changes_nothing_meanwhile() {
    let fakes = FakeChildren::new();
    let old = |fakes: &FakeChildren| {
        let long = Backoff::constant(secs(600)).jitter(Jitter::None);
        let group = Supervisor::builder("group").strategy(Strategy::OneForAll);
        group.child(fakes.child("a").backoff(long)).child(fakes.child("b"))
    };
    let tree = start(app().child(old(&fakes)).child(fakes.child("c"))).await;
    fakes.end("a", End::Error).await;
    settle().await;
    let new = app().child(old(&fakes).child(fakes.child("d"))).build().unwrap();
    let plan = tree.plan_tree(&new, &Config::new()).await.unwrap();
    let began = Instant::now();
    let error = tree.apply(plan.clone()).await.unwrap_err();
    assert_eq!(began.elapsed(), secs(30));
    assert!(matches!(error, ApplyError::Refused(_)));
    assert_eq!(
        error.to_string(),
        "refused by `app/group`: it restarts its children, and hasn't finished within 30s"
    );
    let c = tree.which_child("c").await.unwrap();
    assert_eq!((c.lifecycle, c.incarnation), (Lifecycle::Active, 1), "nothing was stopped");
    tokio::time::sleep(secs(600)).await;
    settle().await;
    tree.apply(plan).await.unwrap();
    assert_eq!(tree.which_child("group/d").await.unwrap().lifecycle, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn values_are_checked_for_children_of_a_supervisor_that_does_not_run() {
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let run = move |ctx: Context| {
        let sender = sender.clone();
        async move {
            sender.send(ctx.config::<Server>()?.get().port).unwrap();
            idle(ctx).await
        }
    };
    let child = worker("a", run).config(ChildConfig::<Server>::new());
    let tree = start(app().child(Supervisor::builder("group").child(child))).await;
    assert_eq!(seen.recv().await, Some(0));
    tree.stop_child("group").await.unwrap();
    let error = refused(&tree, "[common.config]\nport = \"x\"").await;
    assert!(error.starts_with("app.toml:2:8: "), "{error}");
    apply(&tree, "[common.config]\nport = 5").await;
    tree.otp().restart_child("group").await.unwrap();
    assert_eq!(seen.recv().await, Some(5));
}

#[tokio::test(start_paused = true)]
async fn values_for_all_children_are_checked_together_with_the_code_of_each() {
    let tree = start(app().unlimited_restarts().child(worker("a", idle))).await;
    let endless = "backoff = { curve = \"constant\", delay = \"1s\", reset_after = \"0s\" }";
    for section in ["common.restart", "\"*\".restart", "a.restart"] {
        let error = refused(&tree, &format!("[{section}]\n{endless}")).await;
        assert!(error.contains("`app/a`"), "{section}: {error}");
        assert!(error.starts_with("app.toml:1:"), "{section}: {error}");
    }
    apply(&tree, "[common.restart]\nbackoff = { curve = \"constant\", delay = \"1s\" }").await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_a_call_is_checked_together_with_the_code() {
    let tree = start(app().unlimited_restarts().child(worker("a", idle))).await;
    let endless = Backoff::constant(secs(1)).reset_after(secs(0));
    let policy = RestartPolicy::new().backoff(endless);
    let error = tree.set_policy("a", policy.clone()).await.unwrap_err().to_string();
    assert!(error.contains("`app/a`"), "{error}");
    let limited = policy.intensity(Intensity::sliding(3, secs(60)));
    tree.set_policy("a", limited).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quoted_boolean_takes_a_child_out() {
    let tree = start(app().child(worker("a", idle))).await;
    let changes = apply(&tree, "[a]\nenabled = \"false\"").await;
    assert_eq!(changes, ["- app/a  enabled  true → \"false\"  live  app.toml:2"]);
    assert_eq!(tree.which_child("a").await.unwrap().lifecycle, Lifecycle::Discovered);
    let changes = apply(&tree, "[a]\nenabled = \"true\"").await;
    assert_eq!(changes, ["+ app/a  enabled  \"false\" → \"true\"  live  app.toml:2"]);
    assert_eq!(tree.which_child("a").await.unwrap().lifecycle, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_is_removed_restarts_the_child_like_one_that_changes() {
    let child = worker("a", idle).config(ChildConfig::<Server>::new().restart_on_change());
    let tree = start(app().child(child)).await;
    apply(&tree, "[a.config]\nport = 1").await;
    let changes = apply(&tree, "").await;
    assert_eq!(changes, ["~ app/a  config.port  1 → (code)  needs a restart"]);
    assert_eq!(tree.which_child("a").await.unwrap().incarnation, 3);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_place_of_the_value() {
    let check = ChildConfig::<Server>::new().validate(async |new| -> Exit {
        if new.port == 0 { Err("port 0 isn't allowed".into()) } else { Ok(()) }
    });
    let tree = start(app().child(worker("a", idle).config(check))).await;
    let error = refused(&tree, "[a]\nshutdown = \"9s\"\n\n[a.config]\nport = 0").await;
    assert_eq!(error, "refused by `app/a` (app.toml:4): port 0 isn't allowed");
    let error = tree.set_config("a", Server { port: 0 }).await.unwrap_err();
    assert_eq!(error.to_string(), "refused by `app/a`: port 0 isn't allowed");
}

#[tokio::test(start_paused = true)]
async fn values_for_all_workers_do_not_reach_a_supervisor_that_comes_later() {
    let tree = app().child(DynamicSupervisor::builder("rooms")).build().unwrap();
    let text = "[common]\nwatchdog = \"5s\"\nshutdown = \"1s\"\n[\"rooms/room\"]\nmax_restarts = 9\n\
                period = \"60s\"";
    let tree = tree.configured(&config(text)).await.unwrap().start().await.unwrap();
    let rooms = tree.supervisor("rooms").await.unwrap();
    let room = rooms.start_child(DynamicSupervisor::builder("room")).await.unwrap();
    assert_eq!(rooms.child_spec(room.name()).await.unwrap().shutdown, Shutdown::Infinity);
    tokio::time::sleep(secs(60)).await;
    settle().await;
    assert_eq!(state(&rooms, room.name()).await, (Lifecycle::Active, 1));
}

#[tokio::test(start_paused = true)]
async fn values_of_a_supervisor_to_come_can_be_removed() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(DynamicSupervisor::builder("rooms"))).await;
    let rooms = tree.supervisor("rooms").await.unwrap();
    apply(&tree, "[\"rooms/room\"]\nstrategy = \"one_for_all\"").await;
    apply(&tree, "").await;
    let room = Supervisor::builder("room").child(fakes.child("a").backoff(Backoff::none()));
    let name = rooms.start_child(room.child(fakes.child("b"))).await.unwrap().name().to_owned();
    fakes.end("a", End::Error).await;
    settle().await;
    let room = rooms.supervisor(&name).await.unwrap();
    assert_eq!(state(&room, "b").await, (Lifecycle::Active, 1), "one_for_one");
}

#[tokio::test(start_paused = true)]
async fn what_a_file_writes_and_the_code_has_is_no_change() {
    let tree = start(app().child(worker("a", idle))).await;
    let text = "[a]\nenabled = true\nshutdown = \"5s\"";
    assert_eq!(apply(&tree, text).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_shared_section_restarts_the_children_that_restart_on_a_change() {
    let config = ChildConfig::<Server>::new().section("storage").restart_on_change();
    let tree = start(app().child(worker("a", idle).config(config))).await;
    let changes = apply(&tree, "[storage.config]\nport = 1").await;
    assert_eq!(changes, ["~ app/storage  config.port  (code) → 1  needs a restart  app.toml:2"]);
    let error = refused(&tree, "[storage.config]\nport = 1\n[a.config]\nport = 2").await;
    let expected =
        "app.toml:3:4: the child takes its configuration from [storage.config]; write it there";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn values_of_a_supervisor_and_of_its_children_are_checked_together() {
    let tree = start(app().child(worker("a", idle))).await;
    let endless =
        "[a.restart]\nbackoff = { curve = \"constant\", delay = \"1s\", reset_after = \"0s\" }";
    let error = refused(&tree, &format!("[app]\nunlimited_restarts = true\n{endless}")).await;
    assert!(error.contains("`app/a`"), "{error}");
    apply(&tree, endless).await;
}

#[tokio::test(start_paused = true)]
async fn clearing_a_policy_needs_a_child() {
    let tree = start(app().child(worker("a", idle))).await;
    tree.clear_policy("a").await.unwrap();
    let error = tree.clear_policy("nope").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no `app/nope`");
}

#[tokio::test(start_paused = true)]
async fn a_path_with_a_pattern_or_a_serial_number_is_refused() {
    let tree = start(app().child(DynamicSupervisor::builder("jobs"))).await;
    for path in ["jobs/job#1", "jobs/jo*", "jobs/**", "**", "*/x", "job*/x"] {
        let error = refused(&tree, &format!("[\"{path}\"]\nshutdown = \"9s\"")).await;
        assert!(error.starts_with(&format!("app.toml:1:2: the path `{path}` has ")), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_below_a_misspelt_supervisor_is_answered_with_the_supervisor() {
    let group = |name| Supervisor::builder(name).child(worker("writer", idle));
    let tree = start(app().child(worker("watcher", idle)).child(group("storage"))).await;
    let error = refused(&tree, "[\"storge/wirter\"]\nshutdown = \"9s\"").await;
    let expected =
        "app.toml:1:2: there is no `app/storge/wirter`; the nearest paths are `app/storage`";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_plan_is_carried_out_on_the_runtime_of_its_tree() {
    let own = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let own = own.unwrap();
    let (checks, mut checked) = tokio::sync::mpsc::unbounded_channel();
    let (go, going) = tokio::sync::watch::channel(false);
    let check = ChildConfig::<Server>::new().validate(move |_| {
        let (checks, mut going) = (checks.clone(), going.clone());
        async move {
            checks.send(()).unwrap();
            going.wait_for(|going| *going).await.map(drop)
        }
    });
    let tree = own.block_on(start(app().child(worker("a", idle).config(check))));
    let text = "[a]\nshutdown = \"9s\"\nconfig = { port = 7 }";
    let caller = tree.clone();
    other.block_on(async {
        drop(tokio::spawn(async move { apply(&caller, text).await }));
        checked.recv().await.unwrap();
    });
    // The runtime of the caller ends in the middle of the plan.
    drop(other);
    go.send(true).unwrap();
    own.block_on(async {
        // It waits for the plan before.
        assert_eq!(apply(&tree, text).await, [""; 0]);
        assert_eq!(tree.child_spec("a").await.unwrap().shutdown, secs(9).into());
        tree.stop("done").await.unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn a_path_without_its_supervisor_is_answered_with_the_whole_one() {
    let group = Supervisor::builder("storage").child(worker("writer", idle));
    let tree = start(app().child(worker("watcher", idle)).child(group)).await;
    let error = refused(&tree, "[writer]\nshutdown = \"9s\"").await;
    let expected =
        "app.toml:1:2: there is no `app/writer`; the nearest paths are `app/storage/writer`";
    assert!(error.starts_with(expected), "{error}");
    let error = refused(&tree, "[storage\nmax_restarts = 5").await;
    assert!(!error.contains("there is no"), "a consequence of the syntax: {error}");
}

#[tokio::test(start_paused = true)]
async fn new_code_changes_what_a_child_requires() {
    let fakes = FakeChildren::new();
    let tree = |requires: &str| {
        let tree = app().child(fakes.child("db")).child(fakes.child("cache"));
        let user = fakes.child("user");
        tree.child(if requires.is_empty() { user } else { user.requires(requires) })
    };
    let running = start(tree("db")).await;
    running.stop_child("db").await.unwrap();
    running.stop_child("user").await.unwrap();
    let _ = running.otp().restart_child("user").await;
    assert_eq!(state(&running, "user").await.0, Lifecycle::Discovered);
    upgrade(&running, tree("cache"), "").await.unwrap();
    settle().await;
    assert_eq!(state(&running, "user").await.0, Lifecycle::Active);
    running.stop_child("cache").await.unwrap();
    running.stop_child("user").await.unwrap();
    upgrade(&running, tree(""), "").await.unwrap();
    running.otp().restart_child("user").await.unwrap();
    assert_eq!(state(&running, "user").await.0, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn a_section_of_a_child_that_new_code_removes_is_a_mistake() {
    let text = "[b]\nshutdown = \"9s\"";
    for before in ["", text] {
        let old = app().child(worker("a", idle)).child(worker("b", idle)).build().unwrap();
        let tree = old.configured(&config(before)).await.unwrap().start().await.unwrap();
        let error = upgrade(&tree, app().child(worker("a", idle)), text).await.unwrap_err();
        assert!(error.to_string().starts_with("app.toml:1:2: there is no `app/b`"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_runs_goes_on_under_new_code() {
    let fakes = FakeChildren::new();
    let tree = || {
        let a = fakes.child("a").backoff(Backoff::none()).consecutive_restarts(0);
        app().child(a.fallback(fakes.child("f").backoff(Backoff::none())))
    };
    let running = start(tree()).await;
    fakes.end("a", End::Error).await;
    settle().await;
    upgrade(&running, tree(), "").await.unwrap();
    fakes.log();
    fakes.end("f", End::Error).await;
    settle().await;
    assert!(fakes.log().contains(&"start f".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_is_taken_out_and_brought_back() {
    let fakes = FakeChildren::new();
    let a = fakes.child("a").backoff(Backoff::none()).consecutive_restarts(0);
    let tree = start(app().child(a.fallback(fakes.child("f")))).await;
    fakes.end("a", End::Error).await;
    settle().await;
    apply(&tree, "[a]\nenabled = false").await;
    assert_eq!(state(&tree, "a").await.0, Lifecycle::Discovered);
    apply(&tree, "").await;
    assert_eq!(state(&tree, "a").await.0, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn a_forced_plan_says_what_it_sends_and_ends() {
    let child = worker("a", idle).config(ChildConfig::<Server>::new().restart_on_change());
    let tree = start(app().child(child).child(typed("b"))).await;
    tree.set_policy("b", RestartPolicy::new().consecutive_restarts(2)).await.unwrap();
    let plan = tree.plan(&Config::new()).await.unwrap().forced();
    let applied = tree.apply(plan).await.unwrap();
    let changes: Vec<_> = applied.changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            "~ app/a  config  needs a restart",
            "~ app/b  config  live",
            "~ app/b  restart  (call) → (code)  at the next failure",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn new_defaults_and_requirements_are_changes_of_the_children() {
    let old = || app().child(worker("a", idle)).child(worker("b", idle));
    let tree = start(old()).await;
    let new = app()
        .defaults(|child| child.shutdown(secs(99)))
        .child(worker("a", idle))
        .child(worker("b", idle).requires("a"));
    let plan = tree.plan_tree(&new.build().unwrap(), &Config::new()).await.unwrap();
    assert_eq!(
        plan.to_string(),
        r#"~ app/a  shutdown  "5s" → "1m 39s"  live
~ app/b  requires  none → a  at the next failure
~ app/b  shutdown  "5s" → "1m 39s"  live"#
    );
}

#[tokio::test(start_paused = true)]
async fn new_code_keeps_a_child_that_a_call_has_added_and_says_nothing_of_it() {
    let tree = start(app().child(worker("a", idle))).await;
    tree.start_child(worker("x", idle)).await.unwrap();
    let new = app().child(worker("a", idle)).child(worker("x", idle)).build().unwrap();
    let plan = tree.plan_tree(&new, &Config::new()).await.unwrap();
    assert!(plan.is_empty(), "{plan}");
    tree.apply(plan).await.unwrap();
    assert_eq!(state(&tree, "x").await, (Lifecycle::Active, 1));
}

#[tokio::test(start_paused = true)]
async fn new_code_can_take_a_configuration_from_a_different_section() {
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let child = |config: ChildConfig<Server>| {
        let sender = sender.clone();
        let run = move |ctx: Context| {
            let sender = sender.clone();
            async move {
                let mut config = ctx.config::<Server>()?;
                loop {
                    sender.send(config.get().port).unwrap();
                    tokio::select! {
                        () = config.changed() => {}
                        () = ctx.cancelled() => return Exit::Ok(()),
                    }
                }
            }
        };
        worker("a", run).config(config)
    };
    let own = app().child(child(ChildConfig::new())).build().unwrap();
    let tree =
        own.configured(&config("[a.config]\nport = 1")).await.unwrap().start().await.unwrap();
    assert_eq!(seen.recv().await, Some(1));
    let shared = app().child(child(ChildConfig::new().section("storage")));
    upgrade(&tree, shared, "[storage.config]\nport = 2").await.unwrap();
    assert_eq!(seen.recv().await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn the_status_tells_where_a_configuration_comes_from() {
    let shared = worker("b", idle).config(ChildConfig::<Server>::new().section("storage"));
    let tree = start(app().child(typed("a")).child(shared)).await;
    let place = async |name| {
        let child = tree.which_child(name).await.unwrap();
        child.configured.get("config").map(ToString::to_string)
    };
    assert_eq!(place("a").await, None);
    apply(&tree, "[a.config]\nport = 1\n\n[storage.config]\nport = 2").await;
    assert_eq!(place("a").await.as_deref(), Some("app.toml:1"));
    assert_eq!(place("b").await.as_deref(), Some("app.toml:4"));
    tree.set_config("a", Server { port: 3 }).await.unwrap();
    assert_eq!(place("a").await.as_deref(), Some("call"));
    apply(&tree, "\n[common.config]\nport = 9").await;
    assert_eq!(place("a").await.as_deref(), Some("app.toml:2"));
    let text = tree.status().await.unwrap().to_string();
    assert!(text.contains("config: config app.toml:2"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_file_reaches_children_below_a_worker_by_its_common_section_only() {
    let owner = worker("owner", async |ctx: Context| -> Exit {
        let inner = Supervisor::builder("inner").child(worker("x", idle));
        ctx.children_with(Supervisor::builder("own").child(worker("a", idle)).child(inner))?;
        ctx.cancelled().await;
        Ok(())
    });
    let tree = start(app().child(owner)).await;
    tree.child("owner/inner/x").await.unwrap();
    for path in ["owner/a", "owner/inner", "owner/inner/x"] {
        let text = format!("[\"{path}\"]\nenabled = false");
        let error = try_apply(&tree, &text).await.unwrap_err();
        assert!(error.starts_with(&format!("app.toml:1:2: there is no `app/{path}`")), "{error}");
    }
    apply(&tree, "[common]\nshutdown = \"7s\"").await;
    for path in ["owner/a", "owner/inner/x"] {
        let spec = tree.child_spec(path).await.unwrap();
        assert_eq!(spec.shutdown, Shutdown::Timeout(secs(7)), "{path}");
    }
    tree.stop("enough").await.unwrap();
}
