//! Names that are keywords lose their `r#`.

use verger::{ChildSpec, Context, DynamicSupervisor, component, supervisor, worker};

#[worker]
async fn r#type(r#in: Context, r#match: u32) {
    assert_eq!(r#match, 5);
    r#in.cancelled().await;
}

#[allow(non_camel_case_types, reason = "keywords are small")]
#[derive(Clone)]
struct r#dyn {
    r#as: u32,
}

#[worker]
impl r#dyn {
    async fn run(&mut self, r#for: &Context) {
        assert_eq!(self.r#as, 7);
        r#for.cancelled().await;
    }
}

#[supervisor]
#[allow(non_camel_case_types, reason = "keywords are small")]
struct r#loop {
    #[child]
    r#type: ChildSpec,
    #[child(requires = "type")]
    r#dyn: r#dyn,
    #[dynamic]
    r#move: DynamicSupervisor,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() {
    let dynamic = r#dyn { r#as: 7 };
    assert_eq!(component("x", dynamic.clone()).name(), "x");
    let app = r#loop { r#type: r#type(5), r#dyn: dynamic, r#move: DynamicSupervisor };
    let tree = app.builder().build().unwrap().start().await.unwrap();
    assert_eq!(tree.path().as_str(), "loop");
    let children = tree.children().await.unwrap();
    let names: Vec<_> = children.iter().map(|child| child.path.name()).collect();
    assert_eq!(names, ["type", "dyn", "move"]);
    assert!(children.iter().all(|child| child.incarnation == 1));
    tree.stop("the test is over").await.unwrap();
}
