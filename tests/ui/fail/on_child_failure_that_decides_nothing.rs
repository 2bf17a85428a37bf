#[verger::supervisor(on_child_failure = Self::failed)]
struct App {}

impl App {
    async fn failed(_: verger::policy::ChildFailure) {}
}

fn main() {
    drop(verger::Supervisor::builder("app").on_child_failure(|_| 1));
}
