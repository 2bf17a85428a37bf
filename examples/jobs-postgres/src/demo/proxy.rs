//! A TCP proxy between a process and the database, which can cut the network.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use verger::{Context, Exit};

use super::cast::Cast;

/// What the network between a process and the database does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    Works,
    /// Nothing arrives, in both directions, and no connection is closed. Once the network works again, what was sent
    /// meanwhile arrives late.
    Cut,
}

pub(super) async fn proxy(ctx: Context, (cast, member): (Arc<Cast>, usize)) -> Exit {
    match ctx.run_until_cancelled(accept(&ctx, &cast, member)).await {
        None => Ok(()),
        Some(Ok(never)) => match never {},
        Some(Err(error)) => Err(error.into()),
    }
}

async fn accept(ctx: &Context, cast: &Cast, member: usize) -> io::Result<Infallible> {
    let server = cast.options.database.server().to_owned();
    let member = &cast.members[member];
    loop {
        let (client, _) = member.listener.accept().await?;
        let (server, network) = (server.clone(), member.network.subscribe());
        // A connection that breaks is no failure of the proxy.
        ctx.detached_errors().spawn(async move { connect(client, &server, network).await });
    }
}

async fn connect(client: TcpStream, server: &str, network: watch::Receiver<Network>) {
    // Without a server, the client's connection is closed.
    let Ok(server) = TcpStream::connect(server).await else { return };
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    // Each end of one direction ends the other one, too.
    tokio::select! {
        () = copy(from_client, to_server, network.clone()) => {}
        () = copy(from_server, to_client, network) => {}
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(length) = from.read(&mut piece).await {
        // Also the end of the connection doesn't arrive while the network is cut.
        let demo_has_ended = network.wait_for(|it| *it == Network::Works).await.is_err();
        if length == 0 || demo_has_ended || to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
