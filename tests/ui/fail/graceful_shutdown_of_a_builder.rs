use verger::{RunError, Supervisor, worker};

fn main() {
    let _ = async {
        Supervisor::builder("app")
            .child(worker("clock", async |_| {}))
            .with_graceful_shutdown(verger::signals())
            .await?;
        Ok::<_, RunError>(())
    };
}
