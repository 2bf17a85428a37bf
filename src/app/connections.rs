//! The connections of a server of an application, which a client can't exhaust.
//!
//! # Invariants
//!
//! 1. From the first byte of a request, its answer begins within [`REQUEST`], or the connection ends. So a client
//!    that sends a byte a minute holds it no longer than that.
//! 2. A connection on which nothing is written for [`IDLE`] ends, even if the client doesn't read.
//! 3. At most [`MOST_READ`] bytes are read before an answer.
//! 4. There is a most number of connections. If it is reached, or the process has too many open files, the oldest
//!    connection without a request ends, so that the next client is served.
//! 5. A panic in the loop that accepts ends neither the server nor its connections: the loop begins again, with what it
//!    knows of them.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::clock::{later, now};
use crate::named_task::OwnedTask;
use crate::sync::Mutex;

/// How long a request and the wait for its answer may take.
const REQUEST: Duration = Duration::from_secs(20);
/// How long a connection may be idle.
const IDLE: Duration = Duration::from_secs(60);
/// The most bytes of a request: the headers, and a body whose limit is checked elsewhere.
const MOST_READ: usize = 1024 * 1024 + 128 * 1024;

/// How long to wait if no connection can be accepted, because the process has too many open files.
const RETRY: Duration = Duration::from_millis(100);

/// Serves a router until `stop`, and again after a panic. `name` says what it is for.
pub(crate) fn serve<L: Listener<Addr: fmt::Debug> + Clone>(
    name: &'static str,
    listener: L,
    router: Router,
    stop: CancellationToken,
) -> OwnedTask<()> {
    OwnedTask::restarted(name, (listener, router, stop), |(listener, router, stop)| {
        let serve = axum::serve(listener.clone(), router.clone());
        let serve = serve.with_graceful_shutdown(stop.clone().cancelled_owned());
        // It never fails.
        Box::pin(async move { drop(serve.await) })
    })
}

/// Accepts connections. Clones accept from the same listener.
#[derive(Clone)]
pub(crate) struct Connections {
    listener: Arc<TcpListener>,
    slots: Arc<Semaphore>,
    /// The connections that were accepted and may be open, the oldest first.
    open: Arc<Mutex<VecDeque<Open>>>,
    end: CancellationToken,
}

/// A connection, as it is ended from outside.
struct Open {
    /// Gone once the connection is closed.
    idle: Weak<AtomicBool>,
    end: CancellationToken,
}

impl Connections {
    /// `most`: how many there may be. `end`: ends all of them.
    pub(crate) fn new(listener: TcpListener, most: usize, end: CancellationToken) -> Self {
        let (listener, slots) = (Arc::new(listener), Arc::new(Semaphore::new(most)));
        Self { listener, slots, open: Arc::default(), end }
    }

    /// Ends the oldest connection without a request.
    fn end_idle(&self) {
        let mut all = self.open.lock();
        all.retain(|open| open.idle.strong_count() > 0);
        let is_idle =
            |open: &Open| open.idle.upgrade().is_some_and(|idle| idle.load(Ordering::Relaxed));
        let idle = all.iter().position(is_idle).and_then(|place| all.remove(place));
        drop(all);
        if let Some(open) = idle {
            open.end.cancel();
        }
    }

    async fn next(&self) -> (TcpStream, SocketAddr) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        loop {
            match self.listener.accept().await {
                Ok(accepted) => return accepted,
                // The client has given up.
                Err(error)
                    if matches!(
                        error.kind(),
                        ConnectionAborted | ConnectionRefused | ConnectionReset
                    ) => {}
                Err(_) => {
                    self.end_idle();
                    sleep(RETRY).await;
                }
            }
        }
    }
}

impl Listener for Connections {
    type Io = Connection<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection<TcpStream>, SocketAddr) {
        let (stream, address) = self.next().await;
        let slots = Arc::clone(&self.slots);
        if slots.available_permits() == 0 {
            self.end_idle();
        }
        let slot = slots.acquire_owned().await.expect("it is never closed");
        let (idle, end) = (Arc::new(AtomicBool::new(true)), self.end.child_token());
        let mut all = self.open.lock();
        all.retain(|open| open.idle.strong_count() > 0);
        all.push_back(Open { idle: Arc::downgrade(&idle), end: end.clone() });
        drop(all);
        (Connection::new(stream, idle, end, slot), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with a bound on the time until its next answer.
pub(crate) struct Connection<S> {
    stream: S,
    limit: Pin<Box<Sleep>>,
    /// Whether nothing was read since the last write.
    idle: Arc<AtomicBool>,
    /// How many bytes.
    read: usize,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    _slot: OwnedSemaphorePermit,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    fn new(
        stream: S,
        idle: Arc<AtomicBool>,
        end: CancellationToken,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            stream,
            limit: Box::pin(sleep(IDLE)),
            idle,
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
                self.idle.store(true, Ordering::Relaxed);
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
                if self.idle.swap(false, Ordering::Relaxed) {
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
        let idle = Arc::new(AtomicBool::new(true));
        let connection = Connection::new(server, idle, end.clone(), slot);
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

    /// Panics at its first connection, and accepts one more.
    #[derive(Clone)]
    struct Faulty(Arc<Mutex<Option<DuplexStream>>>, Arc<AtomicBool>);

    impl Listener for Faulty {
        type Io = DuplexStream;
        type Addr = ();

        async fn accept(&mut self) -> (DuplexStream, ()) {
            assert!(self.1.swap(true, Ordering::Relaxed), "no connection yet");
            let stream = self.0.lock().take();
            match stream {
                Some(stream) => (stream, ()),
                None => std::future::pending().await,
            }
        }

        fn local_addr(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_where_connections_are_accepted_ends_no_server() {
        let (mut client, server) = duplex(1024);
        let listener = Faulty(Arc::new(Mutex::new(Some(server))), Arc::default());
        let router = Router::new().route("/", axum::routing::get(async || "served"));
        let stop = CancellationToken::new();
        let mut task = serve("a test", listener, router, stop.clone());
        client.write_all(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("served"), "{answer}");
        stop.cancel();
        task.join().await.unwrap();
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
