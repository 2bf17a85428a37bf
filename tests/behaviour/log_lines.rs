//! The last log lines of each child of a running tree.

use std::time::Duration;

use crate::log::register_second_subscriber;
use tracing::subscriber::set_default;
use tracing::{Instrument, Span, info, info_span};
use tracing_subscriber::layer::SubscriberExt;
use verger::log_lines::{LogLine, LogLines};
use verger::{Backoff, Context, Exit, RestartType, Supervisor, SupervisorHandle, worker};

fn shown(lines: &[LogLine]) -> Vec<String> {
    let text = |line: &LogLine| format!("{line}").replace("behaviour::log_lines", "");
    lines.iter().map(text).collect()
}

/// Logs from its task, a helper, a task in its span, and one of its own children, and then panics.
async fn db(ctx: Context) -> Exit {
    info!("opening");
    ctx.spawn(async { info!("helper") }).await;
    let task = async { info!("task") };
    tokio::spawn(task.instrument(Span::current())).await?;
    if ctx.incarnation() == 1 {
        let own = worker("reader", async |_: Context| info!("reading"));
        let own = ctx.children().start_child(own.restart(RestartType::Temporary)).await?;
        assert_eq!(own.path().as_str(), "app/db/reader#1");
        info_span!("query").in_scope(|| panic!("line\nbreak"));
    }
    ctx.cancelled().await;
    info!("closing");
    Ok(())
}

async fn start(lines: &LogLines) -> SupervisorHandle {
    let db = worker("db", db).backoff(Backoff::constant(Duration::from_secs(1)));
    let tree = Supervisor::builder("app").child(db).build().unwrap().start().await.unwrap();
    assert!(lines.of("app/db").current.len() > 1);
    tree
}

#[tokio::test(start_paused = true)]
async fn the_lines_of_a_child_of_its_tasks_and_of_its_supervisor_about_it_are_found_by_incarnation()
{
    let lines = LogLines::new();
    let _set = set_default(tracing_subscriber::registry().with(lines.layer()));
    register_second_subscriber();
    let tree = start(&lines).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    tree.stop("over").await.unwrap();

    let db = lines.of("app/db");
    assert_eq!(db.incarnation, 2);
    assert_eq!(
        shown(&db.previous),
        [
            "info verger::lifecycle: active",
            "info : opening",
            "info : helper",
            "info : task",
            "info verger::lifecycle: active",
            r#"info verger::shutdown: shutting down cause="`app/db` stops""#,
            "info verger::shutdown: stopped",
            r#"warn verger::restart: restarting cause="panicked: line\nbreak" attempt=1 delay=1s limit="1/12 in 5m" lived=0ns"#,
        ]
    );
    assert_eq!(
        shown(&db.current),
        [
            "info verger::lifecycle: active",
            "info : opening",
            "info : helper",
            "info : task",
            "info : closing",
        ]
    );
    let reader = shown(&lines.of("app/db/reader#1").current);
    assert_eq!(reader, ["info : reading"]);
    let all = shown(&lines.below("app", 100));
    assert_eq!(all, shown(&lines.last(100)));
    assert_eq!(all.first().unwrap(), "info verger::lifecycle: active");
    assert_eq!(all.last().unwrap(), "info verger::shutdown: stopped");
}
