use verger::{DynamicSupervisor, RunError};

async fn run() -> Result<(), RunError> {
    DynamicSupervisor::builder("conns").with_graceful_shutdown(async {}).await
}

fn main() {
    let _ = run();
}
