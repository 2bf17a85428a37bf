//! tokio-graceful-shutdown: subsystems of one top level, and of each other. It restarts nothing, as it
//! documents.

use std::marker::PhantomData;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_graceful_shutdown::{IntoSubsystem, SubsystemBuilder, SubsystemHandle, Toplevel};
use tokio_util::sync::CancellationToken;

use crate::child::{Failure, Life};
use crate::peer::{Peer, Plan, name};
use crate::texts;

pub struct TokioGracefulShutdown;

/// Longer than any stop takes.
const GRACE: Duration = Duration::from_secs(600);

impl Peer for TokioGracefulShutdown {
    const PACKAGES: &[&str] = &["tokio-graceful-shutdown"];
    const PAUSED: bool = true;
    const LACKS: &[&str] =
        &["restart", "storm", "one-for-all", "crash", "message", "ask", "lookup"];
    type Tree = (CancellationToken, JoinHandle<()>);

    async fn start<L: Life>(plan: Plan) -> Self::Tree {
        let token = CancellationToken::new();
        let (started, all_started) = oneshot::channel();
        let root = async move |root: &mut SubsystemHandle| {
            start_below::<L>(root, plan);
            started.send(()).expect("the start waits for it");
        };
        let top = Toplevel::new_with_shutdown_token(root, token.clone());
        let running = tokio::spawn(async move {
            if let Err(error) = top.handle_shutdown_requests(GRACE).await {
                texts::saw("the error", format!("{error:?}"));
            }
        });
        all_started.await.expect("the root doesn't fail");
        (token, running)
    }

    async fn stop((token, running): Self::Tree) {
        token.cancel();
        running.await.expect("nothing panics but children");
    }
}

/// Starts what is below one subsystem.
fn start_below<L: Life>(this: &SubsystemHandle, plan: Plan) {
    for index in 0..plan.width() {
        if let Some(below) = plan.below() {
            let level = Level::<L>(below, PhantomData);
            this.start(SubsystemBuilder::new(name(index), level.into_subsystem()));
        } else {
            let child = async move |this: &mut SubsystemHandle| {
                L::live(index, || (), this.on_shutdown_requested()).await
            };
            this.start(SubsystemBuilder::new(name(index), child));
        }
    }
}

/// A type of its own, because a closure can't contain itself.
struct Level<L>(Plan, PhantomData<fn() -> L>);

impl<L: Life> IntoSubsystem<Failure> for Level<L> {
    async fn run(self, this: &mut SubsystemHandle) -> Result<(), Failure> {
        start_below::<L>(this, self.0);
        this.on_shutdown_requested().await;
        Ok(())
    }
}
