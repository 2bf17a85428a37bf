//! The live view in a real terminal, which is tmux: what it shows, which keys it answers, how it ends.
//!
//! `.ci/run terminal` runs these tests. They wait for texts on the screen, up to a deadline.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use verger::console::Console;
use verger::{Application, Context, Supervisor, worker};

const DEADLINE: Duration = Duration::from_secs(60);

/// A terminal in tmux, with a server of its own. Dropping it ends both.
struct Terminal {
    server: String,
}

impl Terminal {
    /// Starts the program in a shell that prints a word before, and how it has ended after.
    fn start(args: &str) -> Self {
        Self::of_size("", args, "120", "40")
    }

    /// `environment`: assignments such as `NO_COLOR=1`.
    fn of_size(environment: &str, args: &str, width: &str, height: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server =
            format!("verger-top-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let terminal = Self { server };
        let program = env!("CARGO_BIN_EXE_verger-top");
        let script = format!(
            "echo before; {environment} '{program}' {args}; echo \"code $?\"; \
             stty -a | tr -d ';' | tr ' ' '\\n' | grep -x -e '-*icanon'; cat"
        );
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            width,
            "-y",
            height,
            "sh",
            "-c",
            &script,
        ]);
        terminal
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-L", &self.server])
            .args(args)
            .env("LC_ALL", "C.UTF-8")
            .output();
        let output = output.expect("`tmux` is installed");
        assert!(
            output.status.success(),
            "tmux {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen is as expected, and returns it.
    fn wait(&self, expected: &str, is_shown: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if is_shown(&screen) {
                return screen;
            }
            assert!(began.elapsed() < DEADLINE, "the screen doesn't show {expected}:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits until the program has ended, and checks that the terminal is as before.
    fn wait_for_end(&self, code: u8) -> String {
        let screen = self.wait_for("icanon");
        assert!(
            screen.contains("before") && screen.contains(&format!("code {code}\nicanon")),
            "{screen}"
        );
        assert!(!screen.contains("─"), "{screen}");
        screen
    }

    /// Sends a signal to the program, which is the only child of the shell.
    fn signal(&self, signal: &str) {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let shell = shell.trim();
        let children =
            std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        assert!(Command::new("kill").args([signal, children.trim()]).status().unwrap().success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        _ = Command::new("tmux").args(["-L", &self.server, "kill-server"]).status();
    }
}

#[test]
fn the_demonstration_shows_its_tree_and_answers_keys() {
    let terminal = Terminal::start("--demo");
    terminal.wait("the tree", |screen| {
        screen.starts_with(" shop live")
            && ["● database", "mailer", "sessions"].iter().all(|name| screen.contains(name))
    });

    terminal.keys(&["?"]);
    terminal.wait_for("resume: start a child now that is down or waits");
    terminal.keys(&["Escape"]);
    terminal.wait("the tree without the help", |screen| {
        !screen.contains("resume: start") && screen.contains("● database")
    });

    terminal.keys(&["/", "database", "Enter"]);
    terminal.wait("the filtered tree", |screen| {
        screen.contains("filter: database")
            && screen.contains("└─● database")
            && !screen.contains("exports")
    });
    terminal.keys(&["j", "r"]);
    terminal.wait_for("Restart shop/database?");
    terminal.keys(&["testing", "Enter"]);
    terminal.wait_for("restarted shop/database");
    terminal.keys(&["Escape"]);
    terminal.wait_for("exports");

    terminal.keys(&["K"]);
    terminal.wait_for("Kill shop/database?");
    terminal.keys(&["Escape"]);
    terminal.wait("the dialog closed", |screen| !screen.contains("Kill shop/database?"));
    terminal.keys(&["g", "K"]);
    terminal.wait_for("can't kill shop: the root has no supervisor");

    // Filling mailboxes drop messages.
    terminal.keys(&["d"]);
    terminal.wait_for("mailbox_full");

    terminal.keys(&["q"]);
    terminal.wait_for_end(0);
}

#[test]
fn sigterm_restores_the_terminal() {
    let terminal = Terminal::start("--demo");
    terminal.wait_for("● database");
    terminal.signal("-TERM");
    terminal.wait_for_end(0);
}

/// Serves a tree with a console at the address until the sender is used.
fn serve(address: SocketAddr) -> (SocketAddr, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        _ = stopped.await;
        "the test stops it"
    };
    let program = Application::new(Supervisor::builder("app").child(db)).listen_to_signals(false);
    let program = program.stop_on(stopped).console_on(listener, Console::new());
    let served = tokio::spawn(async { program.run_to_end().await.unwrap() });
    (address, stop, served)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_started_again_is_shown_again() {
    let (address, stop, served) = serve("127.0.0.1:0".parse().unwrap());
    let terminal = Terminal::start(&format!("--url http://{address}"));
    let wait_for = |text: &str| tokio::task::block_in_place(|| terminal.wait_for(text));
    wait_for("● db");
    terminal.keys(&["r"]);
    wait_for("actions are off");

    stop.send(()).unwrap();
    served.await.unwrap();
    wait_for("app LOST, trying again: ");

    let (_, stop, served) = serve(address);
    wait_for("app live");
    terminal.keys(&["q"]);
    tokio::task::block_in_place(|| terminal.wait_for_end(0));
    stop.send(()).unwrap();
    served.await.unwrap();
}

#[test]
fn without_a_program_the_view_waits_for_it_and_can_be_left() {
    let terminal = Terminal::start("--url http://127.0.0.1:1");
    terminal.wait_for("LOST, trying again: can't reach http://127.0.0.1:1");
    terminal.keys(&["C-c"]);
    terminal.wait_for_end(0);
}

/// Rule: from opening to the cause of a failure at most four keys; on 80 × 24 nothing is lost on the way.
#[test]
fn on_80_columns_the_causes_are_there_without_a_key() {
    let terminal = Terminal::of_size("", "--demo", "80", "24");
    let screen = terminal.wait_for("failed: HTTP 503 from https://vendor.example.com/v1/rates");
    assert!(screen.lines().last().unwrap().ends_with("  q quit"), "{screen}");
    assert!(screen.lines().next().unwrap().starts_with(" shop live  "), "{screen}");

    terminal.keys(&["?"]);
    let help = terminal.wait_for("this help; quit");
    assert!(help.contains("next, previous child or incident"), "{help}");
    terminal.keys(&["Escape", "i"]);
    terminal.wait_for("▸NOW ");
    terminal.keys(&["Enter"]);
    terminal.wait_for("problem: ");
    terminal.keys(&["Escape", "x"]);
    terminal.wait("problems only", |screen| {
        let is_row = |line: &str| line.contains("─↻ rates") && line.contains("  HTTP 503 from ");
        screen.contains("problems only  (esc shows the whole tree)")
            && screen.lines().any(is_row)
            && !screen.contains("─● door")
    });
    terminal.keys(&["Escape", "o", "o", "o"]);
    terminal.wait_for("by busy time, most first");
    terminal.keys(&["p"]);
    terminal.wait_for(" shop PAUSED");
    terminal.keys(&["q"]);
    terminal.wait_for_end(0);
}

/// Rule: `NO_COLOR` leaves no colour, of text and of background, in any view.
#[test]
fn without_colours_no_view_has_any() {
    // Sequences that set a colour: 30 to 49 and 90 to 107.
    let has_colours = |screen: &str| {
        let sequences = screen.split("\x1b[").skip(1).filter_map(|it| it.split_once('m'));
        let mut numbers = sequences.flat_map(|(numbers, _)| numbers.split(';'));
        numbers.any(|number| matches!(number.parse(), Ok(30..=38 | 40..=48 | 90..=107)))
    };
    let styled = |terminal: &Terminal| terminal.tmux(&["capture-pane", "-p", "-e"]);

    let terminal = Terminal::start("--demo");
    terminal.wait_for("RESTARTING");
    assert!(has_colours(&styled(&terminal)), "with colours there are some");

    let terminal = Terminal::of_size("NO_COLOR=1", "--demo", "120", "40");
    terminal.wait_for("RESTARTING");
    for (key, text) in [
        ("i", "▸NOW "),
        ("Escape", "─↻ rates"),
        ("?", "this help; quit"),
        ("Escape", "─↻ rates"),
        ("r", "the root has no supervisor"),
        ("j", "─↻ rates"),
        ("K", "Kill shop/database?"),
    ] {
        terminal.keys(&[key]);
        terminal.wait_for(text);
        assert!(!has_colours(&styled(&terminal)), "{key}:\n{}", styled(&terminal));
    }
}
