use verger::supervisor;

#[supervisor]
struct App {
    #[child]
    region: String,
}

fn main() {
    let _ = App { region: "eu".to_owned() }.builder().build();
}
