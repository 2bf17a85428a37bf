use verger::{Context, Supervisor, component, worker};

#[derive(Clone)]
#[expect(dead_code)]
struct Clock<'a> {
    zone: &'a str,
}

#[worker]
impl Clock<'_> {
    async fn run(&mut self, ctx: &Context) {
        ctx.cancelled().await;
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock { zone: "UTC" })).build();
}
