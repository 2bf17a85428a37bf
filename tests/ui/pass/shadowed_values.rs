//! Constants, statics and functions with the names that the expansions use.

#![allow(non_upper_case_globals, dead_code, reason = "they only stand in the way")]

use verger::{ChildSpec, Context, DynamicSupervisor, component, supervisor};

const child: u32 = 1;
const spec: u32 = 2;
const ctx: u32 = 3;
const node: u32 = 4;
const builder: u32 = 5;
const self_: u32 = 6;
const name: u32 = 7;
const state: u32 = 8;
static argument: u32 = 9;
static context: u32 = 10;
static run: u32 = 11;
static clock: u32 = 12;

fn worker() {}
fn worker_with() {}
fn supervised() {}

mod workers {
    use super::*;

    #[verger::worker(restart = "transient", shutdown = "5s")]
    pub(super) async fn one(of: Context) {
        of.cancelled().await;
    }

    #[verger::worker]
    pub(super) async fn several(of: Context, first: u32, second: u32) {
        assert_eq!((first, second), (1, 2));
        of.cancelled().await;
    }

    #[verger::worker]
    pub(super) async fn nameless(_: Context, _: u32, (third, _): (u32, u32)) {
        assert_eq!(third, 3);
        std::future::pending().await
    }

    #[verger::worker]
    pub(super) async fn without(first: u32, second: u32) {
        assert_eq!((first, second), (child, spec));
        std::future::pending().await
    }
}

#[derive(Clone)]
struct Db;

#[verger::worker(restart = "transient", activation_timeout = "5s")]
impl Db {
    async fn activate(&mut self, given: &Context) {
        assert!(!given.is_cancelled());
    }

    async fn run(&mut self, given: &Context) {
        given.cancelled().await;
    }
}

#[supervisor(max_restarts = child, period = "5s", defaults(shutdown = "1s"), backoff(none))]
struct App {
    #[child]
    one: ChildSpec,
    #[child]
    #[cfg(feature = "macros")]
    several: ChildSpec,
    #[child]
    without: ChildSpec,
    #[child]
    nameless: ChildSpec,
    #[child]
    db: Db,
    #[dynamic(defaults(restart = "temporary"), max_children = spec as usize)]
    conns: DynamicSupervisor,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let app = App {
        one: workers::one(),
        several: workers::several(1, 2),
        without: workers::without(1, 2),
        nameless: workers::nameless(1, (3, 4)),
        db: Db,
        conns: DynamicSupervisor,
    };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    let root = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!(root.max_restarts, Some(1));
    let stopped = tree.stop("the test is over").await.unwrap_err();
    assert!(stopped.to_string().starts_with("stopped, but killed"), "{stopped}");
    assert_eq!(component("db", Db).name(), "db");
}
