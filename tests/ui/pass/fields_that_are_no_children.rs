//! Fields without an attribute are data, of any type. A struct may have no fields.

use std::rc::Rc;

use verger::{ChildSpec, supervisor, worker};

#[supervisor]
struct Unit;

#[supervisor]
struct Empty {}

#[supervisor(max_restarts = self.data.len() as u32, period = "1s")]
struct Data {
    data: Rc<str>,
    #[child]
    clock: ChildSpec,
    borrowed: &'static str,
    function: fn(&str) -> usize,
    _unused: std::cell::Cell<u32>,
}

/// A child spec is data if a key uses it.
#[supervisor]
struct Shop {
    #[child(fallback = self.spare)]
    offers: ChildSpec,
    spare: ChildSpec,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    assert_eq!(Unit.into_child().name(), "unit");
    assert_eq!(ChildSpec::from(Empty {}).name(), "empty");
    let clock = worker("clock", async |ctx| ctx.cancelled().await);
    let data = Data {
        data: "four".into(),
        clock,
        borrowed: "",
        function: str::len,
        _unused: std::cell::Cell::new(0),
    };
    assert_eq!((data.function)(data.borrowed), 0);
    let (offers, spare) = (worker("x", async |_| {}), worker("y", async |_| {}));
    assert!(Shop { offers, spare }.builder().build().is_ok());
    let tree = data.builder().build().unwrap().start().await.unwrap();
    assert_eq!(tree.status().await.unwrap().root.supervisor.unwrap().max_restarts, Some(4));
    tree.stop("the test is over").await.unwrap();
}
