//! Parameters of a `#[worker]` function that are services.

use verger::mailbox::Inbox;
use verger::service::Service;
use verger::{Context, Exit, Supervisor, worker};

use crate::common::settle;

#[derive(Clone)]
struct Pool(u32);

#[worker]
async fn db(ctx: Context, size: u32) -> Exit {
    ctx.provide(Pool(size))?;
    ctx.cancelled().await;
    Ok(())
}

#[worker]
async fn api(ctx: Context, mut pool: Service<Pool>, name: String) -> Exit {
    let Pool(size) = pool.get().await?;
    ctx.set_status(format!("{name}: {size}"));
    ctx.cancelled().await;
    Ok(())
}

#[worker]
async fn writer<T: ToString>(
    mut pool: Service<Pool>,
    mut inbox: Inbox<tokio::sync::oneshot::Sender<String>>,
    mut other: Service<T>,
) -> Exit {
    while let Some(answer) = inbox.recv().await {
        let Pool(size) = pool.get().await?;
        let other = other.try_get().map(|other| other.to_string());
        drop(answer.send(format!("{size} {other:?}")));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn services_are_parameters_beside_the_context_the_inbox_and_the_arguments() {
    let (writer, address) = writer::<u8>();
    let app = Supervisor::builder("app").child(api("n".to_owned())).child(db(7)).child(writer);
    let app = app.build().unwrap().start().await.unwrap();
    settle().await;
    assert_eq!(app.which_child("api").await.unwrap().status.as_deref(), Some("n: 7"));
    let (answer, answered) = tokio::sync::oneshot::channel();
    address.send(answer).await.unwrap();
    assert_eq!(answered.await.unwrap(), "7 None");
    app.stop("enough").await.unwrap();
}
