//! Children that require a sibling, and calls that start them.

use crate::common::{End, FakeChildren, settle};
use verger::{Lifecycle, Supervisor};

#[tokio::test(start_paused = true)]
async fn a_start_returns_although_its_requirement_is_terminated() {
    let fakes = FakeChildren::new();
    let app = Supervisor::builder("app").child(fakes.child("db"));
    let app = app.build().unwrap().start().await.unwrap();
    app.stop_child("db").await.unwrap();

    let api = app.start_child(fakes.child("api").requires("db")).await.unwrap();
    assert!(api.is_gated() && !api.declined());
    assert_eq!(api.incarnation(), None);
    let seen = app.which_child("api").await.unwrap();
    assert_eq!(
        (seen.lifecycle, seen.why),
        (Lifecycle::Discovered, Some("waits for a requirement"))
    );

    app.otp().restart_child("db").await.unwrap();
    settle().await;
    assert_eq!(app.which_child("api").await.unwrap().lifecycle, Lifecycle::Active);
    assert_eq!(fakes.actions(), ["start db", "stop db", "start db", "start api"]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_requirement_does_not_stop_its_dependants_but_gates_their_next_start() {
    let fakes = FakeChildren::new();
    let app = Supervisor::builder("app")
        .child(fakes.child("db"))
        .child(fakes.child("api").requires("db"));
    let app = app.build().unwrap().start().await.unwrap();
    assert_eq!(fakes.actions(), ["start db", "start api"]);

    fakes.end("db", End::Error).await;
    assert_eq!(app.which_child("api").await.unwrap().lifecycle, Lifecycle::Active);
    fakes.end("api", End::Error).await;
    // The call waits with the child, whose requirement is on its way.
    let (api, db) = tokio::join!(app.resume("api"), async {
        settle().await;
        assert_eq!(app.which_child("api").await.unwrap().lifecycle, Lifecycle::Discovered);
        app.resume("db").await
    });
    assert_eq!((api.unwrap().incarnation(), db.unwrap().incarnation()), (Some(2), Some(2)));
    assert_eq!(fakes.actions(), ["end db", "end api", "start db", "start api"]);
    app.stop("enough").await.unwrap();
}
