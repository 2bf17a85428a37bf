//! Programs of the system that tests start: run without the rights of root, and ended with their test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Runs the program, and ends it once the standard input is closed: also if this process is killed.
const KEEPER: &str = r#"
    signal=$1; shift
    "$@" </dev/null & program=$!
    exec 2>&-
    read -r line
    kill "$signal" $program
    wait $program
"#;

/// A program that runs. It is killed when this is dropped.
pub(crate) struct Process {
    keeper: Child,
    /// Taken when this is dropped.
    open: Option<ChildStdin>,
}

impl Process {
    /// Starts a program, and waits for this text on its standard error. The signal ends it.
    ///
    /// # Errors
    ///
    /// With what it has written, if it ends before.
    pub(crate) fn start(
        program: &Path,
        arguments: &[&str],
        ready: &str,
        signal: &str,
    ) -> Result<Self, String> {
        let mut command = unprivileged("sh");
        command.args(["-c", KEEPER, "sh", signal]).arg(program).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Its working directory is not ours, which the user may not be allowed to enter.
        let mut keeper = command.current_dir("/").spawn().map_err(|it| it.to_string())?;
        let open = keeper.stdin.take();
        let mut lines = BufReader::new(keeper.stderr.take().unwrap()).lines();
        let process = Self { keeper, open };
        let mut written = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            if line.contains(ready) {
                // So that it never waits for a reader.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(process);
            }
            written.push(line);
            // The other form is what a client is told that comes too early.
            let fails =
                |it: &String| it.contains("FATAL") && !it.contains("the database system is");
            if written.last().is_some_and(fails) {
                break;
            }
        }
        Err(format!("{} has not started:\n{}", program.display(), written.join("\n")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.open.take());
        drop(self.keeper.wait());
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Returns a command that runs as `postgres` if this process runs as root, which the servers refuse.
pub(crate) fn unprivileged(program: &str) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--", program]);
    command
}

/// Gives a directory to the user of [`unprivileged`].
pub(crate) fn hand_over(folder: &Path) {
    if is_root() {
        let owner = Command::new("chown").args(["-R", "postgres:"]).arg(folder).status();
        assert!(owner.unwrap().success());
    }
}

/// Returns a port of this machine that is free now.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
