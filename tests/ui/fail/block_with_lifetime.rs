use verger::{Context, Supervisor, component, worker};

#[derive(Clone)]
struct Clock<'a> {
    zone: &'a str,
}

#[worker]
impl<'a> Clock<'a> {
    async fn run(&mut self, ctx: &Context) {
        println!("{}", self.zone);
        ctx.cancelled().await;
    }
}

fn main() {
    let _ = Supervisor::builder("app").child(component("clock", Clock { zone: "UTC" })).build();
}
