//! The event bus: events and requests between children that don't know each other.
//!
//! A tree has one bus. A child registers handlers with [`Context::bus`](crate::Context::bus), by the type of
//! the event. Any child, and any holder of a [`SupervisorHandle`](crate::SupervisorHandle::bus), emits events and
//! calls handlers:
//!
//! * [`emit`](Bus::emit) queues an event for all handlers of its type, and doesn't wait.
//! * [`call`](Bus::call) sends a [`Request`] to the one handler that [answers](Bus::answer) it, and waits.
//!
//! A handler ends with the incarnation that has registered it, so there never is a handler of a dead child. It
//! receives the events from then on, one at a time and in order. An event without a handler, or for which there is
//! no room, becomes a [dead letter](crate::dead_letter). Use a [mailbox](mod@crate::mailbox) for messages
//! that must survive a restart of their receiver.
//!
//! ```
//! use std::sync::Arc;
//!
//! use tokio::sync::mpsc;
//! use verger::{Context, Exit, Readiness, Supervisor, worker_with};
//!
//! struct OrderPlaced {
//!     number: u32,
//! }
//!
//! async fn shipping(ctx: Context, shipped: mpsc::Sender<u32>) -> Exit {
//!     ctx.bus().on(move |order: Arc<OrderPlaced>| {
//!         let shipped = shipped.clone();
//!         async move { shipped.send(order.number).await }
//!     });
//!     ctx.ready();
//!     ctx.cancelled().await;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (shipped, mut orders) = mpsc::channel(8);
//! let shipping = worker_with("shipping", shipped, shipping).readiness(Readiness::Signal);
//! let shop = Supervisor::builder("shop").child(shipping).build()?.start().await?;
//!
//! shop.bus().emit(OrderPlaced { number: 7 });
//! assert_eq!(orders.recv().await, Some(7));
//! # shop.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # With macros
//!
//! A method with `#[on]` in an `impl` block under `#[worker]` is a handler of events.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use verger::{Context, component, worker};
//!
//! struct Saved {
//!     id: u32,
//! }
//!
//! #[derive(Clone, Default)]
//! struct Indexer {
//!     last: Arc<AtomicU32>,
//! }
//!
//! #[worker]
//! impl Indexer {
//!     async fn run(&mut self, ctx: &Context) {
//!         ctx.cancelled().await;
//!     }
//!
//!     #[on(capacity = 128)]
//!     async fn saved(&self, event: Arc<Saved>) {
//!         self.last.store(event.id, Ordering::Relaxed);
//!     }
//! }
//! # drop(component("indexer", Indexer::default()));
//! ```

// | file | contents |
// | --- | --- |
// | `child_bus`, `publisher` | what users call |
// | `topics` | the handlers of a tree, by channel and type |
// | `events`, `requests` | handlers of events and of requests: how they are found, and the loops that call them |
// | `registration` | how a handler ends, its queue, and its call, with its panics caught |
// | `letters` | the emitter of an event, the dead letters of its events, and their handlers |
//
// Invariants:
//
// 1. A registration ends before the exit of its incarnation is reported.
// 2. An event that was accepted is handled, or becomes a dead letter, once for each handler.
// 3. No value of a user's is dropped, and no waker is called, while a lock is held.
// 4. A caller holds no sender of the handler's queue while it waits for the answer: a request that was queued
//    behind the end of its handler is dropped with the last sender, which fails the call.

mod child_bus;
mod events;
mod letters;
mod publisher;
mod registration;
mod requests;
mod topics;

pub use self::child_bus::Bus;
pub use self::publisher::{BusError, CallError, Publisher};
pub use self::registration::Registration;
pub use self::requests::Request;
pub(crate) use self::topics::BusShared;
pub use self::topics::DEAD_LETTER_CHANNEL;
