//! elfo, *Supervision*: restart policies from a file that is reloaded while the program runs, and a termination in stages.
//!
//! The listings of the document. The file is `elfo.toml` beside this one, word for word; its numbers are in quotes.
//!
//! ```rust,ignore
//! use elfo::{RestartPolicy, RestartParams, ActorGroup};
//!
//! ActorGroup::new().restart_policy(RestartPolicy::always(RestartParams::new(...)))
//! ActorGroup::new().restart_policy(RestartPolicy::on_failure(RestartParams::new(...)))
//! ActorGroup::new().restart_policy(RestartPolicy::never())
//!
//! // Override the group policy with the actor's policy, which is applicable only for this lifecycle.
//! ctx.set_restart_policy(RestartPolicy::...);
//!
//! // Restore the group policy from the configuration (if specified), or use the default group policy.
//! ctx.set_restart_policy(None);
//!
//! ActorGroup::new().termination_policy(TerminationPolicy::closing())
//! ActorGroup::new().termination_policy(TerminationPolicy::manually())
//! ```
//!
//! Its delays are `min(min_backoff * pow(factor, power), max_backoff)`: "when factor is set to 2, min_backoff is set to 4,
//! and max_backoff is set to 36 […], this will result in the following sequence of delays: [4, 8, 16, 32, 36]". A group
//! that hasn't terminated after 30 s gets `Terminate::closing`; after another 15 s nothing waits for it any more.
//!
//! Without an argument, this runs what the document describes on a paused clock. With `run` it is a program to send signals
//! to: SIGHUP reloads what has changed in the file, SIGUSR2 all of it, SIGTERM ends it. Write a mistake into the file, or
//! `config = { limit = 13 }`, which the group refuses: nothing changes.
//!
//! ```text
//! cargo run --example documents_restart_policies --features config-file,mailbox
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;
use verger::app::StopStages;
use verger::config::{ChildConfig, Config};
use verger::mailbox::{Address, Closing, Inbox, Mailbox, Next};
use verger::policy::{Jitter, Preset, RestartPolicy};
use verger::{
    Application, Backoff, ChildSpec, Context, DynamicSupervisor, Exit, RestartType, Shutdown,
    Supervisor, SupervisorBuilder, mailbox, worker_with_mailbox,
};

#[path = "timeline.rs"]
mod timeline;

use timeline::Timeline;

const FILE: &str = include_str!("elfo.toml");

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The messages of an actor.
enum Do {
    Crash,
    Return,
    Work(Duration),
    /// `ctx.set_restart_policy(..)`.
    SetRestartPolicy(Option<Box<RestartPolicy>>),
}

/// The values of a group.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limit {
    limit: u32,
}

/// `RestartParams::new(min, max)`.
fn params(min: u64, max: u64) -> Backoff {
    let backoff = Backoff::exponential(secs(min), secs(max)).jitter(Jitter::None);
    backoff.reset_after(secs(min)).at_once_after_reset()
}

/// The actor of each group.
async fn exec(ctx: Context, mut inbox: Inbox<Do>, log: Timeline) -> Exit {
    let name = ctx.path().name().to_owned();
    let mut config = ctx.config::<Limit>()?;
    log.note(format_args!("{name} starts, limit {}", config.get().limit));
    loop {
        let next = tokio::select! {
            next = inbox.next() => next,
            () = config.changed() => {
                log.note(format_args!("{name}: UpdateConfig, limit {}", config.get().limit));
                continue;
            }
        };
        match next {
            Next::Message(Do::Crash) => {
                log.note(format_args!("{name} crashes"));
                return Err("crash".into());
            }
            Next::Message(Do::Return) => return Ok(()),
            Next::Message(Do::Work(time)) => {
                sleep(time).await;
                log.note(format_args!("{name} has worked"));
            }
            Next::Message(Do::SetRestartPolicy(policy)) => {
                ctx.set_restart_policy(policy.map(|it| *it))?
            }
            Next::Stopping => log.note(format_args!("{name}: Terminate")),
            _ => {
                log.note(format_args!("{name}: recv() is None"));
                return Ok(());
            }
        }
    }
}

fn group(name: &str, mailbox: Mailbox<Do>, log: &Timeline) -> ChildSpec {
    let log = log.clone();
    // Without the 50 ms before messages of earlier incarnations, which elfo doesn't have.
    let mailbox = mailbox.drain(verger::mailbox::Drain::AtStart);
    let config = ChildConfig::<Limit>::new().validate(async |new: Arc<Limit>| {
        if new.limit == 13 { Err("ValidateConfig: 13 is unlucky") } else { Ok(()) }
    });
    worker_with_mailbox(name, mailbox, move |ctx, inbox| exec(ctx, inbox, log.clone()))
        .config(config)
        .start_on_message()
}

/// The topology: two groups with the policy of the file, and one with its blueprint's.
struct Topology {
    tree: SupervisorBuilder,
    a: Address<Do>,
    b: Address<Do>,
    c: Address<Do>,
}

impl Topology {
    fn new(log: &Timeline) -> Self {
        let [(a, for_a), (b, for_b), (c, for_c)] = [mailbox(), mailbox(), mailbox()];
        let tree = Supervisor::builder("system")
            .preset(Preset::elfo())
            .child(group("group_a", for_a, log))
            .child(group("group_b", for_b, log))
            .child(
                group("group_c", for_c, log).restart(RestartType::Transient).backoff(params(4, 36)),
            );
        Self { tree, a, b, c }
    }
}

fn send(to: &Address<Do>, messages: impl IntoIterator<Item = Do>) {
    messages.into_iter().for_each(|message| assert!(to.try_send(message).is_ok(), "there is room"));
}

/// What follows a failure under each policy.
pub(crate) async fn restarts() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let Topology { tree, a, b, c } = Topology::new(&log);
    let tree = tree.build()?.configured(&Config::from_toml(FILE, "elfo.toml")).await?;
    let tree = tree.start().await?;

    // `Never`: nothing follows, and the next message starts another actor.
    send(&a, [Do::Crash]);
    sleep(secs(1)).await;
    send(&a, [Do::Return]);
    sleep(secs(1)).await;

    // `on_failure` of the blueprint: [4, 8, 16, 32, 36]; a clean end is final.
    send(&c, (0..6).map(|_| Do::Crash).chain([Do::Return]));
    sleep(secs(4 + 8 + 16 + 32 + 36 + 36 + 100)).await;
    let state = tree.which_child("group_c").await?;
    log.note(format_args!("group_c: {}", state.lifecycle));

    // `Always`: 5 s to 30 s; immediately after `auto_reset`; a policy for this lifecycle only.
    send(&b, (0..5).map(|_| Do::Crash));
    sleep(secs(5 + 10 + 20 + 30 + 30 + 5)).await;
    send(&b, [Do::Crash]);
    send(&b, [Do::Crash, Do::Return]);
    sleep(secs(30)).await;
    let never = Box::new(RestartPolicy::new().restart(RestartType::Temporary));
    send(&b, [Do::SetRestartPolicy(Some(never.clone())), Do::Crash]);
    sleep(secs(10)).await;
    send(&b, [Do::Work(secs(5)), Do::Crash]);
    sleep(secs(30)).await;
    send(&b, [Do::SetRestartPolicy(Some(never)), Do::SetRestartPolicy(None), Do::Crash]);
    sleep(secs(30)).await;
    tree.stop("the listing is over").await?;
    Ok(log.lines())
}

/// `max_retries = "20"`: after so many attempts, the actor isn't restarted.
pub(crate) async fn max_retries() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let Topology { tree, b, .. } = Topology::new(&Timeline::new());
    let tree = tree.build()?.configured(&Config::from_toml(FILE, "elfo.toml")).await?;
    let tree = tree.start().await?;
    send(&b, (0..30).map(|_| Do::Crash));
    let mut events = tree.events();
    while let Some(event) = events.next().await {
        if matches!(event.kind, verger::status::EventKind::GaveUp { .. }) {
            break;
        }
    }
    let b = tree.which_child("group_b").await?;
    log.note(format_args!("group_b: {} after {} starts", b.lifecycle, b.incarnation));
    tree.stop("the listing is over").await?;
    Ok(log.lines())
}

/// Reloads: accepted, unchanged, refused, wrong, and forced.
pub(crate) async fn reloads() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let Topology { tree, a, b, c } = Topology::new(&log);
    for group in [&a, &b, &c] {
        send(group, [Do::Work(Duration::ZERO)]);
    }
    let file = Arc::new(Mutex::new(FILE.to_owned()));
    let source = Arc::clone(&file);
    let read = move || {
        let text = source.lock().expect("the lock is never poisoned").clone();
        Config::from_toml(&text, "elfo.toml")
    };
    let app = Application::new(tree).config(read).listen_to_signals(false);
    let reloader = app.reloader();
    let (for_reloads, during) = (log.clone(), log.clone());
    let reload_all = async move {
        let log = for_reloads;
        sleep(secs(1)).await;
        let reload = async |text: &str| {
            *file.lock().expect("the lock is never poisoned") = format!("{FILE}{text}");
            match reloader.reload().await {
                Ok(applied) => log.note(format_args!("SIGHUP: {applied}")),
                Err(error) => log.note(format_args!("SIGHUP: {error}")),
            }
            sleep(secs(1)).await;
        };
        reload("config = { limit = 7 }\n").await;
        reload("config = { limit = 7 }\n").await;
        reload("config = { limit = 13 }\n").await;
        reload("system.restart_policy.when = \"Sometimes\"\n").await;
        reload("config = { limit = 7 }\nsystem.restart_policy.when = \"Never\"\n").await;
        match reloader.reload_forced().await {
            Ok(applied) => log.note(format_args!("SIGUSR2: {applied}")),
            Err(error) => log.note(format_args!("SIGUSR2: {error}")),
        }
        sleep(secs(1)).await;
        "the listing is over"
    };
    app.stop_on(reload_all).run_to_end().await?;
    Ok(during.lines())
}

/// Termination: a mailbox that closes immediately, one that its actor closes, and an actor that doesn't end.
pub(crate) async fn termination() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let [(a, for_a), (b, for_b), (c, for_c)] = [mailbox(), mailbox(), mailbox()];
    // All groups terminate at the same time, as the children of a dynamic supervisor do.
    let groups = [
        group("closing", for_a, &log),
        group("manually", for_b.closing(Closing::Manually), &log),
        group("stuck", for_c.closing(Closing::Manually), &log),
    ];
    let groups = groups.map(|group| group.shutdown(Shutdown::Infinity));
    let tree = DynamicSupervisor::builder("system").preset(Preset::elfo());
    let app = Application::new(tree).stages(StopStages::elfo()).listen_to_signals(false);
    let app = app.on_start(move |system| {
        drop(tokio::spawn(async move {
            for group in groups {
                let _ = system.start_child(group).await;
            }
        }));
    });
    let (messages, during) = (log.clone(), log.clone());
    let terminate = async move {
        sleep(secs(1)).await;
        // `closing` still reads the messages that it has. `stuck` works for an hour.
        send(&a, [Do::Work(secs(1)), Do::Work(secs(1))]);
        send(&b, [Do::Work(Duration::ZERO)]);
        send(&c, [Do::Work(secs(3_600))]);
        sleep(secs(1) / 2).await;
        messages.note("SIGTERM");
        "SIGTERM"
    };
    let ended = app.stop_on(terminate).run_to_end().await;
    log.note(ended.map_or_else(|error| error.to_string(), |()| "ended".to_owned()));
    Ok(during.lines())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn show() -> anyhow::Result<ExitCode> {
    println!("restarts\n{}\n", restarts().await?.join("\n"));
    println!("max_retries\n{}\n", max_retries().await?.join("\n"));
    println!("reloads\n{}\n", reloads().await?.join("\n"));
    println!("termination\n{}", termination().await?.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn main() -> anyhow::Result<ExitCode> {
    match std::env::args().nth(1).as_deref() {
        Some("run") => run(),
        _ => show(),
    }
}

/// The program: the groups, the file, the signals and the stages of the document.
#[tokio::main]
pub(crate) async fn run() -> anyhow::Result<ExitCode> {
    let file = std::env::var_os("CONFIG_FILE").unwrap_or("examples/documents/elfo.toml".into());
    let log = tracing_subscriber::fmt().with_env_filter("verger=info").with_ansi(false);
    log.with_writer(std::io::stdout).without_time().log_internal_errors(false).init();
    let Topology { tree, a, b, c } = Topology::new(&Timeline::new());
    for group in [&a, &b, &c] {
        send(group, [Do::Work(Duration::ZERO)]);
    }
    let id = std::process::id();
    println!("edit {file:?}; kill -HUP {id} reloads it, kill -USR2 {id} all of it, kill {id} ends");
    let app = Application::new(tree).config_file(file).stages(StopStages::elfo());
    Ok(app.stop_limit(secs(50)).run().await)
}
