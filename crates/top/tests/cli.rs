//! The program `verger-top`, started as a process: output, errors and exit codes.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use verger::console::Console;
use verger::{Application, Context, Supervisor, worker};

/// Serves a tree with a console in this process, and returns its URL.
fn console(console: Console) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let idle = async |ctx: Context| ctx.cancelled().await;
    let tree = Supervisor::builder("app").child(worker("db", idle)).child(worker("http", idle));
    let program = Application::new(tree).listen_to_signals(false).console_on(listener, console);
    tokio::spawn(program.run_to_end());
    url
}

fn actions() -> Console {
    Console::new().allow_actions(true).token("secret")
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verger-top"));
    command.args(args).env_remove("VERGER_URL").env_remove("VERGER_TOKEN").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    tokio::task::block_in_place(|| command(args).output().unwrap())
}

/// Runs the program, which must fail with the code, and returns what it says.
fn failure(code: i32, args: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(args);
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(
        (status.code(), String::from_utf8(stdout).unwrap()),
        (Some(code), String::new()),
        "{args:?}: {stderr}"
    );
    assert!(stderr.starts_with("verger-top: "), "{stderr}");
    stderr
}

fn success(args: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(args);
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!((status.code(), stderr), (Some(0), String::new()), "{args:?}");
    String::from_utf8(stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_print_what_the_console_knows() {
    let url = console(actions());

    let tree = success(&["--url", &url, "tree"]);
    assert!(tree.starts_with("app  one_for_one"), "{tree}");
    let json: serde_json::Value =
        serde_json::from_str(&success(&["--url", &url, "tree", "--json"])).unwrap();
    assert_eq!(json["root"]["children"][1]["path"], "app/http");
    let described = success(&["--url", &url, "describe", "app/db"]);
    assert!(
        described.starts_with("● app/db  worker, permanent\n       state: active since "),
        "{described}"
    );
    assert!(success(&["--url", &url, "events"]).ends_with('\n'));
    assert_eq!(success(&["--url", &url, "letters"]), "no dead letters\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_carried_out_and_reported() {
    let url = console(actions());
    let with_token = format!("{url}/#token=secret");

    assert_eq!(
        success(&["--url", &with_token, "restart", "db", "--reason", "a test"]),
        "restarted app/db\n"
    );
    assert_eq!(
        success(&["--url", &url, "--token", "secret", "stop", "app/db"]),
        "stopped app/db\n"
    );
    assert!(success(&["--url", &url, "describe", "app/db"]).contains("state: stopped since "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_action_says_what_to_do() {
    let url = console(actions());
    let error = failure(1, &["--url", &url, "--token", "wrong", "restart", "app/db"]);
    assert!(error.contains("take the token from the program's log"), "{error}");
    let error = failure(1, &["--url", &url, "--token", "secret", "restart", "app/htp"]);
    assert!(error.contains("did you mean") && error.contains("app/http"), "{error}");
    let error = failure(1, &["--url", &url, "describe", "app/htp"]);
    assert!(error.contains("did you mean") && error.contains("app/http"), "{error}");

    let error = failure(1, &["--url", &url, "--token", "secret", "stop", "app"]);
    assert!(error.contains("to stop that, add --confirm app"), "{error}");

    let error = failure(1, &["--url", &console(Console::new()), "--token", "x", "stop", "app/db"]);
    assert!(error.contains("allow_actions(true)"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_run_is_an_error_that_says_so() {
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().to_string();
    for args in [&["tree"][..], &["events", "-f"], &["restart", "app/db"]] {
        let error = failure(1, &[&["--url", &*free], args].concat());
        assert!(
            error.contains(&format!("can't reach http://{free}: Connection refused")),
            "{error}"
        );
        assert!(error.contains("start the program with `Application::console`"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_usage_has_a_code_of_its_own() {
    assert!(failure(2, &["tre"]).contains("did you mean `tree`?\nTry `verger-top --help`."));
    assert!(failure(2, &["--url", "https://h", "tree"]).contains("plain HTTP"));
    assert!(failure(1, &["plan", "no-such.toml"]).contains("can't read no-such.toml"));
    // Standard input is no terminal here.
    assert!(failure(2, &[]).contains("print the tree once with `verger-top tree`"));
    assert!(success(&["--help"]).starts_with("Shows a running verger tree"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_names_the_console() {
    let url = console(actions());
    let mut command = command(&["restart", "app/db"]);
    command.env("VERGER_URL", &url).env("VERGER_TOKEN", "secret");
    let output = tokio::task::block_in_place(|| command.output().unwrap());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "restarted app/db\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_seen_enough_is_no_failure() {
    let url = console(actions());
    let mut child = command(&["--url", &url, "tree", "--json"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = tokio::task::block_in_place(|| child.wait_with_output().unwrap());
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
