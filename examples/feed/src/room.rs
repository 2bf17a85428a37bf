//! A bounded number of connections, each of which is a child of a dynamic supervisor.
//!
//! A room knows when each connection was last active, and not what is said on it. It outlives the
//! child that accepts connections.
//!
//! 1. A room has at most `max` connections.
//! 2. If a further one arrives, the one that has been silent for longest is closed for it. A
//!    connection whose lines are being stored isn't silent.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tracing::{debug, warn};
use verger::{Context, ControlError, Exit, ExitError, SupervisorHandle};

/// The wait after an error such as *too many open files*, which passes when connections close.
const PAUSE: Duration = Duration::from_millis(100);

/// The activity of a connection that can't be closed for a new one.
const BUSY: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Room {
    max: usize,
    /// Counts activities, so that of two the later one is known.
    activities: AtomicU64,
    seats: Mutex<Vec<(String, Weak<AtomicU64>)>>,
}

/// A connection's place in a room, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    room: Arc<Room>,
    last_active: Arc<AtomicU64>,
}

impl Seat {
    /// Records that the peer has just sent a complete line or request.
    pub(crate) fn active(&self) {
        self.last_active.store(self.room.activity(), Relaxed);
    }

    /// Keeps the connection open until it is [`active`](Self::active) again.
    pub(crate) fn busy(&self) {
        self.last_active.store(BUSY, Relaxed);
    }
}

impl Room {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, activities: AtomicU64::new(0), seats: Mutex::default() })
    }

    /// Accepts connections until the calling child is cancelled, and serves each in a child of
    /// `connections`.
    pub(crate) async fn accept<F: Future<Output = Exit> + Send + 'static>(
        self: &Arc<Self>,
        ctx: &Context,
        listener: &TcpListener,
        connections: &SupervisorHandle,
        serve: impl Fn(Context, TcpStream, Seat) -> F + Clone + Send + Sync + 'static,
    ) -> Exit {
        while let Some(accepted) = ctx.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((socket, peer)) => {
                    if let Err(error) = self.admit(connections, socket, serve.clone()).await {
                        // The socket is closed. The client may connect again.
                        warn!(%peer, %error, "connection refused");
                    }
                }
                Err(error) => {
                    warn!(%error, "accept failed");
                    ctx.run_until_cancelled(sleep(PAUSE)).await;
                }
            }
        }
        Ok(())
    }

    async fn admit<F: Future<Output = Exit> + Send + 'static>(
        self: &Arc<Self>,
        connections: &SupervisorHandle,
        socket: TcpStream,
        serve: impl Fn(Context, TcpStream, Seat) -> F + Clone + Send + Sync + 'static,
    ) -> Result<(), ExitError> {
        if self.is_full() {
            let silent = self.longest_silent().ok_or("the lines of all connections wait")?;
            debug!(connection = silent, "closing a silent connection for a new one");
            match connections.stop_child(&silent).await {
                // It has ended by itself.
                Ok(()) | Err(ControlError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let last_active = Arc::new(AtomicU64::new(self.activity()));
        let place = Arc::downgrade(&last_active);
        let seat = Seat { room: Arc::clone(self), last_active };
        let child = connections.start_once("peer", move |ctx| serve(ctx, socket, seat)).await?;
        self.lock().push((child.name().to_owned(), place));
        Ok(())
    }

    fn is_full(&self) -> bool {
        let mut seats = self.lock();
        if seats.len() >= self.max {
            seats.retain(|(_, place)| place.strong_count() > 0);
        }
        seats.len() >= self.max
    }

    /// Returns the name of the connection that has been silent for longest.
    fn longest_silent(&self) -> Option<String> {
        let seats = self.lock();
        let active = |place: &Weak<AtomicU64>| place.upgrade().map_or(0, |at| at.load(Relaxed));
        let silent = seats.iter().map(|(name, place)| (active(place), name));
        silent.filter(|(at, _)| *at != BUSY).min().map(|(_, name)| name.clone())
    }

    fn activity(&self) -> u64 {
        self.activities.fetch_add(1, Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(String, Weak<AtomicU64>)>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(room: &Arc<Room>, name: &str) -> Seat {
        let last_active = Arc::new(AtomicU64::new(room.activity()));
        room.lock().push((name.into(), Arc::downgrade(&last_active)));
        Seat { room: Arc::clone(room), last_active }
    }

    #[test]
    fn the_connection_that_is_silent_for_longest_makes_room() {
        let room = Room::new(3);
        let [a, b, c] = ["a", "b", "c"].map(|name| seat(&room, name));
        assert_eq!((room.is_full(), room.longest_silent().as_deref()), (true, Some("a")));

        a.active();
        assert_eq!(room.longest_silent().as_deref(), Some("b"));
        b.busy();
        assert_eq!(room.longest_silent().as_deref(), Some("c"));
        c.busy();
        a.busy();
        assert_eq!(room.longest_silent(), None);
    }

    #[test]
    fn a_connection_that_has_ended_leaves_its_seat() {
        let room = Room::new(2);
        let [_a, b] = ["a", "b"].map(|name| seat(&room, name));

        drop(b);

        assert!(!room.is_full());
        assert_eq!(room.lock().len(), 1);
    }
}
