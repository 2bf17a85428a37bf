//! A `#[supervisor]` field is anything that turns into a spec.

use verger::status::ChildKind;
use verger::{
    ChildSpec, DynamicSupervisor, DynamicSupervisorBuilder, Supervisor, SupervisorBuilder,
    supervisor,
};

#[supervisor]
struct Annotated {}

#[derive(Supervisor)]
struct Derived {}

struct Custom {
    name: &'static str,
}

impl From<Custom> for ChildSpec {
    fn from(node: Custom) -> Self {
        Supervisor::builder(node.name).into_child()
    }
}

#[supervisor]
struct App {
    #[supervisor]
    annotated: Annotated,
    #[supervisor]
    derived: Derived,
    #[supervisor]
    custom: Custom,
    #[supervisor]
    builder: SupervisorBuilder,
    #[supervisor]
    dynamic: DynamicSupervisorBuilder,
    #[supervisor]
    checked: Supervisor,
    #[supervisor]
    spec: ChildSpec,
    #[child]
    also_spec: ChildSpec,
    #[child]
    also_checked: Supervisor,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let checked = || Annotated {}.builder().build().unwrap();
    let app = App {
        annotated: Annotated {},
        derived: Derived {},
        custom: Custom { name: "x" },
        builder: Supervisor::builder("x"),
        dynamic: DynamicSupervisor::builder("x"),
        checked: checked(),
        spec: Annotated {}.into_child(),
        also_spec: Derived {}.into(),
        also_checked: checked(),
    };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    let children = tree.children().await.unwrap();
    assert!(children.iter().all(|child| child.kind == ChildKind::Supervisor));
    let names: Vec<_> = children.iter().map(|child| child.path.name()).collect();
    assert_eq!(
        names,
        [
            "annotated",
            "derived",
            "custom",
            "builder",
            "dynamic",
            "checked",
            "spec",
            "also_spec",
            "also_checked",
        ]
    );
    tree.stop("the test is over").await.unwrap();
}
