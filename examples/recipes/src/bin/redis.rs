//! A cache of values in Redis, which is emptied together with its invalidation listener.
//!
//! ```text
//! app                  one_for_one
//! ├─ server            redis-server, which is killed
//! └─ cached            one_for_all
//!    ├─ invalidations  listens for changed keys, and removes them from the values
//!    └─ cache          reads through the values
//! ```
//!
//! While the listener isn't connected, keys change without notice, so the values that it left are wrong. With `one_for_all`,
//! a failure of one of the two ends both, and both begin with no values.
//!
//! A clone of an ended `Cache` still has the old values. Take it with `ctx.service()` when you need it, and don't keep it.
//!
//! ```text
//! cargo run --bin redis
//! ```

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use futures_util::StreamExt;
use recipes::{Server, until_active};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Client};
use tokio::sync::Mutex;
use tokio::time::sleep;
use verger::{Context, Exit, Readiness, Strategy, Supervisor, SupervisorBuilder, worker_with};

type Values = Arc<Mutex<HashMap<String, String>>>;

/// The first of the two: no value is read before the listener hears of its changes.
async fn invalidations(ctx: Context, client: Client) -> Exit {
    let mut changes = client.get_async_pubsub().await?;
    changes.subscribe("changed").await?;
    let values = Values::default();
    ctx.provide(Arc::clone(&values))?;
    ctx.ready();
    let mut keys = changes.into_on_message();
    while let Some(message) = ctx.run_until_cancelled(keys.next()).await {
        let key: String = message.ok_or("the connection has ended")?.get_payload()?;
        values.lock().await.remove(&key);
    }
    Ok(())
}

#[derive(Clone)]
struct Cache(MultiplexedConnection, Values);

impl Cache {
    async fn get(&self, key: &str) -> redis::RedisResult<String> {
        // Locked while the value is read, so that its removal comes after it.
        let mut values = self.1.lock().await;
        if let Some(value) = values.get(key) {
            return Ok(value.clone());
        }
        let value: String = self.0.clone().get(key).await?;
        values.insert(key.to_owned(), value.clone());
        Ok(value)
    }
}

async fn cache(ctx: Context, client: Client) -> Exit {
    let values = ctx.service().await?;
    ctx.provide(Cache(client.get_multiplexed_async_connection().await?, values))?;
    ctx.ready();
    ctx.cancelled().await;
    Ok(())
}

fn cached(client: &Client) -> SupervisorBuilder {
    let listener = worker_with("invalidations", client.clone(), invalidations);
    Supervisor::builder("cached")
        .strategy(Strategy::OneForAll)
        .child(listener.readiness(Readiness::Signal))
        .child(worker_with("cache", client.clone(), cache).readiness(Readiness::Signal))
}

async fn show() -> anyhow::Result<String> {
    let server = Server::redis()?;
    let client = Client::open(format!("redis://{}", server.address()))?;
    let app = Supervisor::builder("app").child(server.child()).child(cached(&client));
    let app = app.build()?.start().await?;
    let cached = app.supervisor("cached").await?;

    let mut redis = client.get_multiplexed_async_connection().await?;
    let () = redis.set("city", "Ghent").await?;
    let first: Cache = cached.service().await?;
    ensure!(first.get("city").await? == "Ghent", "the value isn't read");
    let () = redis.set("city", "Lille").await?;
    ensure!(first.get("city").await? == "Ghent", "the value isn't cached");
    let () = redis.publish("changed", "city").await?;
    while first.get("city").await? != "Lille" {
        sleep(Duration::from_millis(5)).await;
    }

    app.kill("server").await?;
    until_active(&app, "server", 2).await?;
    let mut redis = client.get_multiplexed_async_connection().await?;
    // A change without notice.
    let () = redis.set("city", "Namur").await?;
    until_active(&app, "cached/cache", 2).await?;
    let second: Cache = cached.service().await?;
    let (old, new) = (first.get("city").await?, second.get("city").await?);
    app.stop("the recipe is over").await?;
    Ok(format!("redis: the old cache still says {old}, the new one {new}"))
}

fn main() -> ExitCode {
    recipes::run(show())
}
