//! Whether a tree is ready, what keeps it from that, and the probes that say so.

use std::time::Duration;

use tokio::time::sleep;
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, HealthCheck, Readiness, RestartType,
    Supervisor, SupervisorBuilder, SupervisorHandle, worker,
};

use crate::common::settle;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

fn failing(name: &str) -> ChildSpec {
    worker(name, async |_| Err("no route")).backoff(Backoff::constant(secs(30)))
}

async fn start(tree: SupervisorBuilder) -> SupervisorHandle {
    let tree = tree.build().unwrap().start().await.unwrap();
    settle().await;
    tree
}

/// Returns whether the tree is ready, and its problems.
async fn seen(tree: &SupervisorHandle) -> (bool, Vec<String>) {
    let status = tree.status().await.unwrap();
    (status.is_ready(), status.problems().iter().map(ToString::to_string).collect())
}

#[tokio::test(start_paused = true)]
async fn a_tree_is_ready_while_every_essential_child_does_what_is_expected_of_it() {
    let tree = Supervisor::builder("app")
        .child(idle("a"))
        .child(worker("done", async |_| ()).restart(RestartType::Transient))
        .child(worker("declined", async |_| Err(verger::ExitError::ignore())))
        .child(failing("extra").essential(false));
    let tree = start(tree).await;
    let extra = "app/extra: restarting, attempt 1 in 30.0s, last: failed: no route (not essential)";
    assert_eq!(seen(&tree).await, (true, vec![extra.to_owned()]));

    tree.stop_child("a").await.unwrap();
    let (ready, problems) = seen(&tree).await;
    assert!(!ready);
    assert_eq!(problems, ["app/a: stopped manually", extra]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_is_not_ready_until_it_is_active_again() {
    let tree = start(Supervisor::builder("app").child(failing("db"))).await;
    let problem = "app/db: restarting, attempt 1 in 30.0s, last: failed: no route";
    assert_eq!(seen(&tree).await, (false, vec![problem.to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_child_is_not_ready() {
    let check = HealthCheck::new(async |_| Err("no answer")).failures(1);
    let tree = start(Supervisor::builder("app").child(idle("db").health_check(check))).await;
    assert_eq!(seen(&tree).await, (true, vec![]));
    sleep(secs(11)).await;
    assert_eq!(seen(&tree).await, (false, vec!["app/db: active, unhealthy: no answer".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn the_children_of_a_dynamic_supervisor_and_what_is_below_an_inessential_one_do_not_count() {
    let extra = Supervisor::builder("extra").child(failing("x")).into_child().essential(false);
    let conns = DynamicSupervisor::builder("conns");
    let tree = start(Supervisor::builder("app").child(extra).child(conns)).await;
    let conns = tree.supervisor("conns").await.unwrap();
    conns.start_child(failing("conn").readiness(Readiness::OnStart)).await.unwrap();
    settle().await;
    let (ready, problems) = seen(&tree).await;
    assert!(ready);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.ends_with("(not essential)")), "{problems:?}");

    conns.start_child(failing("one").essential(true)).await.unwrap();
    settle().await;
    assert!(!seen(&tree).await.0);
}

#[cfg(feature = "health")]
mod probes {
    use std::net::SocketAddr;
    use std::process::ExitCode;
    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use verger::Application;
    use verger::app::hook;

    use super::*;

    /// Returns the status code and the body.
    async fn get(address: SocketAddr, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, body.to_owned())
    }

    fn bound() -> (std::net::TcpListener, SocketAddr) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[tokio::test]
    async fn readiness_falls_first_and_the_listener_stops_last() {
        let (listener, address) = bound();
        let answers = Arc::new(Mutex::new(Vec::new()));
        let ask = |when: &'static str| {
            let answers = Arc::clone(&answers);
            hook(when, move |_| async move {
                for path in ["/livez", "/readyz"] {
                    let (code, body) = get(address, path).await;
                    answers.lock().unwrap().push(format!("{when}: {path} {code} {}", body.trim()));
                }
            })
        };
        // Asks for the stop once it has seen that the tree is ready.
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let asks = tokio::spawn(async move {
            while get(address, "/startupz").await.0 != 200 {}
            assert_eq!(get(address, "/readyz").await, (200, "ok\n".to_owned()));
            let (code, tree) = get(address, "/readyz?verbose").await;
            assert!(code == 200 && tree.starts_with("ok\napp ") && tree.contains("a  "), "{tree}");
            assert_eq!(get(address, "/livez").await.0, 200);
            assert_eq!(get(address, "/other").await.0, 404);
            stop.send(()).unwrap();
        });
        let app = Application::new(Supervisor::builder("app").child(idle("a")))
            .listen_to_signals(false)
            .exit_grace(Duration::MAX)
            .probes_on(listener)
            .stop_on(async { stopped.await.map(|()| "test").unwrap_or("failed") })
            .before_stop(ask("before"))
            .after_stop(ask("after"));
        assert_eq!(format!("{:?}", app.run().await), format!("{:?}", ExitCode::SUCCESS));
        asks.await.unwrap();
        assert_eq!(
            *answers.lock().unwrap(),
            [
                "before: /livez 200 ok",
                "before: /readyz 503 app: active, about to stop",
                "after: /livez 200 ok",
                "after: /readyz 503 `app` has ended",
            ]
        );
        let refused = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn an_address_that_is_in_use_is_exit_code_2() {
        let (_listener, address) = bound();
        let app = Application::new(Supervisor::builder("app").child(idle("a")));
        let app = app.exit_grace(Duration::MAX).probes(address.to_string());
        assert_eq!(format!("{:?}", app.run().await), format!("{:?}", ExitCode::from(2)));
    }

    #[tokio::test]
    async fn a_start_that_is_not_complete_and_a_child_that_is_not_ready_are_503() {
        let app = Supervisor::builder("app").child(idle("slow").readiness(Readiness::Signal));
        let (listener, address) = bound();
        let app = Application::new(app).listen_to_signals(false).exit_grace(Duration::MAX);
        let run = tokio::spawn(app.probes_on(listener).run());
        assert_eq!(get(address, "/startupz").await, (503, "app: not started\n".to_owned()));
        let (code, problems) = get(address, "/readyz").await;
        assert_eq!((code, &*problems), (503, "app: activating\napp/slow: activating\n"));
        run.abort();
    }
}
