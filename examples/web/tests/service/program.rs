//! The service as a process, the lines that it logs, and requests to it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long a test waits for a line or an answer before it fails.
const PATIENCE: Duration = Duration::from_secs(90);
const CONFIG: &str = include_str!("../../web.toml");

/// The service in a directory of its own. It is killed when this is dropped.
pub(crate) struct Service {
    process: Child,
    lines: Receiver<Value>,
    /// The lines that were read so far.
    pub(crate) read: Vec<Value>,
    pub(crate) dir: TempDir,
    /// Where the service answers.
    pub(crate) http: String,
    pub(crate) probes: String,
    pub(crate) metrics: String,
}

/// How a process has ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<Value>,
    pub(crate) errors: String,
}

impl Service {
    /// Starts a service that isn't waited for.
    pub(crate) fn spawn(dir: TempDir, arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_web"))
            .args(arguments)
            .current_dir(dir.path())
            .env_remove("RUST_LOG")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                sender.send(line)
            })
        });
        let (http, probes, metrics) = Default::default();
        Self { process, lines, read: Vec::new(), dir, http, probes, metrics }
    }

    /// Starts a service and waits until it is ready.
    pub(crate) fn start() -> Self {
        Self::start_in(directory(), &[])
    }

    /// The same in this directory, with more arguments.
    pub(crate) fn start_in(dir: TempDir, arguments: &[&str]) -> Self {
        let mut service = Self::spawn(dir, &[&free_ports(), arguments].concat());
        service.metrics = service.address("serving metrics");
        service.probes = service.address("serving probes");
        service.http = service.address("listening");
        service.line_where("active", |line| line["child"] == "web");
        service
    }

    fn address(&mut self, message: &str) -> String {
        let line = self.line(message);
        line["fields"]["address"].as_str().unwrap().to_owned()
    }

    /// Returns the first line with this message, also of those that were read already.
    pub(crate) fn line(&mut self, message: &str) -> Value {
        self.line_where(message, |_| true)
    }

    /// Returns the first line with this message for which `is_it` is true, also of those that were read already.
    pub(crate) fn line_where(&mut self, message: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let matches = |line: &Value| line["fields"]["message"] == message && is_it(&line["fields"]);
        if let Some(line) = self.read.iter().find(|line| matches(line)) {
            return line.clone();
        }
        loop {
            let Some(line) = self.next() else { panic!("it has ended without `{message}`") };
            if matches(&line) {
                return line;
            }
        }
    }

    /// Waits for the next line, or for the end of the output.
    fn next(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.read.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it is silent after {:#?}", self.read),
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([format!("-{name}"), pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end of the process.
    pub(crate) fn end(mut self) -> End {
        while self.next().is_some() {}
        let code = self.process.wait().unwrap().code();
        let mut errors = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        End { code, lines: std::mem::take(&mut self.read), errors }
    }

    /// Replaces texts in the configuration file.
    pub(crate) fn configure(&self, changes: &[(&str, &str)]) {
        fs::write(self.file("web.toml"), changed(changes)).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Returns the flags for ports that the system chooses.
pub(crate) fn free_ports() -> [&'static str; 8] {
    let free = "127.0.0.1:0";
    ["--listen", free, "--probes", free, "--metrics", free, "--console", free]
}

/// Returns a directory with the configuration file of the example.
pub(crate) fn directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("web.toml"), CONFIG).unwrap();
    dir
}

#[track_caller]
pub(crate) fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(CONFIG.to_owned(), |config, (old, new)| {
        assert_eq!(config.matches(old).count(), 1, "{old}");
        config.replace(old, new)
    })
}

/// Sends the head of a request, and returns the socket.
pub(crate) fn send(address: &str, request: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

/// Sends a request, such as `GET /notes`, and returns the status and the whole answer.
#[track_caller]
pub(crate) fn request(address: &str, request: &str, body: &str) -> (u16, String) {
    let mut answer = String::new();
    send(address, request, body).read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {answer:?}")), answer)
}
