//! A child is named after its field, and a root after its struct, unless `name` is set.

use verger::{ChildSpec, Supervisor, SupervisorBuilder, supervisor, worker};

#[supervisor]
struct HttpApi {
    #[child]
    any: ChildSpec,
    #[child(name = "täglich 7:30")]
    named: ChildSpec,
}

#[supervisor(name = "front")]
struct Named {
    #[supervisor]
    api: HttpApi,
    #[supervisor(name = "back")]
    other: SupervisorBuilder,
}

#[worker]
async fn tick() {}

#[worker(name = "tock")]
async fn other_tick() {}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    assert_eq!((tick().name(), other_tick().name()), ("tick", "tock"));
    let api = || HttpApi { any: tick(), named: other_tick() };
    assert_eq!(api().into_child().name(), "http_api");

    let app = Named { api: api(), other: Supervisor::builder("x") };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    assert_eq!(tree.path().as_str(), "front");
    for path in ["api/any", "api/täglich 7:30", "back"] {
        let found = tree.which_child(path).await.unwrap();
        assert_eq!(found.path.as_str(), format!("front/{path}"));
    }
    tree.stop("the test is over").await.unwrap();
}
