//! A service that is broken on purpose, with its metrics for Prometheus.
//!
//! ```text
//! app
//! ├─ metrics          answers scrapes
//! ├─ upkeep           sets the gauges, and calls `run_upkeep` of the recorder
//! ├─ writer           reads slower than the source sends
//! ├─ conns            connections, which come and go
//! └─ ingest
//!    ├─ parser        panics
//!    ├─ reader        loses its connection, and comes back after a backoff
//!    └─ source        sends to the writer
//! ```

#![expect(clippy::print_stdout, reason = "the program says where it can be scraped")]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::time::{interval, sleep};
use verger::mailbox::{Address, Inbox, Overflow};
use verger::metrics::Gauges;
use verger::{
    Application, Backoff, Context, DynamicSupervisor, Exit, Readiness, RestartType, Supervisor,
    mailbox_with_capacity, worker, worker_with, worker_with_mailbox,
};

const USAGE: &str = "usage: metrics-service [ADDRESS]   (default: 127.0.0.1:9464)";
/// How often the gauges are set. Prometheus should not scrape more often.
const SAMPLED_EVERY: Duration = Duration::from_secs(1);
/// The upper bounds of the buckets of both histograms, in seconds.
const BUCKETS: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:9464".to_owned());
    if arguments.next().is_some() || address.parse::<SocketAddr>().is_err() {
        println!("{USAGE}");
        return ExitCode::from(2);
    }
    // A port in use isn't silence: the child that listens is retried, and the log says so.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .log_internal_errors(false)
        .init();
    // Before the tree starts, so that it counts everything.
    let recorder = install_recorder();
    Application::new(app(address, recorder)).run().await
}

fn install_recorder() -> PrometheusHandle {
    let buckets = |builder: PrometheusBuilder, name: &str| {
        let metric = Matcher::Full(name.to_owned());
        builder.set_buckets_for_metric(metric, &BUCKETS).expect("there are buckets")
    };
    let builder = buckets(PrometheusBuilder::new(), "verger_restart_delay_seconds");
    let recorder = buckets(builder, "verger_stop_seconds").build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).expect("the only recorder");
    verger::metrics::describe();
    handle
}

fn app(address: String, recorder: PrometheusHandle) -> verger::SupervisorBuilder {
    let (to_writer, inbox) = mailbox_with_capacity(8);
    let second = Duration::from_secs(1);
    let ingest = Supervisor::builder("ingest")
        .restarts(90, Duration::from_secs(60))
        .child(worker("parser", parser).backoff(Backoff::constant(second / 2)))
        .child(worker("reader", reader).backoff(Backoff::exponential(second / 10, 3 * second)))
        .child(worker_with("source", to_writer, source));
    let conns = DynamicSupervisor::builder("conns");
    Supervisor::builder("app")
        .child(
            worker_with("metrics", (address, recorder.clone()), metrics_page)
                .readiness(Readiness::Signal),
        )
        .child(worker_with("upkeep", recorder, upkeep))
        .child(worker_with_mailbox("writer", inbox.overflow(Overflow::DropNewest), writer))
        .child(conns)
        .child(worker("accept", accept))
        .child(ingest)
}

/// Answers scrapes.
async fn metrics_page(ctx: Context, (address, recorder): (String, PrometheusHandle)) -> Exit {
    let listener = TcpListener::bind(&address).await?;
    println!("metrics on http://{}/metrics", listener.local_addr()?);
    let page = Router::new().route("/metrics", get(async move || recorder.render()));
    ctx.ready();
    Ok(axum::serve(listener, page).with_graceful_shutdown(ctx.cancelled()).await?)
}

/// Without `run_upkeep`, histograms keep every value until the next scrape: for ever, if none comes.
async fn upkeep(ctx: Context, recorder: PrometheusHandle) -> Exit {
    let (mut samples, mut gauges) = (interval(SAMPLED_EVERY), Gauges::new());
    let app = ctx.parent();
    let mut letters = app.dead_letters();
    let (mut lost, mut is_said) = (0, false);
    loop {
        tokio::select! {
            () = ctx.cancelled() => return Ok(()),
            _ = samples.tick() => {}
        }
        gauges.record(&app.status().await?);
        recorder.run_upkeep();
        while letters.try_next().is_some() {
            lost += 1;
        }
        let parser = app.which_child("ingest/parser").await?.restarts;
        let reader = app.which_child("ingest/reader").await?.restarts;
        if !is_said && lost > 0 && parser > 0 && reader > 0 {
            is_said = true;
            println!("everything has broken once: parser, reader and writer");
        }
    }
}

/// Panics after a while.
async fn parser(_ctx: Context) {
    sleep(Duration::from_millis(700)).await;
    panic!("line 17 has no end");
}

/// Loses its connection after a while.
async fn reader(_ctx: Context) -> Exit {
    sleep(Duration::from_millis(300)).await;
    Err("connection reset".into())
}

/// Sends more than the writer can take.
async fn source(ctx: Context, writer: Address<u64>) {
    let mut ticks = interval(Duration::from_millis(20));
    for number in 0.. {
        tokio::select! {
            () = ctx.cancelled() => return,
            _ = ticks.tick() => {}
        }
        // What doesn't fit is a dead letter, and no error.
        let _ = writer.try_send(number);
    }
}

async fn writer(ctx: Context, mut inbox: Inbox<u64>) {
    while let Some(_number) = inbox.recv().await {
        sleep(Duration::from_millis(50)).await;
        if ctx.is_cancelled() {
            return;
        }
    }
}

/// Adds connections, each of which ends by itself.
async fn accept(ctx: Context) -> Exit {
    let mut ticks = interval(Duration::from_millis(100));
    let conns = ctx.parent().supervisor("conns").await?;
    loop {
        tokio::select! {
            () = ctx.cancelled() => return Ok(()),
            _ = ticks.tick() => {}
        }
        let conn = worker("conn", async |_ctx| sleep(Duration::from_secs(1)).await);
        conns.start_child(conn.restart(RestartType::Temporary)).await?;
    }
}
