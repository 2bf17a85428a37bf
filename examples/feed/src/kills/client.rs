//! The clients of a service that is killed.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::sleep;
use tracing::debug;
use verger::{Context, Exit, ExitError};

use super::Shared;
use crate::clients::{Conversation, PAUSE, WINDOW};

/// Returns the name of the client with this index, which is the source of its lines. It is not one
/// of those that the service reserves for clients of its own process.
pub(crate) fn name(index: usize) -> String {
    format!("client-{}", index + 1)
}

/// Sends lines until the last kill, and then until all of them are acknowledged.
pub(super) async fn client(ctx: Context, (shared, index): (Arc<Shared>, usize)) -> Exit {
    let conversation = Conversation {
        name: name(index),
        index,
        rate: shared.options.rate,
        ledger: &shared.ledger,
    };
    let mut address = shared.address.subscribe();
    // The last line that may have been sent.
    let mut sent = 0;
    let mut last = |answered: u64| {
        if shared.progress.borrow().kills < shared.options.kills {
            sent = sent.max(answered + WINDOW as u64);
        }
        sent
    };
    loop {
        let conversed = async {
            let address = address.wait_for(Option::is_some).await?.ok_or("not served")?;
            let mut socket = TcpStream::connect(address).await?;
            conversation.run(&ctx, &mut socket, &mut last).await?;
            Ok::<(), ExitError>(())
        };
        match ctx.run_until_cancelled(conversed).await {
            None => return Ok(()),
            Some(Ok(())) => break,
            Some(Err(error)) => {
                debug!(client = index + 1, %error, "connecting again");
                ctx.run_until_cancelled(sleep(PAUSE)).await;
            }
        }
    }
    shared.progress.send_modify(|progress| progress.finished += 1);
    Ok(())
}
