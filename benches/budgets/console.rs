//! The console: the cost of a request, and the cost of an unused console for its tree.

use std::time::Instant;

use axum::Router;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use verger::console::Console;
use verger::{CancellationToken, SupervisorHandle};

use crate::crowd::{FAILURES, failing_children};
use crate::measure::{STARTS, Side, in_runtime, nanos, runtime};
use crate::messages::send_beside;
use crate::restart::{Failure, silence_panics};
use crate::start::tree;

const MESSAGES: u64 = 500_000;
const CHILDREN: u64 = 10_000;

/// The console of a tree, if `n` isn't 0.
fn console(n: u64, tree: &SupervisorHandle) -> Option<Router> {
    (n > 0).then(|| Console::new().router(tree))
}

/// From a request to the end of its answer.
pub(crate) fn look(_side: Side, n: u64) -> f64 {
    let took = in_runtime(async {
        let tree = tree(n).start().await.expect("it starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Console::new().router(&tree);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let began = Instant::now();
        let mut connection = TcpStream::connect(address).await.expect("it listens");
        let request = "GET /api/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        connection.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await.expect("it answers");
        let took = began.elapsed();
        let last = format!("\"app/child-{}\"", n - 1);
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "an answer");
        assert!(answer.windows(last.len()).any(|it| it == last.as_bytes()), "all children");
        took
    });
    nanos(took, 1)
}

/// Messages to a child, as in the row `message`, beside a console if `n` isn't 0.
pub(crate) fn work(_side: Side, n: u64) -> f64 {
    let took = runtime().block_on(send_beside(MESSAGES, |tree| console(n, tree)));
    MESSAGES as f64 / took.as_secs_f64()
}

/// Restarts, as in the row `restarts-error`, beside a console if `n` isn't 0.
pub(crate) fn storm(_side: Side, n: u64) -> f64 {
    silence_panics();
    let restarts = CHILDREN * u64::from(FAILURES);
    runtime().block_on(async {
        let go = CancellationToken::new();
        let tree = failing_children(CHILDREN, Failure::Error, go.clone());
        let started = STARTS.expect(CHILDREN);
        let tree = tree.start().await.expect("it starts");
        started.await.expect("they start");
        let _console = console(n, &tree);
        let all = STARTS.expect(restarts);
        let began = Instant::now();
        go.cancel();
        let took = all.await.expect("they restart") - began;
        restarts as f64 / took.as_secs_f64()
    })
}
