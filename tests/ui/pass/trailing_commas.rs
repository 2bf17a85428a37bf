//! Lists may end in a comma, and attributes may be empty.

use verger::{ChildSpec, DynamicSupervisor, Supervisor, component, supervisor, worker};

#[worker()]
async fn nothing() {}

#[worker(
    restart = "transient",
    backoff(exponential, min = "1s",),
)]
async fn something(_first: u32, _second: u32,) {}

#[derive(Clone)]
struct Db;

#[worker(shutdown = "1s",)]
impl Db {
    async fn run(&mut self,) {}
}

#[supervisor()]
struct Empty {}

#[supervisor(strategy = "one_for_all", defaults(shutdown = "1s",), child(),)]
struct App {
    #[child()]
    nothing: ChildSpec,
    #[child(requires = ["nothing",],)]
    something: ChildSpec,
    #[supervisor()]
    empty: Empty,
    #[dynamic()]
    conns: DynamicSupervisor,
}

#[derive(Supervisor)]
#[tree()]
struct Derived {
    #[tree()]
    empty: Empty,
}

pub(crate) fn main() {
    let app = App {
        nothing: nothing(),
        something: something(1, 2),
        empty: Empty {},
        conns: DynamicSupervisor,
    };
    let app = app.builder().child(Derived { empty: Empty {} }).child(component("db", Db));
    assert!(app.build().is_ok());
}
