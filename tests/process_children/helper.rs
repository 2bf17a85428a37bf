//! This test binary as a program of its own, which a test starts with a variable that says what it does.

use std::env;
use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use verger::{Supervisor, command};

const VARIABLE: &str = "VERGER_TEST_HELPER";

/// Returns a command that runs a case of this binary.
pub(crate) fn helper(case: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "helper::case", "--nocapture", "--quiet"]).env(VARIABLE, case);
    command
}

#[test]
fn case() {
    match env::var(VARIABLE).as_deref() {
        Ok("notify") => notify(),
        Ok("tree") => tree(),
        Ok("first") => first(),
        Ok("exits") => exits(),
        _ => {}
    }
}

/// Says that it is ready, as to systemd, and waits for the end of its stdin.
fn notify() {
    let socket = UnixDatagram::unbound().unwrap();
    let path = env::var_os("NOTIFY_SOCKET").unwrap();
    for message in ["STATUS=loading", "STATUS=serving\nREADY=1"] {
        socket.send_to(message.as_bytes(), &path).unwrap();
    }
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Runs a tree with two processes until it is killed.
#[tokio::main(flavor = "current_thread")]
async fn tree() {
    // Each line of the processes comes from there, so they don't need the log of this one.
    let ends = command("ends", || {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo ends $$ >&2; exec cat"]);
        command
    });
    let lists = command("lists", || {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "env | sed 's/^/variable /' >&2; echo listed >&2; exec sleep 1000"]);
        command
    });
    let inherit = verger::process::Output::Inherit;
    let app = Supervisor::builder("app")
        .child(ends.ends_with_stdin().stderr(inherit))
        .child(lists.stderr(inherit));
    let app = app.build().unwrap().start().await.unwrap();
    std::io::stderr().flush().unwrap();
    app.wait().await.unwrap();
}

/// Prints how a process has ended.
#[tokio::main(flavor = "current_thread")]
async fn exits() {
    let exits = command("exits", || {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 3"]);
        command
    });
    let exits = exits.into_child().consecutive_restarts(0);
    let exits = exits.on_exhausted(verger::policy::OnExhausted::Park);
    let app = Supervisor::builder("app").child(exits);
    let app = app.build().unwrap().start().await.unwrap();
    let exit = loop {
        let exits = app.which_child("exits").await.unwrap();
        if let Some(exit) = exits.last_exit {
            break exit.reason;
        }
        tokio::task::yield_now().await;
    };
    eprintln!("exit: {exit}");
    app.stop("over").await.unwrap();
}

/// Becomes the parent of orphans, as the first process of a container is, and prints which children are left.
#[tokio::main(flavor = "current_thread")]
async fn first() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let orphans =
        "sleep 1000 & true & setsid sh -c 'echo started >&2; exec sleep 1000' & read line";
    let orphans = command("orphans", move || {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", orphans]);
        command
    });
    let orphans = orphans.ends_with_stdin().kill_marked();
    let ready = verger::process::ReadyWhen::line_contains("started");
    let app = Supervisor::builder("app").child(orphans.ready_when(ready));
    let app = app.build().unwrap().start().await.unwrap();
    app.stop("over").await.unwrap();

    let children = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = children.map(|task| std::fs::read_to_string(task.path().join("children")));
    let children: String = children.map(Result::unwrap).collect();
    eprintln!("children: {children:?}");
}
