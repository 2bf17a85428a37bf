//! Which of several policies applies to a child: it has one.

use super::{DAY, SECOND, app, pass, secs, seen};
use crate::common::{End, FakeChildren, start};
use verger::policy::{Intensity, OnExhausted, RestartPolicy};
use verger::{Backoff, BuildError, Lifecycle, Supervisor, worker};

#[test]
fn seed0_28_a_second_policy_of_a_child_is_refused_with_both_settings() {
    let db = || worker("db", async |_| {}).own_restarts(3, SECOND);
    let file = RestartPolicy::new().own_restarts(5, SECOND);
    let twice = worker("db", async |_| {}).consecutive_restarts(2).consecutive_restarts(4);
    let late = worker("db", async |_| {}).failing_for(SECOND).failing_for(DAY);
    for (spec, text) in [
        (db().own_restarts(5, SECOND), "`own_restarts(3, 1s)` and `own_restarts(5, 1s)`"),
        (
            db().intensity(Intensity::tumbling(5, SECOND)),
            "`own_restarts(3, 1s)` and `tumbling(5, 1s)`",
        ),
        (db().policy(file), "`own_restarts(3, 1s)` and `own_restarts(5, 1s)`"),
        (twice, "`consecutive_restarts(2)` and `consecutive_restarts(4)`"),
        (late, "`failing_for(1s)` and `failing_for(1day)`"),
    ] {
        let error = app().child(spec).build().unwrap_err();
        let BuildError::SetTwice { path, first, second } = &error else { panic!("{error}") };
        assert_eq!(path.as_str(), "app/db");
        assert_eq!(format!("`{first}` and `{second}`"), text);
    }
}

/// The parent sets the policy of a supervisor as its child, and the supervisor that of its children.
#[tokio::test(start_paused = true)]
async fn seed0_28_a_supervisor_is_supervised_by_its_parent_and_its_child_by_itself() {
    let fakes = FakeChildren::new();
    let mid = Supervisor::builder("mid")
        .restarts(0, SECOND)
        .defaults(|child| child.backoff(Backoff::none()))
        .child(fakes.child("a"));
    let mid = mid.into_child().own_restarts(1, DAY).backoff(Backoff::constant(secs(7)));
    let tree = start(app().child(mid.on_exhausted(OnExhausted::Park))).await;
    let (mid, a) = (tree.child_spec("mid").await.unwrap(), tree.child_spec("mid/a").await.unwrap());
    assert_eq!((mid.backoff, a.backoff), (Backoff::constant(secs(7)), Backoff::none()));

    // The limit of `mid` is for its child, and that of the parent for `mid`.
    fakes.end("a", End::Error).await;
    let info = seen(&tree, "mid").await;
    assert_eq!((info.lifecycle, info.next.unwrap().delay), (Lifecycle::Restarting, secs(7)));
    pass(secs(7)).await;
    let info = seen(&tree, "mid").await;
    assert_eq!((info.lifecycle, info.incarnation), (Lifecycle::Active, 2));
    fakes.end("a", End::Error).await;
    assert_eq!(seen(&tree, "mid").await.lifecycle, Lifecycle::Errored);
}
