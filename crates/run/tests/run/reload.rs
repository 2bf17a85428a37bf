//! SIGHUP: what a new file changes in the running tree.

use rustix::process::{Signal, kill_process};

use crate::program::{Files, Program, pid_in};

/// A process that says its number and this word, and then waits.
fn process(name: &str, word: &str, more: &str) -> String {
    format!(
        "[process.{name}]\ncommand = [\"sh\", \"-c\", \"echo {word} pid $$; exec sleep 1000\"]\n{more}\n"
    )
}

#[test]
fn processes_are_added_removed_and_restarted_and_the_others_keep_running() {
    let same = process("same", "one", "");
    let files =
        Files::new(&[&same[..], &process("gone", "one", ""), &process("web", "one", "")].concat());
    let program = Program::start(&files);
    let [kept, gone, web] = program.wait_for_all([
        "child=app/same incarnation=1 stream=stdout line=\"one pid ",
        "child=app/gone incarnation=1 stream=stdout line=\"one pid ",
        "child=app/web incarnation=1 stream=stdout line=\"one pid ",
    ]);
    let [kept, gone, web] = [kept, gone, web].map(|line| pid_in(&line));

    files.write(&[&same[..], &process("new", "one", ""), &process("web", "two", "")].concat());
    program.signal(Signal::HUP);
    program.wait_for_all([
        "- app/gone  live",
        "+ app/new  live",
        "restarting for its configuration child=app/web",
        "child=app/new incarnation=1 stream=stdout line=\"one pid ",
        "child=app/web incarnation=2 stream=stdout line=\"two pid ",
        "verger_run::reload: reloaded changes=",
    ]);
    let alive = files.pids();
    assert!(alive.contains(&kept), "it wasn't touched");
    assert!(!alive.contains(&gone) && !alive.contains(&web), "{alive:?}");

    program.signal(Signal::TERM);
    let (code, lines) = program.end();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert_eq!(files.alive(), []);
}

#[test]
fn a_changed_policy_counts_without_a_restart() {
    let files = Files::new(&process("web", "one", "restart = \"permanent\""));
    let program = Program::start(&files);
    let web = pid_in(&program.wait_for("line=\"one pid "));
    files.write(&process("web", "one", "restart = \"temporary\"\nshutdown = \"7s\""));
    program.signal(Signal::HUP);
    program.wait_for("~ app/web  restart  \"permanent\" → \"temporary\"  at the next failure");
    program.wait_for("~ app/web  shutdown  \"5s\" → \"7s\"  live");
    program.wait_for("reloaded changes=2");
    assert!(files.pids().contains(&web), "it wasn't restarted");
    kill_process(web, Signal::KILL).unwrap();
    program.wait_for("not restarted child=app/web incarnation=1");
    program.signal(Signal::TERM);
    assert_eq!(program.end().0, Some(0));
}

#[test]
fn a_file_with_mistakes_changes_nothing() {
    let files = Files::new(&process("web", "one", ""));
    let program = Program::start(&files);
    program.wait_for("line=\"one pid ");
    let before = files.pids();
    files.write(&process("web", "two", "restrat = \"temporary\""));
    program.signal(Signal::HUP);
    assert_eq!(
        program.wait_for("run.toml:3"),
        "ERROR child{child=app/reload incarnation=1}: verger_run::reload: run.toml:3:1: `process.web.restrat`: unknown key; did you mean `restart`?"
    );
    program.wait_for("not reloaded: everything runs as before");
    assert_eq!(files.pids(), before);
    // The next file is read as if nothing had happened.
    files.write(&process("web", "two", ""));
    program.signal(Signal::HUP);
    program.wait_for("child=app/web incarnation=2 stream=stdout line=\"two pid ");
    program.signal(Signal::TERM);
    assert_eq!(program.end().0, Some(0));
}

#[test]
fn a_command_that_fails_at_once_is_replaced_by_the_old_one() {
    let ready = "ready = { line = \"pid\" }";
    let files = Files::new(&process("web", "one", ready));
    let program = Program::start(&files);
    program.wait_for("line=\"one pid ");
    files.write(&format!("[process.web]\ncommand = [\"false\"]\n{ready}\n"));
    program.signal(Signal::HUP);
    // In any order: a process is ready before its line is logged.
    let [again, _] = program.wait_for_all([
        "line=\"one pid ",
        "run.toml: rolled back, not active: `app/web`: activation failed: exited with code 1",
    ]);
    assert!(files.pids().contains(&pid_in(&again)), "the old one runs");
    program.signal(Signal::TERM);
    assert_eq!(program.end().0, Some(0));
}

#[test]
fn secrets_in_the_environment_are_not_logged() {
    let with =
        |secret: &str| process("web", "one", &format!("environment = {{ SECRET = \"{secret}\" }}"));
    let files = Files::new(&with("first"));
    let program = Program::start(&files);
    program.wait_for("line=\"one pid ");
    files.write(&with("second"));
    program.signal(Signal::HUP);
    assert_eq!(
        program.wait_for("environment.SECRET"),
        "INFO verger::config: ~ app/web  config.environment.SECRET  [redacted] → [redacted]  needs a restart"
    );
    program.signal(Signal::TERM);
    assert_eq!(program.end().0, Some(0));
}
