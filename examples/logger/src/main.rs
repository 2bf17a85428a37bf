//! A program that logs with the crate `log`: the lines of the tree are written by its logger.

use std::time::Duration;

use verger::{Context, Exit, RunError, Supervisor, worker};

async fn fails(_: Context) -> Exit {
    Err("connection refused".into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), RunError> {
    env_logger::builder().filter_level("info".parse().expect("a level")).init();
    Supervisor::builder("app")
        .restarts(2, Duration::from_secs(5))
        .child(worker("fails", fails))
        .build()?
        .run()
        .await
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

    struct Lines;

    impl log::Log for Lines {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &log::Record<'_>) {
            let line = format!("{} {}", record.level(), record.args());
            LINES.lock().unwrap().push(line);
        }

        fn flush(&self) {}
    }

    /// Rule: found.D5
    #[tokio::test(start_paused = true)]
    async fn every_line_reaches_the_logger_of_a_program_without_a_subscriber() {
        log::set_logger(&Lines).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
        let app = Supervisor::builder("app").restarts(1, Duration::from_secs(60));
        app.child(worker("fails", fails)).build().unwrap().run().await.unwrap_err();
        let lines = LINES.lock().unwrap();
        let starts: Vec<_> =
            lines.iter().map(|line| line.split(" child=").next().unwrap()).collect();
        assert_eq!(starts, ["WARN restarting", "ERROR giving up"], "{lines:#?}");
    }
}
