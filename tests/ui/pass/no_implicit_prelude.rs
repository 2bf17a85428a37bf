//! The expansions use no name of the prelude.

#![no_implicit_prelude]

use ::verger::{Supervisor, supervisor, worker};

#[worker(
    restart = "transient",
    backoff(exponential, jitter = 0.5),
    failure_log = ::verger::policy::FailureLog::at(::verger::policy::LogLevel::Info)
)]
async fn clock(ctx: ::verger::Context, zone: u32, hour: u32) -> ::verger::Exit {
    let _ = (zone, hour);
    ctx.cancelled().await;
    ::core::result::Result::Ok(())
}

#[worker(capacity = 5, mailbox = |it| it.max_attempts(3))]
async fn writer(mut inbox: ::verger::mailbox::Inbox<u32>, zone: u32) {
    inbox.recv().await;
    let _ = zone;
}

const NONE: ::core::option::Option<i32> = ::core::option::Option::None;

struct Db;

impl ::core::clone::Clone for Db {
    fn clone(&self) -> Self {
        Self
    }
}

#[worker(shutdown = "20s", requires = "clock")]
impl Db {
    async fn activate(&mut self) {}

    async fn run(&self, ctx: &::verger::Context) -> ::verger::Exit {
        ctx.cancelled().await;
        ::core::result::Result::Ok(())
    }
}

#[supervisor(
    strategy = "one_for_all",
    defaults(shutdown = "1s", on_exhausted = "park"),
    backoff(none),
    max_restarts = 5,
    period = "1s"
)]
struct App {
    #[child(fallback = clock(1, 2), leave_down_if = |error: &::std::io::Error| error.raw_os_error() == NONE)]
    clock: ::verger::ChildSpec,
    #[child]
    db: Db,
    #[supervisor]
    below: Derived,
    #[dynamic(max_children = 5)]
    conns: ::verger::DynamicSupervisor,
}

#[::core::prelude::v1::derive(Supervisor)]
#[tree(start = "concurrent")]
struct Derived {
    #[child(shutdown = "brutal_kill")]
    clock: ::verger::ChildSpec,
}

#[worker]
async fn generic<T: ::core::fmt::Display>(value: T) {
    let _ = value;
}

pub(crate) fn main() {
    let _ = generic(5);
    let _ = writer(5);
    let below = Derived { clock: clock(0, 1) };
    let conns = ::verger::DynamicSupervisor;
    let app = App { clock: clock(0, 1), db: Db, below, conns };
    ::core::mem::drop(app.builder().build().unwrap());
}
