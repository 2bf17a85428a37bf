//! tokio-graceful-shutdown: subsystems of one top level. It restarts nothing, as it documents.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_graceful_shutdown::{SubsystemBuilder, SubsystemHandle, Toplevel};
use tokio_util::sync::CancellationToken;

use crate::board::{self, live};
use crate::peer::{Notes, Peer, Plan};

pub struct TokioGracefulShutdown;

impl Peer for TokioGracefulShutdown {
    const PACKAGES: &[&str] = &["tokio-graceful-shutdown"];
    const PAUSED: bool = true;
    const UNCLAIMED: Notes = &[
        (
            "panic error",
            "restarting \"isn't really a usecase related to this library\"; a failure shuts the \
             program down",
        ),
        ("limit window group busy finished hung twice", "it restarts nothing"),
        (
            "escalation",
            "it restarts nothing; a failure is forwarded to the parent, up to the top level",
        ),
    ];
    const DISCLAIMED: Notes = &[
        ("text", "the error says which subsystem panicked"),
        ("start", "`start` isn't async: a subsystem is spawned"),
        ("order", "a subsystem is started, not ready"),
        ("reverse", "all are cancelled at once; its examples show how to write an order"),
    ];
    type Tree = (CancellationToken, JoinHandle<()>);

    async fn start(plan: Plan) -> Self::Tree {
        let token = CancellationToken::new();
        let (started, all_started) = oneshot::channel();
        let root = async move |root: &mut SubsystemHandle| {
            for child in plan.children {
                let run = async move |subsystem: &mut SubsystemHandle| {
                    live(child, || {}, subsystem.on_shutdown_requested()).await
                };
                root.start(SubsystemBuilder::new(child.name, run));
            }
            started.send(()).expect("the start waits for it");
        };
        let top = Toplevel::new_with_shutdown_token(root, token.clone());
        let running = tokio::spawn(async move {
            if let Err(error) = top.handle_shutdown_requests(Duration::from_secs(5)).await {
                board::saw("the error", format!("{error:?}"));
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
