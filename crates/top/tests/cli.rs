//! The program `verger-top`, started as a process: output, errors and exit codes.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, mpsc};
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use verger::console::Console;
use verger::log_lines::LogLines;
use verger::{Application, Backoff, Context, DynamicSupervisor, Exit, Supervisor, worker};

/// How long a line may take that is waited for.
const DEADLINE: Duration = Duration::from_secs(60);

/// The log lines of all trees in this process.
static LINES: LazyLock<LogLines> = LazyLock::new(|| {
    let lines = LogLines::new();
    tracing_subscriber::registry().with(lines.layer()).init();
    lines
});

/// Serves a tree with a console in this process, and returns its URL.
fn console(console: Console) -> String {
    let idle = async |ctx: Context| ctx.cancelled().await;
    let tree = Supervisor::builder("app").child(worker("db", idle)).child(worker("http", idle));
    serve(tree, console)
}

fn serve(tree: verger::SupervisorBuilder, console: Console) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
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
    command.env_remove("SUDO_USER").env("USER", "alice");
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

#[tokio::test(flavor = "multi_thread")]
async fn the_version_is_that_of_the_library() {
    assert_eq!(success(&["--version"]), concat!("verger-top ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// Waits until the command prints the text, and returns what it prints then.
fn wait_for(args: &[&str], text: &str) -> String {
    // Each attempt starts a process, so this takes long enough.
    for _ in 0..200 {
        let printed = success(args);
        if printed.contains(text) {
            return printed;
        }
    }
    panic!("`{args:?}` doesn't print `{text}`:\n{}", success(args));
}

/// A tree with twenty connections, and a child that fails for ever.
fn failing() -> verger::SupervisorBuilder {
    let rates = async |_: Context| Exit::Err("HTTP 503 from https://vendor.example.com".into());
    let door = async |ctx: Context| {
        let conns = ctx.parent().supervisor("conns").await?;
        for _ in 0..20 {
            conns.start_once("conn", async |ctx: Context| ctx.cancelled().await).await?;
        }
        ctx.cancelled().await;
        Exit::Ok(())
    };
    Supervisor::builder("app")
        .unlimited_restarts()
        .child(DynamicSupervisor::builder("conns"))
        .child(worker("door", door))
        .child(worker("rates", rates).backoff(Backoff::constant(Duration::from_secs(300))))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_folds_connections_and_shows_the_cause_of_a_failure() {
    let url = serve(failing(), actions());
    let tree = wait_for(&["--url", &url, "tree"], "×20");
    assert!(tree.contains("│  └─ conn#… ×20  20 active\n"), "{tree}");
    let tree = wait_for(&["--url", &url, "tree"], "HTTP 503");
    let row = tree.lines().position(|line| line.starts_with("└─ rates")).unwrap();
    let below = tree.lines().nth(row + 1).unwrap().trim();
    assert!(below.starts_with("HTTP 503 from https://vendor.example.com"), "{tree}");
    let unfolded = success(&["--url", &url, "tree", "--all"]);
    assert_eq!(unfolded.lines().filter(|line| line.contains("─ conn#")).count(), 20);
    let flat = success(&["--url", &url, "tree", "--depth", "1"]);
    assert!(!flat.contains("conn#") && flat.contains("20 children"), "{flat}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_is_printed_with_its_cause() {
    let url = serve(failing(), actions());
    let printed = wait_for(&["--url", &url, "incidents"], "HTTP 503");
    assert!(
        printed.contains(
            " NOW   app/rates\n       failed: HTTP 503 from https://vendor.example.com\n"
        ),
        "{printed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_names_who_has_done_it_and_why() {
    let url = format!("{}/#token=secret", console(actions()));
    let killed = success(&["--url", &url, "kill", "app/db", "--reason", "hung"]);
    assert_eq!(killed, "killed app/db\n");
    let events = wait_for(&["--url", &url, "events", "app/db"], "hung");
    assert!(events.contains("alice (typed)"), "{events}");
    success(&["--url", &url, "hold", "app/db", "--by", "bob", "--reason", "maintenance"]);
    let described = success(&["--url", &url, "describe", "app/db"]);
    assert!(described.contains("bob (typed)") && described.contains("maintenance"), "{described}");
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_are_those_of_a_child_and_below_and_can_be_followed() {
    let logging = |line: &'static str| {
        move |ctx: Context| async move {
            tracing::info!("{line}");
            ctx.cancelled().await;
        }
    };
    let orders = Supervisor::builder("orders").child(worker("writer", logging("written")));
    // All tests in this process log here, so this tree has its own name.
    let tree = Supervisor::builder("shop").child(worker("db", logging("connected"))).child(orders);
    let url = format!("{}/#token=secret", serve(tree, actions().log_lines(&LINES)));

    let lines = wait_for(&["--url", &url, "logs", "shop/orders"], "written");
    assert!(lines.contains(" shop/orders/writer#1 written\n"), "{lines}");
    assert!(!lines.contains("connected"), "{lines}");

    let mut child = command(&["--url", &url, "logs", "-f", "db"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let printed = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        printed.map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let wait_for_line = |text: &str| {
        tokio::task::block_in_place(|| {
            while !lines.recv_timeout(DEADLINE).expect(text).contains(text) {}
        });
    };
    wait_for_line(" shop/db#1 connected");
    success(&["--url", &url, "restart", "db"]);
    wait_for_line(" shop/db#2 connected");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_without_log_lines_says_so() {
    let error = failure(1, &["--url", &console(actions()), "logs"]);
    assert!(error.contains("`Console::log_lines`"), "{error}");
}

/// Rule: reading may need a token, which is then sent, or asked for by the name of its option.
#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_asks_readers_for_a_token_gets_it() {
    let url = console(Console::new().read_token("reader"));
    for args in [&["tree"][..], &["incidents"], &["events", "-f"]] {
        let error = failure(1, &[&["--url", &*url], args].concat());
        assert!(error.contains("with --token, VERGER_TOKEN"), "{error}");
    }
    let tree = success(&["--url", &url, "--token", "reader", "tree"]);
    assert!(tree.starts_with("app  one_for_one"), "{tree}");
}
