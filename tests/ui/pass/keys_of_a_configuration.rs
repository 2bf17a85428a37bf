#![deny(warnings)]

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use verger::config::ChildConfig;
use verger::{ChildSpec, Context, Exit, Supervisor, SupervisorBuilder, supervisor, worker};

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    batch: usize,
}

impl Settings {
    async fn check(settings: Arc<Self>) -> Exit {
        if settings.batch > 1000 { Err("`batch` is over 1000".into()) } else { Ok(()) }
    }
}

#[worker(config = Settings, restart_on_change, validate = Settings::check, config_section = "storage")]
async fn writer(ctx: Context) {
    ctx.cancelled().await;
}

#[worker(config = C, start_when_configured)]
async fn generic<C: DeserializeOwned + Send + Sync + 'static>(ctx: Context, _of: Option<C>) {
    ctx.cancelled().await;
}

#[derive(Clone)]
struct Reader;

#[worker(
    config = Settings,
    validate = async |new: Arc<Settings>| -> Exit { Self::check(new.batch) },
)]
impl Reader {
    fn check(batch: usize) -> Exit {
        if batch > 1000 { Err("`batch` is over 1000".into()) } else { Ok(()) }
    }

    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

#[supervisor]
struct App {
    #[child]
    writer: ChildSpec,
    #[child(config = (u8, Option<Settings>), config_section = self.section.clone())]
    pair: ChildSpec,
    #[child(config_section = format!("{}/table", self.section), config = Settings)]
    reader: Reader,
    section: String,
}

#[derive(Supervisor)]
struct Derived {
    #[child(config = std::collections::HashMap<String, u8>, restart_on_change, restart = "transient")]
    map: ChildSpec,
}

fn by_builder() -> SupervisorBuilder {
    let config = ChildConfig::<Settings>::new().validate(Settings::check).restart_on_change();
    let idle = async |ctx: Context| ctx.cancelled().await;
    Supervisor::builder("app").child(verger::worker("writer", idle).config(config.section("storage")))
}

pub(crate) fn main() {
    let app = App { writer: writer(), pair: writer(), reader: Reader, section: "storage".to_owned() };
    drop(app.builder().build().unwrap());
    drop(Derived { map: generic::<Settings>(None) }.builder().build().unwrap());
    drop(by_builder().build().unwrap());
}
