//! A kit for testing trees.
//!
//! A [`TestTree`] runs the tree of a program, from the same builder. A test makes children fail,
//! waits for the events that follow, and checks at the end that no child is left over. Enable the
//! feature `testing` of this crate and `test-util` of tokio as dev-dependencies:
//!
//! ```toml
//! [dev-dependencies]
//! verger = { version = "0.1", features = ["testing"] }
//! tokio = { version = "1", features = ["rt", "macros", "test-util"] }
//! ```
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use tokio::time::Instant;
//! use verger::testing::TestTree;
//! use verger::{Backoff, Context, Lifecycle, Strategy, Supervisor, SupervisorBuilder, worker};
//!
//! async fn db(ctx: Context) {
//!     ctx.cancelled().await;
//! }
//!
//! async fn api(ctx: Context) {
//!     ctx.cancelled().await;
//! }
//!
//! /// The tree of the program, which `main` builds and runs.
//! fn app() -> SupervisorBuilder {
//!     let second = Duration::from_secs(1);
//!     Supervisor::builder("app")
//!         .strategy(Strategy::OneForAll)
//!         .child(worker("db", db).backoff(Backoff::constant(second)))
//!         .child(worker("api", api).shutdown(5 * second))
//! }
//!
//! # /*
//! #[tokio::test(start_paused = true)]
//! # */
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn an_api_that_hangs_does_not_keep_the_database_down() {
//!     let tree = TestTree::start(app()).await;
//!     let began = Instant::now();
//!
//!     tree.hang("api");
//!     tree.kill("db").await;
//!     tree.expect([
//!         "db: active -> errored (aborted)",
//!         "api: active -> deactivating",
//!         "api: deactivating -> stopped (killed)",
//!         "db: activating -> active",
//!         "api: activating -> active",
//!     ])
//!     .await;
//!
//!     // The grace of the API, which is longer than the backoff of the database.
//!     assert_eq!(began.elapsed(), Duration::from_secs(5));
//!     tree.stop().await;
//! }
//! # fn main() { an_api_that_hangs_does_not_keep_the_database_down() }
//! ```
//!
//! # Time
//!
//! With `start_paused`, the clock advances only while every task is idle, to the next timer. A
//! backoff of an hour takes no time, and elapsed times are exact: assert that they are equal. Jitter
//! differs from run to run; turn it off with [`Backoff::jitter`](crate::Backoff::jitter)`(0.0)`
//! where it matters.
//!
//! A child that is never idle, such as a loop around `yield_now`, stops the clock, and so does code that blocks a
//! thread, such as a [`blocking`](crate::blocking()) child or a closure of
//! [`spawn_blocking`](crate::Context::spawn_blocking). The clock goes on when the closure returns, or while it
//! waits with [`BlockingContext::sleep`](crate::BlockingContext::sleep) or
//! [`block_on`](crate::BlockingContext::block_on). An assertion that waits for 30 s of real time while the clock stands
//! still fails, and names the children that block: see [`real_patience`](TestTree::real_patience).
//!
//! # Faults
//!
//! | | the child |
//! | --- | --- |
//! | [`kill`](TestTree::kill) | is aborted, which is a failure |
//! | [`hang`](TestTree::hang) | is no longer polled, and has to be aborted |
//! | [`fail_next_start`](TestTree::fail_next_start) | fails in its next start |
//! | [`hang_next_start`](TestTree::hang_next_start) | hangs in its next start |
//!
//! The children need no code for this. Faults apply to all children in the builder, at any depth,
//! and to children that the test adds with [`start_child`](TestTree::start_child). Children that
//! other children add can only be killed, and so can children below a
//! [`Supervisor`](struct@crate::Supervisor) that was built before it was passed to the builder.
//!
//! # Leases
//!
//! With the feature `lease`, `MemoryLeases` is a store of leases in memory that can be made to fail, and
//! `assert_lease_rules` checks an engine of your own.
//!
//! # Events
//!
//! [`wait_for`](TestTree::wait_for) waits until one child is in a state.
//! [`expect`](TestTree::expect) and [`expect_exactly`](TestTree::expect_exactly) wait for several
//! events in order. Each call continues after the last event of the previous one. If a call fails,
//! it shows what happened instead, in the same notation:
//!
//! ```text
//! expected, in this order:
//!   ✓ db: active -> errored (aborted)
//!   ✗ db: -> stopped
//! but it did not happen within 3600s
//! since the last event that was expected before:
//!        0ns  db: active -> errored (aborted)
//!        0ns  db: errored -> restarting
//!         1s  db: restarting -> resolved
//!         1s  db: resolved -> activating
//!         1s  db: activating -> active
//! ```

mod expect;
mod faults;
#[cfg(feature = "lease")]
mod leases;
mod log;
mod random;
mod standstill;
mod tree;

pub use self::expect::Expect;
#[cfg(feature = "lease")]
pub use self::leases::{LeaseEffect, LeaseEvent, LeaseRequest, MemoryLeases, assert_lease_rules};
pub use self::random::Lcg;
pub use self::tree::TestTree;
