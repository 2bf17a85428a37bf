//! The live view as a verger tree: each thing that may fail or be slow is a child.
//!
//! ```text
//! verger-top     one_for_one   ends with the screen
//! ├─ stream      receives changes; a lost connection is an error, and its restart is the next attempt
//! ├─ snapshots   reads the whole tree when the screen asks for it
//! ├─ panel       reads what the panel shows
//! ├─ actions     sends actions
//! ├─ keys        reads the keyboard
//! └─ screen      significant: holds the state and draws it
//! ```
//!
//! All of them send to the mailbox of the screen, and the screen sends to theirs. So the screen never waits for the
//! server: a slow answer keeps one child busy, and the keys still work.
//!
//! # Invariants
//!
//! 1. The screen waits for its mailbox and for time only.
//! 2. A mailbox of a child that asks the server is never waited for: what doesn't fit is asked again later.

use std::future::poll_fn;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_core::Stream as _;
use verger::mailbox::{Address, Inbox};
use verger::policy::AutoShutdown;
use verger::{
    Application, Backoff, ChildSpec, Context, Exit, RestartType, Supervisor, SupervisorBuilder,
    mailbox, mailbox_with_capacity, worker, worker_with_mailbox,
};

use crate::app::{Answer, App, Effect, Message, Query, Tab};
use crate::client::{Client, ClientError, encode};
use crate::commands::{body, complain};
use crate::terminal::Screen;
use crate::view;

/// How often the screen is drawn if nothing happens, for the times on it.
const TICK: Duration = Duration::from_millis(250);
/// How many requests a child keeps. The screen sends one at a time, except for actions.
const REQUESTS: usize = 8;

/// Shows the live view until the user quits, and returns the exit code.
///
/// `by`: who acts.
pub(crate) async fn run(client: Client, by: Option<String>) -> ExitCode {
    // Panics of children are not written across the screen: that of the screen is in the error below.
    let program = Application::new(tree(client, by)).panic_hook();
    match program.run_to_end().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error}"));
            ExitCode::FAILURE
        }
    }
}

fn tree(client: Client, by: Option<String>) -> SupervisorBuilder {
    let has_token = client.endpoint().token.is_some();
    let (screen, screen_mailbox) = mailbox::<Message>();
    // Each incarnation gets clones, because the previous one has dropped its own.
    let sender = screen.clone();
    let server = |name| {
        let (address, mailbox) = mailbox_with_capacity::<Query>(REQUESTS);
        let (client, screen) = (client.clone(), screen.clone());
        let spec = worker_with_mailbox(name, mailbox, move |ctx, inbox| {
            serve(ctx, inbox, client.clone(), screen.clone())
        });
        (spec, address)
    };
    let (snapshot_reader, snapshots) = server("snapshots");
    let (panel_reader, panel) = server("panel");
    let (actor, actions) = server("actions");
    let keys = worker("keys", move |ctx| keys(ctx, sender.clone()));
    let stream = worker("stream", move |ctx| stream(ctx, client.clone(), screen.clone()));
    let children = Children { snapshots, panel, actions };
    let shown: ChildSpec = worker_with_mailbox("screen", screen_mailbox, move |ctx, inbox| {
        show(ctx, inbox, children.clone(), has_token, by.clone())
    });

    Supervisor::builder("verger-top")
        // The server may be unreachable for any length of time.
        .unlimited_restarts()
        .auto_shutdown(AutoShutdown::AnySignificant)
        .child(
            stream
                .backoff(Backoff::exponential(Duration::from_millis(250), Duration::from_secs(5))),
        )
        .child(snapshot_reader)
        .child(panel_reader)
        .child(actor)
        .child(keys)
        // The program ends when the screen returns, and at its first failure.
        .child(
            shown
                .restart(RestartType::Transient)
                .significant()
                .own_restarts(0, Duration::from_secs(1)),
        )
}

/// Receives changes. Every failure is an error, after which the supervisor starts it again.
async fn stream(ctx: Context, client: Client, screen: Address<Message>) -> Exit {
    let received = ctx.run_until_cancelled(receive(&ctx, &client, &screen)).await;
    if let Some(Err(error)) = received {
        _ = screen.send(Message::Lost(error.to_string())).await;
        return Err(error.into());
    }
    Ok(())
}

async fn receive(
    ctx: &Context,
    client: &Client,
    screen: &Address<Message>,
) -> Result<(), ClientError> {
    let mut changes = client.stream().await?;
    let info = client.get("/api/info").await?;
    let mut sent = screen.send(Message::Connected(info)).await;
    while sent.is_ok() {
        let change = changes.next().await?;
        // The connection works, so the backoff begins again.
        ctx.report_healthy();
        sent = screen.send(Message::Change(Box::new(change))).await;
    }
    Ok(())
}

/// Does what the screen asks for, one request after the other.
async fn serve(
    ctx: Context,
    mut inbox: Inbox<Query>,
    client: Client,
    screen: Address<Message>,
) -> Exit {
    while let Some(query) = inbox.recv().await {
        let Some(answer) = ctx.run_until_cancelled(answer(&client, &query)).await else { break };
        _ = screen.send(Message::Answer(query, answer.map_err(|error| error.to_string()))).await;
    }
    Ok(())
}

async fn answer(client: &Client, query: &Query) -> Result<Answer, ClientError> {
    let (tab, path) = match query {
        Query::Snapshot => return client.get("/api/status").await.map(Answer::Snapshot),
        Query::Act(act) => {
            return client.post("/api/action", &body(act)).await.map(Answer::Acted);
        }
        Query::LogBelow(path) => {
            let target = format!("/api/log?under={}", encode(path));
            return client.get(&target).await.map(Answer::LogBelow);
        }
        Query::Panel(tab, path) => (tab, encode(path)),
    };
    match tab {
        Tab::Incidents => client.get("/api/incidents").await.map(Answer::Incidents),
        Tab::Describe => client.get(&format!("/api/child?path={path}")).await.map(Answer::Child),
        Tab::Events => client.get(&format!("/api/events?under={path}")).await.map(Answer::Events),
        Tab::Log => client.get(&format!("/api/log?path={path}")).await.map(Answer::Log),
        Tab::Letters => client.get("/api/dead-letters").await.map(Answer::Letters),
        Tab::Plan => client.plan().await.map(Answer::Plan),
    }
}

/// Reads the keyboard.
async fn keys(ctx: Context, screen: Address<Message>) -> Exit {
    let mut events = EventStream::new();
    let mut next = async || poll_fn(|cx| Pin::new(&mut events).poll_next(cx)).await;
    while let Some(event) = ctx.run_until_cancelled(next()).await {
        let message = match event.ok_or("the terminal is closed")?? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Message::Key(key),
            Event::Resize(..) => Message::Resized,
            _ => continue,
        };
        if screen.send(message).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The children that the screen sends to.
#[derive(Clone)]
struct Children {
    snapshots: Address<Query>,
    panel: Address<Query>,
    actions: Address<Query>,
}

/// Holds the state and draws it, until the user quits or the program is stopped.
async fn show(
    ctx: Context,
    mut inbox: Inbox<Message>,
    children: Children,
    has_token: bool,
    by: Option<String>,
) -> Exit {
    let color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut screen = Screen::open()?;
    let mut app = App::new(Instant::now(), has_token, by, color);
    loop {
        for effect in app.on_time(Instant::now()) {
            match effect {
                Effect::Quit => return Ok(()),
                Effect::Ask(query @ Query::Snapshot) => _ = children.snapshots.try_send(query),
                Effect::Ask(query @ (Query::Panel(..) | Query::LogBelow(_))) => {
                    _ = children.panel.try_send(query)
                }
                Effect::Ask(query @ Query::Act(_)) => {
                    if children.actions.try_send(query.clone()).is_err() {
                        let busy = "too many actions are under way; wait for their results";
                        app.on_message(Message::Answer(query, Err(busy.into())), Instant::now());
                    }
                }
            }
        }
        screen.draw(|frame| view::draw(&mut app, frame))?;
        tokio::select! {
            () = ctx.cancelled() => return Ok(()),
            () = tokio::time::sleep(TICK) => {}
            message = inbox.recv() => {
                let Some(message) = message else { return Ok(()) };
                app.on_message(message, Instant::now());
                // Everything that has arrived is drawn once.
                while let Some(message) = inbox.try_recv() {
                    app.on_message(message, Instant::now());
                }
            }
        }
    }
}
