//! The log as JSON: each line is one object, whatever names, errors and panics contain.
//!
//! The panic hook belongs to the process, so the program is a process of its own.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use verger::{Backoff, Context, Exit, RestartType, Supervisor, install_panic_hook, worker};

const CHOICE: &str = "VERGER_TEST_JSON";

#[derive(Debug, thiserror::Error)]
#[error("can't <b>connect</b> \u{1b}[31m")]
struct CannotConnect(#[source] NoRoute);

#[derive(Debug, thiserror::Error)]
#[error("no\n{{\"route\"}}")]
struct NoRoute(#[source] std::io::Error);

async fn script(ctx: Context) -> Exit {
    tracing::info!(target: "own", user = "\u{1b}]0;<script>\u{7}", "two\nlines");
    if ctx.incarnation() == 1 {
        return Err(CannotConnect(NoRoute(std::io::Error::other("down"))).into());
    }
    panic!("\"quoted\"\n\u{1b}[2J</script>");
}

/// The entry point of the program. As an ordinary test, it returns.
#[test]
fn program() {
    if std::env::var_os(CHOICE).is_none() {
        return;
    }
    tracing_subscriber::fmt()
        .json()
        .without_time()
        .with_env_filter("verger=info,verger::message=debug,own=info")
        .with_writer(std::io::stderr)
        .init();
    install_panic_hook();
    let script = worker("<script>\"a b\"", script).restart(RestartType::Transient);
    let script = script.backoff(Backoff::constant(Duration::from_secs(1)));
    let tree = Supervisor::builder("app").restarts(1, Duration::from_secs(60)).child(script);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(tree.build().unwrap().run()).unwrap_err();
}

fn location() -> String {
    let mut lines = include_str!("json_log.rs").lines().enumerate();
    let (number, _) = lines.find(|(_, line)| line.trim().starts_with("panic!(\"")).unwrap();
    format!("{}:{}:5", file!(), number + 1)
}

#[test]
fn each_line_is_an_object_with_its_fields_and_all_that_could_forge_another_is_escaped() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "json_log::program"])
        .env(CHOICE, "yes")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    let lines: Vec<Value> = text.lines().map(parse).collect();

    let child = "app/<script>\"a b\"";
    let verger = |level: &str, target: &str, fields: Value| json!({ "level": level, "target": target, "fields": fields });
    let own = |incarnation: u32| {
        let span = json!({ "name": "child", "child": child, "incarnation": incarnation });
        let fields = json!({ "message": "two\nlines", "user": "\u{1b}]0;<script>\u{7}" });
        json!({ "level": "INFO", "target": "own", "fields": fields, "span": span, "spans": [span] })
    };
    let active = |incarnation: u32| {
        let fields = json!({ "message": "active", "child": child, "incarnation": incarnation });
        verger("INFO", "verger::lifecycle", fields)
    };
    let location = location();
    let panic = "\"quoted\"\n\u{1b}[2J</script>";
    let expected = [
        active(1),
        verger("INFO", "verger::lifecycle", json!({ "message": "active", "child": "app" })),
        own(1),
        verger(
            "WARN",
            "verger::restart",
            json!({
                "message": "restarting", "child": child, "incarnation": 1, "attempt": 1, "delay": "1s", "limit": "1/1 in 1m", "lived": "0ns",
                "cause": "failed: can't <b>connect</b> \u{1b}[31m: no\n{\"route\"}: down",
            }),
        ),
        active(2),
        own(2),
        verger(
            "ERROR",
            "verger::panic",
            json!({
                "message": "panicked", "child": child, "incarnation": 2, "location": location, "panic": panic,
            }),
        ),
        verger(
            "ERROR",
            "verger::restart",
            json!({
                "message": "giving up", "child": child, "incarnation": 2, "lived": "0ns", "failing": "1s",
                "restarts": 1, "limit": "1 in 1m for all children", "source": "supervisor", "then": "escalate",
                "hint": "if the program can do without it, give it on_exhausted(OnExhausted::Pause(..))", "cause": format!("panicked at {location}: {panic}"),
            }),
        ),
        verger("INFO", "verger::shutdown", json!({ "message": "stopped", "child": "app" })),
    ];
    assert_eq!(lines.len(), expected.len(), "{text}");
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!(line, expected, "{text}");
    }
}
