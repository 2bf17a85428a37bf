//! The console of an application, on a socket of its own.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use verger::app::hook;
use verger::console::Console;
use verger::{Application, Context, Exit, RunError, SupervisorHandle, worker};

use crate::client::{Server, get};
use crate::{app, console, idle, secs};

/// An application that runs, with its console.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) tree: SupervisorHandle,
    end: JoinHandle<Result<(), RunError>>,
}

impl Running {
    pub(crate) async fn start(app: Application, console: Console) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::Socket(listener.local_addr().unwrap());
        let (started, tree) = oneshot::channel();
        let app = app.listen_to_signals(false).on_start(|tree| drop(started.send(tree)));
        let end = tokio::spawn(app.console_on(listener, console).run_to_end());
        let tree = tree.await.expect("it starts");
        assert!(tree.until_started().await);
        Self { server, tree, end }
    }

    pub(crate) async fn stop(self) {
        self.tree.stop("the test is over").await.unwrap();
        self.end.await.unwrap().unwrap();
    }
}

fn address(server: &Server) -> SocketAddr {
    match server {
        Server::Socket(address) => *address,
        Server::Memory(_) => unreachable!("an application has a socket"),
    }
}

#[tokio::test]
async fn a_listener_of_its_own_answers_all_paths() {
    let running = Running::start(Application::new(app()), Console::new()).await;
    for path in ["/api", "/api/nothing", "/../etc/passwd"] {
        let answer = running.server.get(path).await;
        assert_eq!(answer.problem(), (404, "not_found".to_owned()), "{path}");
        assert!(answer.headers.contains("cache-control: no-store"), "{answer:?}");
        let foreign = running.server.send(get(path).header("host", "evil.example")).await;
        assert_eq!(foreign.problem(), (403, "foreign_host".to_owned()), "{path}");
    }
    running.stop().await;
}

#[tokio::test]
async fn an_open_stream_does_not_delay_the_stop_of_an_application() {
    let tree = app().child(worker("db", idle));
    let running = Running::start(Application::new(tree), Console::new()).await;
    let mut stream = running.server.stream().await;
    let address = address(&running.server);
    let began = Instant::now();
    running.stop().await;
    assert!(began.elapsed() < secs(2), "{:?}", began.elapsed());
    while stream.next().await.is_some() {}
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn an_open_stream_does_not_delay_the_graceful_shutdown_of_a_server_of_the_users() {
    let tree = crate::start(app().child(worker("db", idle))).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::Socket(listener.local_addr().unwrap());
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let serve = axum::serve(listener, Console::new().router(&tree))
        .with_graceful_shutdown(async move { stopped.notified().await });
    let serve = tokio::spawn(async move { serve.await });
    let mut stream = server.stream().await;
    let began = Instant::now();
    stop.notify_one();
    tree.stop("the test is over").await.unwrap();
    serve.await.unwrap().unwrap();
    assert!(began.elapsed() < secs(2), "{:?}", began.elapsed());
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn a_console_is_served_during_the_stop_and_until_the_hooks_after_it_have_run() {
    let (entered, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (entered, go_on) = (Arc::clone(&entered), Arc::clone(&go_on));
        worker("slow", move |ctx: Context| {
            let (entered, go_on) = (Arc::clone(&entered), Arc::clone(&go_on));
            async move {
                ctx.cancelled().await;
                entered.notify_one();
                go_on.notified().await;
            }
        })
    };
    let (hooked, hook_ends) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let after = {
        let (hooked, hook_ends) = (Arc::clone(&hooked), Arc::clone(&hook_ends));
        hook("after", async move |_cause| {
            hooked.notify_one();
            hook_ends.notified().await;
        })
    };
    let app = Application::new(app().child(slow)).after_stop(after);
    let running = Running::start(app, Console::new()).await;
    let mut stream = running.server.stream().await;
    let tree = running.tree.clone();
    let stop = tokio::spawn(async move { tree.stop("a test").await });
    entered.notified().await;
    let status = running.server.get("/api/status").await.json();
    assert_eq!(status["root"]["lifecycle"], "deactivating");
    assert!(stream.next().await.is_some(), "an operator can watch the stop");
    go_on.notify_one();
    stop.await.unwrap().unwrap();
    hooked.notified().await;
    assert_eq!(running.server.get("/api/info").await.status, 200);
    hook_ends.notify_one();
    running.end.await.unwrap().unwrap();
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn a_stop_in_the_console_goes_through_the_stages_of_the_application() {
    let (cause, told) = oneshot::channel();
    let before = hook("before", async move |given: Arc<str>| drop(cause.send(given)));
    let app = Application::new(app().child(worker("db", idle))).before_stop(before);
    let running = Running::start(app, console()).await;
    let order = json!({ "action": "stop_tree", "confirm": "app", "reason": "maintenance" });
    assert_eq!(running.server.act(order).await, (200, "stopped app".to_owned()));
    assert_eq!(&*told.await.unwrap(), "operator: maintenance");
    running.end.await.unwrap().unwrap();
}

#[tokio::test]
async fn events_from_before_the_end_of_the_start_are_shown() {
    let tree = app().child(worker("db", idle));
    let running = Running::start(Application::new(tree), Console::new()).await;
    let events = running.server.get("/api/events").await.json();
    assert_eq!(events["missed"], 0);
    let first = &events["entries"][0];
    assert_eq!((&first["path"], &first["text"]), (&json!("app/db"), &json!("active")), "{events}");
    assert_eq!(
        (&first["incarnation"], &first["seq"]),
        (&json!(1), &json!(3)),
        "the third event of all"
    );
    running.stop().await;
}

#[tokio::test]
async fn an_address_in_use_or_beyond_this_machine_is_an_error_before_anything_starts() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let never = || worker("db", async |_: Context| -> Exit { unreachable!("it doesn't start") });
    let run = async |address: &str, console| {
        let app = Application::new(app().child(never())).listen_to_signals(false);
        app.console(address, console).run_to_end().await.unwrap_err()
    };
    let error = run(&address, Console::new()).await;
    assert_eq!(error.exit_code(), 2);
    let text = error.to_string();
    assert!(text.starts_with(&format!("the console can't listen on {address}: ")), "{text}");

    let error = run("0.0.0.0:0", Console::new()).await;
    assert_eq!(error.exit_code(), 2);
    let text = error.to_string();
    assert!(
        text.ends_with("other machines can reach it; use 127.0.0.1, or `allow_remote(true)`"),
        "{text}"
    );

    let named = |header: &str| Console::new().allow_remote(true).identity_header(header);
    for (address, header, end) in [
        (
            "0.0.0.0:0",
            "X-User",
            "could send any `X-User`; with `identity_header`, listen on 127.0.0.1 behind the proxy",
        ),
        ("127.0.0.1:0", "X User", "`X User` isn't the name of a header; write `X-Forwarded-User`"),
    ] {
        let error = run(address, named(header)).await;
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().ends_with(end), "{error}");
    }
}

#[tokio::test]
async fn the_address_that_a_console_listens_on_is_an_allowed_host() {
    let tree = app().child(worker("db", idle));
    let running = Running::start(Application::new(tree), Console::new()).await;
    let host = address(&running.server).to_string();
    assert_eq!(running.server.send(get("/api/info").header("host", &host)).await.status, 200);
    let foreign = get("/api/info").header("host", "evil.example");
    assert_eq!(running.server.send(foreign).await.status, 403);
    running.stop().await;
}

#[tokio::test]
async fn two_hundred_pages_and_clients_that_send_nothing_leave_the_tree_and_the_console_alone() {
    let tree = app().child(worker("db", idle));
    let running = Running::start(Application::new(tree), console()).await;
    let server = &running.server;
    let mut silent = Vec::new();
    for _ in 0..25 {
        let mut connection = server.connect().await;
        connection.write_all(b"GET /api/sta").await.unwrap();
        silent.push(connection);
    }
    let (mut streams, mut refused) = (Vec::new(), 0);
    for _ in 0..200 {
        let stream = server.stream().await;
        match stream.status {
            200 => streams.push(stream),
            503 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((streams.len(), refused), (64, 136));
    assert_eq!(server.act(json!({ "action": "restart", "path": "app/db" })).await.0, 200);
    for stream in &mut streams {
        loop {
            let message = stream.next().await.unwrap();
            if message["children"][0]["incarnation"] == 2 {
                break;
            }
        }
    }
    assert_eq!(running.tree.which_child("db").await.unwrap().incarnation, 2);
    let began = Instant::now();
    running.stop().await;
    assert!(began.elapsed() < secs(3), "half a request holds nothing up: {:?}", began.elapsed());
    let mut rest = Vec::new();
    let _ = silent[0].read_to_end(&mut rest).await;
    assert_eq!(rest, b"", "it is closed without an answer");
}

#[tokio::test]
async fn a_body_that_is_too_large_ends_only_its_own_connection() {
    let tree = app().child(worker("db", idle));
    let running = Running::start(Application::new(tree), console()).await;
    let mut connection = running.server.connect().await;
    let head =
        b"POST /api/action HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10000000000\r\n\r\n";
    connection.write_all(head).await.unwrap();
    let mut sent = 0;
    while connection.write_all(&[b' '; 64 * 1024]).await.is_ok() && sent < 1_000 {
        sent += 1;
    }
    assert!(sent < 1_000, "it isn't read for ever");
    assert_eq!(running.server.get("/api/info").await.status, 200);
    running.stop().await;
}
