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
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server =
            format!("verger-top-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let terminal = Self { server };
        let program = env!("CARGO_BIN_EXE_verger-top");
        let script = format!(
            "echo before; '{program}' {args}; echo \"code $?\"; \
             stty -a | tr -d ';' | tr ' ' '\\n' | grep -x -e '-*icanon'; cat"
        );
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "120",
            "-y",
            "40",
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
    terminal.keys(&["x"]);
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
