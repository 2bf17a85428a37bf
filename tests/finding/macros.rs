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

struct Saved(u32);

struct Sold(u32);

/// Counts what it has handled, in all of its incarnations.
#[derive(Clone, Default)]
struct Indexer {
    seen: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

#[worker]
impl Indexer {
    async fn activate(&mut self) {
        self.seen.lock().unwrap().push("activated".to_owned());
    }

    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }

    #[on]
    #[on(channel = "archive")]
    async fn saved(&self, event: std::sync::Arc<Saved>) {
        self.seen.lock().unwrap().push(format!("saved {}", event.0));
    }

    #[on(errors_fail_child, capacity = 8, channel = "orders")]
    async fn sold(&self, ctx: &Context, event: std::sync::Arc<Sold>) -> Exit {
        self.seen.lock().unwrap().push(format!("{} sold {}", ctx.incarnation(), event.0));
        Err("sold out".into())
    }
}

#[tokio::test(start_paused = true)]
async fn methods_of_a_component_handle_events() {
    let indexer = Indexer::default();
    let child = verger::component("indexer", indexer.clone());
    let child = child.backoff(verger::Backoff::none());
    let app = Supervisor::builder("app").child(child).build().unwrap().start().await.unwrap();
    let taken = || std::mem::take(&mut *indexer.seen.lock().unwrap());
    assert_eq!(taken(), ["activated"]);
    app.bus().emit(Saved(1));
    settle().await;
    app.bus().channel("orders").unwrap().emit(Sold(2));
    settle().await;
    assert_eq!(taken(), ["saved 1", "1 sold 2", "activated"]);
    app.bus().emit(Saved(3));
    settle().await;
    assert_eq!(taken(), ["saved 3"]);
    app.bus().channel("archive").unwrap().emit(Saved(4));
    settle().await;
    assert_eq!(taken(), ["saved 4"]);
    app.stop("enough").await.unwrap();
}
