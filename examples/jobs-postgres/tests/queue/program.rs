//! The program as a process, and the lines that it writes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long a test waits for a line before it fails.
const PATIENCE: Duration = Duration::from_secs(90);

/// A process that runs. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    process: Child,
    lines: Receiver<String>,
    /// The lines that were read so far.
    pub(crate) read: Vec<String>,
}

/// How a process has ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    /// All lines of standard output.
    pub(crate) out: Vec<String>,
    pub(crate) errors: String,
}

/// Returns the command with these arguments, and with no database in its environment.
pub(crate) fn command(args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobs-postgres"));
    command.args(args.split_whitespace()).env_remove("DATABASE_URL").env("RUST_LOG", "off");
    command
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { process, lines, read: Vec::new() }
    }

    /// Waits for a line that contains this text, and returns it.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let Some(line) = self.next() else {
                let errors = self.errors();
                panic!("it has ended without `{text}`: {:#?}, {errors}", self.read);
            };
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Waits for the end of the process.
    pub(crate) fn end(mut self) -> End {
        while self.next().is_some() {}
        let code = self.process.wait().unwrap().code();
        End { code, out: std::mem::take(&mut self.read), errors: self.errors() }
    }

    /// Asks the process to stop, and waits for its end.
    pub(crate) fn stop(self) -> End {
        let stopped = Command::new("kill").arg(self.id().to_string()).status().unwrap();
        assert!(stopped.success());
        self.end()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the next line, or for the end of the output.
    pub(crate) fn next(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.read.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it is silent after {:#?}", self.read),
        }
    }

    /// Returns what the process has written to standard error, once it has ended.
    fn errors(&mut self) -> String {
        let mut errors = String::new();
        if let Some(mut output) = self.process.stderr.take() {
            output.read_to_string(&mut errors).unwrap();
        }
        errors
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
