use verger::{ChildSpec, supervisor, worker};

#[supervisor(name = "app")]
struct App<'a> {
    #[child]
    clock: ChildSpec,
    #[expect(dead_code)]
    region: &'a str,
}

fn main() {
    let clock = worker("clock", async |_| {});
    let region = String::from("eu");
    let _ = App { clock, region: &region }.builder().build();
}
