//! Items with the names of those of the standard library and of verger.

#![allow(dead_code, non_camel_case_types, unused_macros, reason = "they exist for their names")]

use verger::{ChildSpec, Context, Supervisor as Derive, supervisor, worker};

struct Result;
struct Option;
struct Vec;
struct String;
struct Ok;
struct Err;
struct Some;
struct None;
struct Pin;
struct Duration;
struct Future;
struct Path;
struct str;
struct Backoff;
struct BinarySlots;
struct Jitter;
struct Reset;
struct Intensity;
struct OnExhausted;
struct FailureLog;
struct LogLevel;
struct Preset;
trait From {}
trait Into {}
trait Send {}
trait Sync {}
trait Clone {}
trait Default {}
mod std {}
mod core {}

/// A worker with such a name.
#[derive(::std::clone::Clone)]
struct Box<T = ()>(T);

macro_rules! loop_ {
    () => {};
}

#[worker(shutdown = "5s", backoff(exponential))]
async fn clock(ctx: Context, zone: u32, hour: u32) {
    let _ = (zone, hour);
    ctx.cancelled().await;
}

#[worker(
    activation_timeout = "5s",
    backoff(linear, base = "1s", jitter = 0.5),
    on_leak = "park"
)]
impl Box {
    async fn activate(&mut self, _: &Context) {}

    async fn run(&mut self, ctx: &Context) -> verger::Exit {
        ctx.cancelled().await;
        ::std::result::Result::Ok(())
    }
}

#[derive(::std::clone::Clone)]
struct Db(Box<u32>);

#[worker]
impl Db {
    async fn run(&self) {
        let Box(_) = self.0;
    }
}

#[supervisor(
    max_restarts = 5,
    period = "5s",
    on_exhausted = "park",
    defaults(restart = "transient", on_exhausted = "stop_child"),
    child(shutdown = "1s")
)]
struct App {
    #[child]
    clock: ChildSpec,
    #[child]
    mailbox: Box,
    #[child]
    db: Db,
    #[supervisor]
    supervisor: Supervisor,
}

#[derive(Derive)]
struct Supervisor {
    #[child]
    clock: ChildSpec,
}

pub(crate) fn main() {
    let supervisor = Supervisor { clock: clock(0, 1) };
    let app = App { clock: clock(0, 1), mailbox: Box(()), db: Db(Box(5)), supervisor };
    assert!(app.builder().build().is_ok());
}
