//! The console, as its page and other programs see it: each request, what is refused, and what an open page may
//! not do to a tree.

mod acting;
#[cfg(all(feature = "health", feature = "lease", feature = "testing"))]
mod agreement;
mod application;
mod client;
mod configuration;
mod guarding;
#[cfg(all(feature = "health", feature = "lease", feature = "testing"))]
#[path = "../common/log.rs"]
mod log;
mod looking;
mod past;
mod streams;

use std::time::Duration;

use client::{Server, TOKEN, serve};
use serde_json::Value;
use verger::console::Console;
use verger::{Context, Supervisor, SupervisorBuilder, SupervisorHandle};

async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app")
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

/// A console that allows actions.
fn console() -> Console {
    Console::new().allow_actions(true).token(TOKEN)
}

/// Serves a console in memory.
fn served(console: Console, tree: &SupervisorHandle) -> Server {
    serve(console.router(tree))
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Replaces the values that differ between two runs: points in time, and how long something has lasted.
fn without_times(mut value: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(walk),
            Value::Object(map) => {
                for (key, value) in map {
                    let is_time = key == "for_ms" || key.ends_with("at_ms") || key == "since_ms";
                    let is_process = key == "pid" || key == "uptime_ms" || key == "defined_at";
                    if (is_time || is_process) && !value.is_null() {
                        *value = "…".into();
                    } else {
                        walk(value);
                    }
                }
            }
            _ => {}
        }
    }

    walk(&mut value);
    value
}
