//! tokio-graceful-shutdown: subsystems of one top level, and of each other.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_graceful_shutdown::{IntoSubsystem, SubsystemBuilder, SubsystemHandle, Toplevel};
use tokio_util::sync::CancellationToken;

use super::child::{Idle, Life};
use super::peer::{Peer, name};
use crate::board::Failure;

pub struct TokioGracefulShutdown;

/// Longer than any stop takes.
const GRACE: Duration = Duration::from_secs(600);

impl Peer for TokioGracefulShutdown {
    const NAME: &str = "tokio-graceful-shutdown";
    const PACKAGES: &[&str] = &["tokio-graceful-shutdown"];
    const LACKS: &[&str] =
        &["restart", "storm", "one-for-all", "crash", "message", "ask", "lookup"];
    type Tree = (CancellationToken, JoinHandle<()>);

    async fn start<L: Life>(n: usize, _one_for_all: bool) -> Self::Tree {
        up(move |root| {
            for index in 0..n {
                root.start(SubsystemBuilder::new(
                    name(index),
                    async move |this: &mut SubsystemHandle| {
                        L::live(index, this.on_shutdown_requested()).await
                    },
                ));
            }
        })
    }

    async fn stop((token, running): Self::Tree) {
        token.cancel();
        running.await.expect("nothing panics");
    }

    async fn nest(widths: &'static [usize]) -> Self::Tree {
        up(|root| below(root, widths))
    }
}

/// Runs a top level that first calls `start`.
fn up(
    start: impl FnOnce(&SubsystemHandle) + Send + 'static,
) -> (CancellationToken, JoinHandle<()>) {
    let token = CancellationToken::new();
    let root = async move |root: &mut SubsystemHandle| start(root);
    let top = Toplevel::new_with_shutdown_token(root, token.clone());
    let running = tokio::spawn(async move {
        top.handle_shutdown_requests(GRACE).await.expect("nothing fails");
    });
    (token, running)
}

/// Starts what is below one subsystem.
fn below(this: &SubsystemHandle, widths: &'static [usize]) {
    let (width, below) = widths.split_first().expect("there is a level");
    for index in 0..*width {
        if below.is_empty() {
            this.start(SubsystemBuilder::new(
                name(index),
                async move |this: &mut SubsystemHandle| {
                    Idle::live(index, this.on_shutdown_requested()).await
                },
            ));
        } else {
            this.start(SubsystemBuilder::new(name(index), Level(below).into_subsystem()));
        }
    }
}

struct Level(&'static [usize]);

impl IntoSubsystem<Failure> for Level {
    async fn run(self, this: &mut SubsystemHandle) -> Result<(), Failure> {
        below(this, self.0);
        this.on_shutdown_requested().await;
        Ok(())
    }
}
