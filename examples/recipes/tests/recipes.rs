//! Each recipe comes through what it breaks, says so in its last line, and leaves no process behind.
//!
//! Recipes of a server that isn't installed check nothing. With `VERGER_RECIPE_SERVERS=1`, which `.ci/run recipes` sets, they
//! fail then.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs};

/// Set by `.ci/run recipes`: a missing server is an error then.
const REQUIRED: &str = "VERGER_RECIPE_SERVERS";

/// Marks the processes of a recipe, because they inherit it.
const MARK: &str = "VERGER_RECIPE";

/// Runs a recipe to its end, and checks its last line.
macro_rules! recipe {
    ($name:ident, $last:literal) => {
        #[test]
        fn $name() {
            check(stringify!($name), env!(concat!("CARGO_BIN_EXE_", stringify!($name))), $last);
        }
    };
}

recipe!(ractor, "ractor: failed: 13 can't be added; the second actor's total is 8");
recipe!(
    kameo,
    "kameo: failed: message handler panicked: 13 can't be added; the second actor's total is 8"
);
recipe!(
    axum,
    "axum: a panic in a handler cost no restart, a kill one, and the stop ended an endless answer"
);
recipe!(sqlx, "sqlx: 20 of 20 rows after the database was killed, with the same pool");
recipe!(listen, "listen: jobs [1, 2, 3] are done, one of them from a time without a listener");
recipe!(nats, "nats: 20 of 20 messages, half of them sent without a server, no restart");
recipe!(mqtt, "mqtt: 20 of 20 messages, half of them after the broker was killed");
recipe!(redis, "redis: the old cache still says Lille, the new one Namur");
recipe!(tail, "tail: one, two, three, four, longer than five, five, six");

#[test]
fn a_recipe_without_its_server_names_the_package_and_ends_with_2() {
    // The other places that are searched have no such server.
    let output = run(Command::new(env!("CARGO_BIN_EXE_redis")).env("PATH", "/nonexistent"));
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = "no `redis-server` is installed; install it with `apt-get install redis-server`\n";
    assert_eq!((output.status.code(), errors.as_ref()), (Some(2), said));
}

fn check(name: &str, program: &str, last: &str) {
    let mark = format!("{MARK}={}-{name}", std::process::id());
    let (variable, value) = mark.split_once('=').expect("the mark has a value");
    let output = run(Command::new(program).env(variable, value));
    let (lines, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(processes(&mark), [] as [PathBuf; 0], "processes are left; {log}");
    if output.status.code() == Some(2) {
        assert!(env::var_os(REQUIRED).is_none(), "{log}");
        println!("{name}: nothing was checked: {log}");
        return;
    }
    assert_eq!((output.status.code(), lines.lines().last()), (Some(0), Some(last)), "{log}");
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the recipe starts")
}

/// Returns the processes with this variable in their environment.
fn processes(mark: &str) -> Vec<PathBuf> {
    let is_marked = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|it| it == mark.as_bytes())
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|it| it.path()).filter(is_marked).collect()
}
