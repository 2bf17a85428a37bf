#[verger::supervisor(on_child_failure = "Self::failed")]
struct App {}

impl App {
    fn failed(_: verger::policy::ChildFailure) -> bool {
        true
    }
}

fn main() {}
