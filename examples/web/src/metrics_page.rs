//! The child that serves `/metrics` for Prometheus, and sets the gauges.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::time::interval;
use verger::metrics::Gauges;
use verger::{Context, Exit};

/// How often the gauges are set. Prometheus should not scrape more often.
const SAMPLED_EVERY: Duration = Duration::from_secs(5);
/// The upper bounds of the buckets of both histograms, in seconds.
const BUCKETS: [f64; 8] = [0.01, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0];

/// Installs the recorder. Do this before the tree starts, so that everything is counted.
pub(crate) fn install_recorder() -> PrometheusHandle {
    let buckets = |builder: PrometheusBuilder, name: &str| {
        let metric = Matcher::Full(name.to_owned());
        builder.set_buckets_for_metric(metric, &BUCKETS).expect("there are buckets")
    };
    let builder = buckets(PrometheusBuilder::new(), "verger_restart_delay_seconds");
    let recorder = buckets(builder, "verger_stop_seconds").build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).expect("the only recorder");
    verger::metrics::describe();
    metrics::describe_counter!("web_requests_total", "Requests, by the status of the answer");
    handle
}

pub(crate) async fn metrics_page(
    ctx: Context,
    (listener, recorder): (Arc<TcpListener>, PrometheusHandle),
) -> Exit {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
    tracing::info!(address = %listener.local_addr()?, "serving metrics");
    let renderer = recorder.clone();
    let page = Router::new().route("/metrics", get(async move || renderer.render()));
    let app = ctx.parent();
    let sample = async {
        let (mut samples, mut gauges) = (interval(SAMPLED_EVERY), Gauges::new());
        loop {
            samples.tick().await;
            gauges.record(&app.status().await?);
            // Otherwise histograms keep every value until the next scrape.
            recorder.run_upkeep();
        }
    };
    tokio::select! {
        // A scrape that is open then isn't waited for.
        () = ctx.cancelled() => Ok(()),
        served = axum::serve(listener, page).into_future() => Ok(served?),
        failed = sample => failed,
    }
}
