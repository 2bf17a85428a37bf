use verger::supervisor;

#[supervisor]
struct App<T> {
    #[child]
    clock: T,
}

fn main() {
    let _ = App { clock: "tick" }.builder().build();
}
