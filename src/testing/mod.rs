//! A kit for testing trees.
//!
//! A [`TestTree`] runs a tree as the program would, from the same builder. The test lets children
//! fail where they would not by themselves, waits for what follows, and at the end sees to it that
//! nothing is left. It needs the feature `testing`, best among the dev-dependencies, and tokio's
//! `test-util`:
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
//! /// What is tested. In `main`, it is built and run.
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
//!     // The grace of the API; the second that the database waits has passed meanwhile.
//!     assert_eq!(began.elapsed(), Duration::from_secs(5));
//!     tree.stop().await;
//! }
//! # fn main() { an_api_that_hangs_does_not_keep_the_database_down() }
//! ```
//!
//! # Time
//!
//! With `start_paused` the clock stands still while anybody has something to do, and otherwise jumps
//! to the next instant at which somebody has. A backoff of an hour takes no time, and elapsed times
//! are exact: assert that they are equal, not that they are near. A jitter is drawn anew in each
//! run; turn it off with [`Backoff::jitter`](crate::Backoff::jitter)`(0.0)` where it matters.
//!
//! A child that is never idle, such as a loop around `yield_now`, keeps the clock from moving at all:
//! then neither a wait nor the [patience](TestTree::patience) ever ends. Let it sleep.
//!
//! # Faults
//!
//! | | the child |
//! | --- | --- |
//! | [`kill`](TestTree::kill) | is aborted, and that is a failure |
//! | [`hang`](TestTree::hang) | does nothing more, and has to be aborted |
//! | [`fail_next_start`](TestTree::fail_next_start) | fails in its next start |
//! | [`hang_next_start`](TestTree::hang_next_start) | hangs in its next start |
//!
//! They need no help from the children. They strike those that are described in the builder, at any
//! depth, and those that the test adds with [`start_child`](TestTree::start_child). Out of reach are
//! children that are added by other children, and what is below a
//! [`Supervisor`](struct@crate::Supervisor) that was built before it was given to the builder:
//! these can only be killed.
//!
//! # What happened
//!
//! [`wait_for`](TestTree::wait_for) waits for one child and one state.
//! [`expect`](TestTree::expect) and [`expect_exactly`](TestTree::expect_exactly) wait for events in
//! an order. Each goes on where the last one ended, so that a test reads from top to bottom as what
//! happens does. If they fail, they show what did happen, in the same words:
//!
//! ```text
//! expected, in this order:
//!   ✓ db: active -> errored (aborted)
//!   ✗ db: -> stopped
//! but nothing came of it within 3600s
//! since the last that was expected before:
//!        0ns  db: active -> errored (aborted)
//!        0ns  db: errored -> restarting
//!         1s  db: restarting -> resolved
//!         1s  db: resolved -> activating
//!         1s  db: activating -> active
//! ```

mod assertion;
mod builder;
mod expect;
mod faults;
mod log;
mod random;
mod tree;

pub use self::builder::Builder;
pub use self::expect::Expect;
pub use self::random::Lcg;
pub use self::tree::TestTree;
