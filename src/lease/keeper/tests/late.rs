//! A supervisor that sees two reports of a keeper at once, because it was late.

use super::*;
use crate::status::EventKind;
use crate::{Context, Supervisor, worker};

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_lost_before_the_supervisor_sees_it_starts_no_child() {
    let (leases, suspended) = (MemoryLeases::new(), Arc::new(Mutex::new(Duration::ZERO)));
    let mut lease = lease(leases.clone());
    lease.suspended = SuspendedTime::Given(Arc::clone(&suspended));
    // The machine is suspended after the first grant, before the task of the supervisor is polled.
    let lease = lease.watch(Arc::new(move |change| {
        if *change == granted(1) {
            *suspended.lock() += TTL;
        }
    }));
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let started = Arc::clone(&tokens);
    let child = worker("a", move |ctx: Context| {
        started.lock().push(ctx.fencing_token().map(FencingToken::get));
        async move { ctx.cancelled().await }
    });
    let app = Supervisor::builder("app").restarts(0, secs(60)).child(child.lease(lease));
    let mut app = app.build().unwrap();
    let mut events = app.events();
    let tree = app.start().await.unwrap();
    sleep(secs(1)).await;

    assert_eq!(*tokens.lock(), [Some(2)], "the child never starts with the lost grant");
    let requests: Vec<_> = leases.history("a").iter().map(|it| it.request).collect();
    assert_eq!(requests, [LeaseRequest::Acquire; 2]);
    let info = tree.which_child("a").await.unwrap();
    let known = info.lease.expect("a lease").token;
    assert_eq!((info.incarnation, info.failures, known), (1, 0, Some(2)));
    tree.stop("over").await.unwrap();

    let mut kinds = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::LeaseGranted { token, .. } = event.kind {
            kinds.push(format!("granted {token}"));
        } else if let EventKind::LeaseLost { .. } = event.kind {
            kinds.push("lost".to_owned());
        }
    }
    assert_eq!(kinds, ["granted 2"], "what the child never had isn't shown as lost");
}
