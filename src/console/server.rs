//! The console of an application, on a separate listener, whose connections end after a time without progress.
//!
//! # Invariants
//!
//! 1. From the first byte of a request, its answer begins within [`REQUEST`], or the connection ends. So a client
//!    that sends a byte a minute holds it no longer than that.
//! 2. A connection on which nothing is written for [`IDLE`] ends, also if the client doesn't read.
//! 3. At most [`MOST_READ`] bytes are read before an answer, and there are at most [`MOST`] connections.
//! 4. All connections end when the server does.

use std::future::IntoFuture as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::router::routes;
use super::shared::{Console, ConsoleShared, Outside};
use crate::app::companion::{Companion, RunStart, companion};
use crate::app::listen::ListenAddress;
use crate::clock::{later, now};
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::named_task::OwnedTask;
use crate::spec::Supervisor;
use crate::{Application, subscriber};

/// How long answers may take that have begun when the server ends.
const GRACE: Duration = Duration::from_millis(500);

/// A listener that serves the console of a tree, until it is dropped.
struct ConsoleServer {
    console: Arc<ConsoleShared>,
    task: OwnedTask<io::Result<()>>,
    /// Accepts no connection any more, and ends those that are idle.
    stop: CancellationToken,
    /// Ends all connections.
    end: CancellationToken,
}

impl ConsoleServer {
    pub(super) fn start(
        listener: TcpListener,
        mut options: Console,
        tree: &SupervisorHandle,
        outside: Outside,
    ) -> Self {
        let address = listener.local_addr().ok();
        options.hosts.extend(address.map(|it| it.to_string()));
        let names_token = options.actions && options.token.is_none();
        let console = ConsoleShared::new(options, tree, outside, false);
        if let Some(address) = address {
            let mut url = format!("http://{address}/");
            if names_token {
                url.push_str("#token=");
                url.push_str(console.token.expose());
            }
            subscriber::info!(target: "verger::console", %address, url, "serving console");
        }
        let (stop, end) = (CancellationToken::new(), CancellationToken::new());
        let connections = Connections::new(listener, end.clone());
        let serve = axum::serve(connections, routes(Arc::clone(&console)))
            .with_graceful_shutdown(stop.clone().cancelled_owned());
        Self { console, task: OwnedTask::spawn("verger console", serve.into_future()), stop, end }
    }

    /// Ends all streams and connections, and closes the listener.
    pub(super) async fn stop(mut self) {
        self.console.records.streams.close();
        self.stop.cancel();
        if timeout(GRACE, self.task.join()).await.is_err() {
            self.end.cancel();
            let _ = timeout(GRACE, self.task.join()).await;
        }
    }
}

impl Drop for ConsoleServer {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Application {
    /// Serves a [console](crate::console) at this address, such as `127.0.0.1:7007`, on a listener of its own.
    ///
    /// It listens before the tree starts and until the hooks after the stop have run. If the address can't be
    /// bound, or isn't a loopback address without
    /// [`allow_remote`](crate::console::Console::allow_remote), the application ends with exit code 2. A log line
    /// with target `verger::console` says where the console is, and which token its actions need.
    ///
    /// ```no_run
    /// use verger::console::Console;
    /// # use verger::{Application, Supervisor};
    ///
    /// # fn f(tree: Supervisor) -> Application {
    /// Application::new(tree).console("127.0.0.1:7007", Console::new().allow_actions(true))
    /// # }
    /// ```
    pub fn console(self, address: impl Into<String>, console: Console) -> Self {
        self.console_at(ListenAddress::Address(address.into()), console)
    }

    /// Serves a [console](crate::console) on this listener, such as one whose port the system has chosen.
    pub fn console_on(self, listener: std::net::TcpListener, console: Console) -> Self {
        self.console_at(ListenAddress::Bound(listener), console)
    }

    fn console_at(mut self, address: ListenAddress, console: Console) -> Self {
        let outside = Outside { reloader: Some(self.reloader()), ..Outside::default() };
        let address = Some(address);
        let console = ConsoleOfRun { address, console, outside, listener: None, server: None };
        self.companions.console = companion(console);
        self
    }
}

/// The console of one run of the application.
struct ConsoleOfRun {
    /// `None` once it is bound.
    address: Option<ListenAddress>,
    console: Console,
    outside: Outside,
    /// `None` once it is served.
    listener: Option<TcpListener>,
    server: Option<ConsoleServer>,
}

#[async_trait]
impl Companion for ConsoleOfRun {
    async fn prepare(&mut self, tree: &mut Supervisor) -> Result<(), RunError> {
        let Some(address) = self.address.take() else { return Ok(()) };
        let listener = address.bind("console").await?;
        self.console.check(&listener)?;
        self.listener = Some(listener);
        // Before the start, so that the first start is shown.
        self.outside.events = Some(tree.events());
        Ok(())
    }

    fn start(&mut self, run: &mut RunStart<'_>) {
        let Some(listener) = self.listener.take() else { return };
        let outside = std::mem::take(&mut self.outside);
        let console = std::mem::take(&mut self.console);
        self.server = Some(ConsoleServer::start(listener, console, &run.handle(), outside));
    }

    async fn finish(self: Box<Self>) {
        if let Some(server) = self.server {
            server.stop().await;
        }
    }
}

/// The most connections. Further ones wait until one has ended.
const MOST: usize = 256;
/// How long a request and the wait for its answer may take.
const REQUEST: Duration = Duration::from_secs(20);
/// How long a connection may be idle.
const IDLE: Duration = Duration::from_secs(60);
/// The most bytes of a request: the headers, and a body whose limit is checked elsewhere.
const MOST_READ: usize = 1024 * 1024 + 128 * 1024;

/// Accepts connections.
struct Connections {
    listener: TcpListener,
    slots: Arc<Semaphore>,
    end: CancellationToken,
}

impl Connections {
    /// `end`: ends all connections.
    pub(super) fn new(listener: TcpListener, end: CancellationToken) -> Self {
        Self { listener, slots: Arc::new(Semaphore::new(MOST)), end }
    }
}

impl Listener for Connections {
    type Io = Connection<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection<TcpStream>, SocketAddr) {
        let slot = Arc::clone(&self.slots).acquire_owned().await.expect("it is never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Connection::new(stream, self.end.clone(), slot), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with a bound on the time until its next answer.
struct Connection<S> {
    stream: S,
    limit: Pin<Box<Sleep>>,
    /// Whether something was read since the last write.
    begun: bool,
    /// How many bytes.
    read: usize,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    _slot: OwnedSemaphorePermit,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    fn new(stream: S, end: CancellationToken, slot: OwnedSemaphorePermit) -> Self {
        Self {
            stream,
            limit: Box::pin(sleep(IDLE)),
            begun: false,
            read: 0,
            end: Box::pin(end.cancelled_owned()),
            _slot: slot,
        }
    }

    fn limit(&mut self, limit: Duration) {
        self.limit.as_mut().reset(Instant::from_std(later(now(), limit)));
    }

    /// Returns an error once the connection has to end.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(io::ErrorKind::ConnectionAborted.into());
        }
        self.limit.as_mut().poll(cx).map(|()| io::ErrorKind::TimedOut.into())
    }

    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match write(Pin::new(&mut self.stream), cx) {
            Poll::Ready(written) => {
                self.begun = false;
                self.read = 0;
                self.limit(IDLE);
                Poll::Ready(written)
            }
            Poll::Pending => self.poll_end(cx).map(Err),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(result) => {
                self.read += buf.filled().len() - before;
                if self.read > MOST_READ {
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                if !std::mem::replace(&mut self.begun, true) {
                    self.limit(REQUEST);
                }
                Poll::Ready(result)
            }
            Poll::Pending => Poll::Ready(Err(ready!(self.poll_end(cx)))),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_written(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_written(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    struct Pair {
        client: DuplexStream,
        connection: Connection<DuplexStream>,
        slots: Arc<Semaphore>,
        end: CancellationToken,
    }

    async fn pair(pipe: usize) -> Pair {
        let (client, server) = duplex(pipe);
        let (slots, end) = (Arc::new(Semaphore::new(1)), CancellationToken::new());
        let slot = Arc::clone(&slots).acquire_owned().await.unwrap();
        let connection = Connection::new(server, end.clone(), slot);
        Pair { client, connection, slots, end }
    }

    /// Reads until the connection ends, and returns why and when.
    async fn read(connection: &mut Connection<DuplexStream>) -> (io::ErrorKind, Duration) {
        let began = Instant::now();
        let mut buf = [0; 1024];
        loop {
            match connection.read(&mut buf).await {
                Ok(1..) => {}
                Ok(0) => return (io::ErrorKind::UnexpectedEof, began.elapsed()),
                Err(error) => return (error.kind(), began.elapsed()),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_a_byte_now_and_then_is_cut_off() {
        let Pair { mut client, mut connection, slots, .. } = pair(1024).await;
        let sender = tokio::spawn(async move {
            while client.write_all(b"x").await.is_ok() {
                sleep(Duration::from_secs(3)).await;
            }
        });
        assert_eq!(read(&mut connection).await, (io::ErrorKind::TimedOut, REQUEST));
        assert_eq!(slots.available_permits(), 0);
        drop(connection);
        assert_eq!(slots.available_permits(), 1, "the next client has its slot");
        sender.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_ends_and_each_answer_prolongs_it() {
        let Pair { client, mut connection, .. } = pair(1024).await;
        for _ in 0..3 {
            let waiting = read(&mut connection);
            assert!(tokio::time::timeout(IDLE - Duration::from_secs(1), waiting).await.is_err());
            connection.write_all(b"heartbeat").await.unwrap();
        }
        assert_eq!(read(&mut connection).await, (io::ErrorKind::TimedOut, IDLE));
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_off() {
        let Pair { client, mut connection, .. } = pair(16).await;
        let began = Instant::now();
        let error = connection.write_all(&[0; 17]).await.unwrap_err();
        assert_eq!((error.kind(), began.elapsed()), (io::ErrorKind::TimedOut, IDLE));
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_end_is_cut_off() {
        let Pair { mut client, mut connection, .. } = pair(1024).await;
        let sender = tokio::spawn(async move {
            let mut sent = 0;
            while client.write_all(&[b'x'; 1024]).await.is_ok() {
                sent += 1024;
            }
            sent
        });
        assert_eq!(read(&mut connection).await.0, io::ErrorKind::InvalidData);
        drop(connection);
        assert!(sender.await.unwrap() <= MOST_READ + 2 * 1024);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_server_ends_a_connection_in_the_middle_of_a_request() {
        let Pair { mut client, mut connection, end, .. } = pair(1024).await;
        client.write_all(b"GET / HT").await.unwrap();
        let ended = async {
            sleep(Duration::from_secs(1)).await;
            end.cancel();
        };
        let (read, ()) = tokio::join!(read(&mut connection), ended);
        assert_eq!(read, (io::ErrorKind::ConnectionAborted, Duration::from_secs(1)));
    }
}
