//! The name of each child is a constant of the struct.

#![deny(dead_code, missing_docs, unreachable_pub, unused)]

use verger::{ChildSpec, Context, DynamicSupervisor, Supervisor, supervisor, worker};

#[worker]
async fn idle(ctx: Context) {
    ctx.cancelled().await;
}

mod service {
    //! What is visible elsewhere.

    use super::{ChildSpec, supervisor};

    #[supervisor]
    pub(super) struct Ingest {
        #[child(name = "sensor_writer")]
        pub(super) writer: ChildSpec,
        #[cfg(any())]
        #[child]
        absent: Absent,
    }
}

use service::Ingest;

#[supervisor]
struct App {
    #[supervisor]
    ingest: Ingest,
    #[dynamic]
    open_conns: DynamicSupervisor,
    #[child]
    r#type: ChildSpec,
    #[child]
    _v2: ChildSpec,
    limit: usize,
}

impl App {
    const LIMIT: usize = 5;
}

#[derive(Supervisor)]
struct Clocks<T: Clone> {
    #[child]
    left: T,
}

const NAMES: [&str; 4] = [App::INGEST, App::OPEN_CONNS, App::TYPE, App::_V2];

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() {
    assert_eq!(NAMES, ["ingest", "open_conns", "type", "_v2"]);
    assert_eq!((Ingest::WRITER, App::LIMIT), ("sensor_writer", 5));
    assert_eq!(Clocks::<ChildSpec>::LEFT, "left");
    let clocks = Clocks { left: idle() };
    let app = App {
        ingest: Ingest { writer: idle() },
        open_conns: DynamicSupervisor,
        r#type: idle(),
        _v2: idle(),
        limit: 3,
    };
    assert_eq!(app.limit, 3);
    let app = app.builder().child(clocks.into_child()).build().unwrap().start().await.unwrap();
    let ingest = app.supervisor(App::INGEST).await.unwrap();
    let writer = ingest.child(Ingest::WRITER).await.unwrap();
    assert_eq!(writer.path().as_str(), format!("app/{}/{}", App::INGEST, Ingest::WRITER));
    app.stop("done").await.unwrap();
}
