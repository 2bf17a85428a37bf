#[verger::supervisor(on_child_failure = "Self::failed")]
struct App {}

impl App {
    fn failed(_: verger::ChildFailure) -> bool {
        true
    }
}

fn main() {}
