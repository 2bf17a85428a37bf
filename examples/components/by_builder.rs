//! The tree of `components.rs`, made with the builder.
//!
//! The writer is the same: an `impl` block under `#[worker]` is a `Child` like any other.

use std::time::Duration;

use tokio::time::sleep;
use verger::policy::AutoShutdown;
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, RestartType, Shutdown, Strategy,
    Supervisor, SupervisorBuilder, component, worker_with,
};

use super::{Line, Readings, Writer};

pub(crate) fn station() -> SupervisorBuilder {
    Supervisor::builder("station")
        .auto_shutdown(AutoShutdown::AnySignificant)
        .restarts(3, Duration::from_secs(10))
        .child(archive(Writer::default(), 4))
        .child(sensors().into_child().requires("archive"))
        .child(shift(Duration::from_secs(4)).significant())
}

fn archive(writer: Writer, max_uploads: usize) -> SupervisorBuilder {
    Supervisor::builder("archive")
        .strategy(Strategy::RestForOne)
        .child(DynamicSupervisor::builder("uploads").max_children(max_uploads))
        .child(
            component("writer", writer)
                .requires("uploads")
                .activation_timeout(Duration::from_secs(5)),
        )
}

fn sensors() -> SupervisorBuilder {
    let base = Duration::from_millis(400);
    let backoff = Backoff::linear(base, base, Duration::from_secs(5)).jitter(0.0);
    Supervisor::builder("sensors")
        .defaults(|child| child.backoff(backoff))
        .child(sensor("north", Line::new(None)))
        .child(sensor("south", Line::new(Some(7))).shutdown(Shutdown::BrutalKill))
}

fn sensor(name: &str, line: Line) -> ChildSpec {
    async fn sensor(ctx: Context, line: Line) -> Exit {
        let mut readings = ctx.watch_service::<Readings>();
        while let Some(reading) = ctx.run_until_cancelled(line.read()).await {
            let (reading, Readings(writer)) = (reading?, readings.get().await?);
            _ = writer.send(reading).await;
        }
        Ok(())
    }
    worker_with(name, line, sensor).restart(RestartType::Transient)
}

#[expect(clippy::print_stdout, reason = "the output is visible without a log")]
fn shift(length: Duration) -> ChildSpec {
    async fn shift(ctx: Context, length: Duration) -> Exit {
        if ctx.run_until_cancelled(sleep(length)).await.is_some() {
            println!("{}", ctx.parent().status().await?);
        }
        Ok(())
    }
    worker_with("shift", length, shift).restart(RestartType::Transient)
}
