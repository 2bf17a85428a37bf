//! Rules of elfo's supervision.

use verger::{Context, Exit, RestartType, Supervisor, worker};

use super::{app, start};
use crate::common::{End, FakeChildren};

#[tokio::test(start_paused = true)]
async fn seed4_51_a_subscriber_first_receives_every_childs_state_and_then_each_change() {
    async fn next(stream: &mut verger::status::StatusStream) -> String {
        let change = stream.next().await.unwrap();
        let state = change.lifecycle.map_or("gone".to_owned(), |state| state.to_string());
        format!("{}#{} {state}", change.path, change.incarnation)
    }
    let fakes = FakeChildren::new();
    let speaking = worker("speaking", async |ctx: Context| -> Exit {
        ctx.set_status("lag 12 ms");
        ctx.cancelled().await;
        Ok(())
    });
    let job = fakes.child("job").restart(RestartType::Temporary);
    let mid = Supervisor::builder("mid").child(speaking);
    let app = start(app().child(fakes.child("a")).child(job).child(mid)).await;
    fakes.end("a", End::Error).await;
    fakes.end("job", End::Normal).await;

    let expected = ["app/a#1 restarting", "app/mid#1 active", "app/mid/speaking#1 active"];
    let mut first = app.subscribe_status().await.unwrap();
    for expected in expected {
        assert_eq!(next(&mut first).await, expected, "and nothing of the job, which is forgotten");
    }
    // The delay passes once every task is idle.
    for expected in ["app/a#1 resolved", "app/a#2 activating", "app/a#2 active"] {
        assert_eq!(next(&mut first).await, expected);
    }
    let mut second = app.subscribe_status().await.unwrap();
    assert_eq!(next(&mut second).await, "app/a#2 active", "its own replay, as of now");
    assert_eq!(next(&mut second).await, "app/mid#1 active");
    assert_eq!(app.which_child("mid/speaking").await.unwrap().status.unwrap(), "lag 12 ms");

    app.stop_child("a").await.unwrap();
    app.otp().delete_child("a").await.unwrap();
    for expected in ["app/a#2 deactivating", "app/a#2 stopped"] {
        assert_eq!(next(&mut first).await, expected);
    }
    let gone = first.next().await.unwrap();
    assert_eq!((gone.path.as_str(), gone.lifecycle), ("app/a", None));
    app.stop("done").await.unwrap();
}
