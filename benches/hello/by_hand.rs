//! What `examples/hello.rs` does, on tokio alone.
use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{Id, JoinError, JoinSet};

type End = Result<(), Box<dyn Error + Send + Sync>>;
type Worker = (&'static str, fn(u32) -> Pin<Box<dyn Future<Output = End> + Send>>);

async fn ticker() -> End {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        tracing::info!("tick");
    }
}

async fn flaky(incarnation: u32) -> End {
    tokio::time::sleep(Duration::from_secs(3) * incarnation).await;
    Err("connection refused".into())
}

const WORKERS: [Worker; 2] =
    [("ticker", |_| Box::pin(ticker())), ("flaky", |incarnation| Box::pin(flaky(incarnation)))];

/// Starts a worker after a wait.
fn start(tasks: &mut JoinSet<End>, index: usize, incarnation: u32, wait: Duration) -> Id {
    let (_, run) = WORKERS[index];
    let task = tasks.spawn(async move {
        tokio::time::sleep(wait).await;
        run(incarnation).await
    });
    task.id()
}

fn describe(ended: Result<End, JoinError>) -> String {
    match ended {
        Ok(Ok(())) => "it ended".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::main]
async fn main() -> End {
    tracing_subscriber::fmt().init();
    let mut terminate = signal(SignalKind::terminate())?;
    let (mut tasks, mut running) = (JoinSet::new(), HashMap::new());
    let mut restarts = VecDeque::new();
    for index in 0..WORKERS.len() {
        running.insert(start(&mut tasks, index, 1, Duration::ZERO), (index, 1));
    }
    loop {
        let (id, ended) = tokio::select! {
            _ = tokio::signal::ctrl_c() => break,
            _ = terminate.recv() => break,
            Some(joined) = tasks.join_next_with_id() => match joined {
                Ok((id, end)) => (id, Ok(end)),
                Err(error) => (error.id(), Err(error)),
            },
        };
        let Some((index, incarnation)) = running.remove(&id) else { continue };
        let (name, _) = WORKERS[index];
        let (now, problem) = (Instant::now(), describe(ended));
        restarts.retain(|&at| now.duration_since(at) <= Duration::from_secs(60));
        if restarts.len() == 5 {
            return Err(format!("{name} failed too often: {problem}").into());
        }
        restarts.push_back(now);
        let wait = Duration::from_millis(200) * 2_u32.pow(incarnation.min(8) - 1);
        tracing::warn!("{name} failed and starts again in {wait:?}: {problem}");
        running.insert(start(&mut tasks, index, incarnation + 1, wait), (index, incarnation + 1));
    }
    tasks.shutdown().await;
    Ok(())
}
