//! Listings of `book/src/coming/tokio-graceful-shutdown.md`.

use std::cell::RefCell;
use std::time::Duration;

use tokio_graceful_shutdown::errors::GracefulShutdownError;
use tokio_graceful_shutdown::{
    ErrorAction, FutureExt, SubsystemBuilder, SubsystemHandle, Toplevel,
};

type Error = Box<dyn std::error::Error + Send + Sync>;

async fn web(subsys: &mut SubsystemHandle) -> Result<(), Error> {
    let _ = serve().cancel_on_shutdown(subsys).await;
    close("web").await
}

async fn db(subsys: &mut SubsystemHandle) -> Result<(), Error> {
    subsys.on_shutdown_requested().await;
    close("db").await
}

async fn run() -> Result<(), GracefulShutdownError> {
    Toplevel::new(async |top: &mut SubsystemHandle| {
        top.start(SubsystemBuilder::new("db", db));
        top.start(SubsystemBuilder::new("web", web));
    })
    .catch_signals()
    .handle_shutdown_requests(Duration::from_secs(5))
    .await
}

async fn web_then_db(subsys: &mut SubsystemHandle) -> Result<(), Error> {
    let db = subsys.start(SubsystemBuilder::new("db", db).detached());
    let web = subsys.start(SubsystemBuilder::new("web", web).detached());
    subsys.on_shutdown_requested().await;
    web.initiate_shutdown();
    web.join().await?;
    db.initiate_shutdown();
    db.join().await?;
    Ok(())
}

async fn keep_polling(subsys: &mut SubsystemHandle) -> Result<(), Error> {
    while !subsys.is_shutdown_requested() {
        let poll = SubsystemBuilder::new("poll", poll)
            .on_failure(ErrorAction::CatchAndLocalShutdown)
            .on_panic(ErrorAction::CatchAndLocalShutdown);
        if subsys.start(poll).join().await.is_ok() {
            break;
        }
    }
    Ok(())
}

/// Loses its connection after two seconds.
async fn poll(subsys: &mut SubsystemHandle) -> Result<(), Error> {
    note("poll: starts");
    match tokio::time::sleep(Duration::from_secs(2)).cancel_on_shutdown(subsys).await {
        Ok(()) => Err("the line dropped".into()),
        Err(_) => Ok(()),
    }
}

/// Stands for a server, which ends when its future is dropped.
async fn serve() {
    std::future::pending().await
}

/// Stands for what takes a second at the end.
async fn close(name: &str) -> Result<(), Error> {
    note(&format!("{name}: closes"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    note(&format!("{name}: closed"));
    Ok(())
}

thread_local! {
    static NOTES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(text: &str) {
    NOTES.with_borrow_mut(|notes| notes.push(text.to_owned()));
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// What the subsystems note if they are asked to shut down after so many seconds.
    macro_rules! notes {
        ($start:expr, $secs:expr) => {{
            let token = CancellationToken::new();
            let top = Toplevel::<Error>::new_with_shutdown_token($start, token.clone());
            let stop = async {
                tokio::time::sleep(Duration::from_secs($secs)).await;
                token.cancel();
            };
            let (ended, ()) =
                tokio::join!(top.handle_shutdown_requests(Duration::from_secs(5)), stop);
            ended.unwrap();
            NOTES.take()
        }};
    }

    #[tokio::test(start_paused = true)]
    async fn all_stop_at_once() {
        let found = notes!(
            async |top: &mut SubsystemHandle| {
                top.start(SubsystemBuilder::new("db", db));
                top.start(SubsystemBuilder::new("web", web));
            },
            1
        );
        let (first, then) = found.split_at(2);
        assert!(first.iter().all(|note| note.ends_with("closes")), "{found:?}");
        assert!(then.iter().all(|note| note.ends_with("closed")), "{found:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn detached_ones_stop_in_order() {
        let found = notes!(
            async |top: &mut SubsystemHandle| {
                top.start(SubsystemBuilder::new("in order", web_then_db));
            },
            1
        );
        assert_eq!(found, ["web: closes", "web: closed", "db: closes", "db: closed"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_restarts() {
        let found = notes!(
            async |top: &mut SubsystemHandle| {
                top.start(SubsystemBuilder::new("keep", keep_polling));
            },
            5
        );
        assert_eq!(found, ["poll: starts"; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_ends_the_program() {
        let top = Toplevel::<Error>::new(async |top: &mut SubsystemHandle| {
            top.start(SubsystemBuilder::new("poll", poll));
            top.start(SubsystemBuilder::new("web", web));
        });
        let error = top.handle_shutdown_requests(Duration::from_secs(5)).await.unwrap_err();
        assert!(matches!(error, GracefulShutdownError::SubsystemsFailed(_)));
        assert_eq!(NOTES.take(), ["poll: starts", "web: closes", "web: closed"]);
    }
}
