//! A TCP proxy between a member and its server, which delays, holds back and cuts.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// What the proxy does with each connection, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Works,
    /// Each piece is late by this time.
    Delays(Duration),
    /// Nothing arrives until the network works again. Then all of it does.
    Holds,
    /// Connections are closed, and new ones are closed at once.
    Cuts,
}

/// See the [module](self). It ends when this is dropped.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    network: watch::Sender<Network>,
    accepting: AbortHandle,
}

impl Proxy {
    /// Starts a proxy to a port of this machine.
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (network, seen) = watch::channel(Network::Works);
        let accepting = tokio::spawn(async move {
            loop {
                let Ok((client, _)) = listener.accept().await else { continue };
                tokio::spawn(connect(client, server, seen.clone()));
            }
        });
        Self { port, network, accepting: accepting.abort_handle() }
    }

    pub(crate) fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connect(client: TcpStream, server: u16, network: watch::Receiver<Network>) {
    if *network.borrow() == Network::Cuts {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
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
    let mut cuts = network.clone();
    let copying = async {
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            let now = *network.borrow();
            if let Network::Delays(delay) = now {
                tokio::time::sleep(delay).await;
            }
            // Also the pieces that were delayed when it began to hold back.
            let proxy_has_ended = network.wait_for(|it| *it != Network::Holds).await.is_err();
            if proxy_has_ended || to.write_all(&piece[..length]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = copying => {}
        // An error: the proxy has ended.
        _ = cuts.wait_for(|it| *it == Network::Cuts) => {}
    }
}
