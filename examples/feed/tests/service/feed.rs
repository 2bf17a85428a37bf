//! Starts the binary and reads its output.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Lines, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A directory with an input file and room for a database.
#[derive(Debug)]
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new(input: &[u8]) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::write(place.file(), input).unwrap();
        place
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir().join("input")
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.dir().join("feed.db")
    }

    /// Returns the standard error of the last service that was started here.
    pub(crate) fn errors(&self) -> PathBuf {
        self.dir().join("errors")
    }

    /// Starts the service on this input and database.
    pub(crate) fn start(&self, args: &str) -> Feed {
        let mut command = self.command(args);
        command.stderr(File::create(self.errors()).unwrap());
        Feed::start(command)
    }

    /// Runs the service on this input and database to its end.
    pub(crate) fn run(&self, args: &str) -> End {
        self.start(args).end()
    }

    /// Runs a command that says nowhere where it listens to its end.
    pub(crate) fn end_of(&self, command: &mut Command) -> End {
        let output = command.stderr(File::create(self.errors()).unwrap()).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        End::new(output.status.code(), out.lines().map(str::to_owned).collect())
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = command(args.split_whitespace());
        command.arg("--file").arg(self.file()).arg("--db").arg(self.db());
        command
    }

    /// Starts the service with a limit of open files.
    pub(crate) fn start_with_files(&self, limit: u32, args: &str) -> Feed {
        Feed::start(self.command_with_files(limit, args))
    }

    pub(crate) fn command_with_files(&self, limit: u32, args: &str) -> Command {
        let command = self.command(args);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -n {limit} && exec \"$0\" \"$@\""));
        shell.arg(command.get_program()).args(command.get_args()).env("RUST_LOG", "off");
        shell
    }

    /// Replaces the configuration file as editors do: by one that was written beside it.
    pub(crate) fn configure(&self, text: &str) {
        let beside = self.dir().join("feed.toml.new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, self.config()).unwrap();
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir().join("feed.toml")
    }

    /// Returns the command with the configuration file, by a relative path. Its log says what reloads do.
    pub(crate) fn command_with_config(&self, args: &str) -> Command {
        let mut command = self.command(args);
        command.args(["--config", "feed.toml"]).current_dir(self.dir());
        command.env("RUST_LOG", "verger::config=info");
        command
    }

    /// Starts the service with the configuration file.
    pub(crate) fn start_with_config(&self, args: &str) -> Feed {
        let mut command = self.command_with_config(args);
        command.stderr(File::create(self.errors()).unwrap());
        Feed::start(command)
    }

    /// Sends a signal, waits until these words are logged, and returns what was logged meanwhile.
    pub(crate) fn reload(&self, feed: &Feed, signal: &str, words: &str) -> String {
        let bytes = || std::fs::read(self.errors()).unwrap();
        let before = bytes().len();
        let log = || String::from_utf8_lossy(&bytes()[before..]).into_owned();
        feed.signal(signal);
        wait_until(|| log().contains(words));
        log()
    }

    /// Keeps the service from writing to the database, until this is dropped.
    pub(crate) fn lock(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.db()).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    }

    /// The stored texts of a source, in order.
    pub(crate) fn texts(&self, source: &str) -> Vec<Vec<u8>> {
        let connection = rusqlite::Connection::open(self.db()).unwrap();
        let mut query =
            connection.prepare("SELECT n, text FROM lines WHERE source = ?1 ORDER BY n").unwrap();
        let rows = query.query_map([source], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let rows: Vec<(usize, Vec<u8>)> = rows.collect::<Result<_, _>>().unwrap();
        assert!(rows.iter().map(|(n, _)| *n).eq(1..=rows.len()), "{source} is not counted from 1");
        rows.into_iter().map(|(_, text)| text).collect()
    }

    /// Changes the database outside of the service.
    pub(crate) fn tamper(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.db()).unwrap();
        connection.execute_batch(sql).unwrap();
    }
}

pub(crate) fn command(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feed"));
    command.args(args).env("RUST_LOG", "off").env("RUST_BACKTRACE", "0");
    command
}

/// A running service, which is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Feed {
    process: Child,
    out: Lines<BufReader<ChildStdout>>,
    /// The values of the first lines: `listen`, `http`, `probes`, `seed`.
    said: HashMap<String, String>,
}

/// The last line of a service.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<String>,
    verdict: HashMap<String, u64>,
}

impl Feed {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("feed starts");
        let mut out = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut said = HashMap::new();
        while !said.contains_key("probes") {
            let line = out.next().expect("feed says where it listens").unwrap();
            let (key, value) = line.split_once('=').unwrap();
            said.insert(key.to_owned(), value.to_owned());
        }
        Self { process, out, said }
    }

    /// Connects to the line protocol.
    pub(crate) fn connect(&self) -> Peer {
        let stream = TcpStream::connect(&self.said["listen"]).unwrap();
        Peer { answers: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    /// Connects to HTTP.
    pub(crate) fn connect_http(&self) -> TcpStream {
        TcpStream::connect(&self.said["http"]).unwrap()
    }

    /// Returns the most memory that the process has had, in bytes, where the system says it.
    pub(crate) fn most_memory(&self) -> Option<u64> {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).ok()?;
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(most.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1_024)
    }

    /// Sends an HTTP request, and returns the status line and the body.
    pub(crate) fn get(&self, path: &str) -> (String, String) {
        Self::get_from(self.connect_http(), path)
    }

    /// Asks a probe, and returns the status code. `None`: nothing listens any more.
    pub(crate) fn probe(&self, path: &str) -> Option<u16> {
        let stream = TcpStream::connect(&self.said["probes"]).ok()?;
        let (status, _) = Self::get_from(stream, path);
        status.split(' ').nth(1)?.parse().ok()
    }

    fn get_from(mut stream: TcpStream, path: &str) -> (String, String) {
        write!(stream, "GET {path} HTTP/1.1\r\nhost: feed\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// Returns the running tree.
    pub(crate) fn tree(&self) -> serde_json::Value {
        let tree: serde_json::Value = serde_json::from_str(&self.get("/tree").1).unwrap();
        tree["root"].clone()
    }

    /// Returns a counter of lines, batches or transactions.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let stats: serde_json::Value = serde_json::from_str(&self.get("/stats").1).unwrap();
        stats["lines"][name].as_u64().unwrap()
    }

    /// Polls the counters until this many lines were stored since the start.
    pub(crate) fn stored(&self, lines: u64) {
        wait_until(|| self.count("stored") >= lines);
    }

    pub(crate) fn signal(&self, name: &str) {
        let (flag, pid) = (format!("-{name}"), self.process.id().to_string());
        assert!(Command::new("kill").args([flag, pid]).status().unwrap().success());
    }

    /// Kills the service, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits until the service ends.
    pub(crate) fn end(mut self) -> End {
        let out: Vec<String> = self.out.by_ref().map(Result::unwrap).collect();
        let code = self.process.wait().unwrap().code();
        End::new(code, out)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl End {
    fn new(code: Option<i32>, out: Vec<String>) -> Self {
        let last = out.last().map_or("", String::as_str);
        let pairs = last.split(' ').filter_map(|pair| pair.split_once('='));
        let verdict = pairs.map(|(key, value)| (key.into(), value.parse().unwrap())).collect();
        Self { code, out, verdict }
    }

    /// Returns a number of the last line.
    pub(crate) fn get(&self, key: &str) -> u64 {
        *self.verdict.get(key).unwrap_or_else(|| panic!("no {key} in {:#?}", self.out))
    }

    /// Checks that every line was stored once, and that the exit code is 0.
    pub(crate) fn assert_kept(&self, lines: usize) {
        let keys = ["lines", "stored", "lost", "duplicated"];
        let found = keys.map(|key| self.get(key));
        assert_eq!(found, [lines as u64, lines as u64, 0, 0], "{:#?}", self.out);
        assert_eq!(self.code, Some(0), "{:#?}", self.out);
    }

    /// Returns how often each kind of failure was injected.
    pub(crate) fn struck(&self) -> Vec<u64> {
        let line = self.out.iter().find_map(|line| line.strip_prefix("chaos: ")).unwrap();
        line.split(' ').map(|kind| kind.split_once('=').unwrap().1.parse().unwrap()).collect()
    }
}

/// A client of the line protocol.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Peer {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends as much as the service reads before it closes the connection.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).ok();
    }

    /// Whether there is an answer, or the connection is closed.
    pub(crate) fn was_answered(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        !matches!(self.stream.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Closes the sending half.
    pub(crate) fn finish(&mut self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Returns one answer without its newline; empty at the end.
    pub(crate) fn answer(&mut self) -> String {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end_matches('\n').to_owned()
    }
}

/// Polls until the condition holds. Fails after a minute.
#[track_caller]
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never happened");
    }
}

/// Returns lines of every unusual kind, the last one without a newline.
pub(crate) fn awkward(lines: usize) -> Vec<u8> {
    let line = |n: usize| match n % 10 {
        1 => Vec::new(),
        2 => b"again".to_vec(),
        3 => b"carriage return\r".to_vec(),
        4 => b"\xff\xfe\0 not utf-8 \xc3".to_vec(),
        7 if n == 507 => vec![b'x'; 1 << 20],
        _ => format!("line {n}").into_bytes(),
    };
    (0..lines).map(line).collect::<Vec<_>>().join(&b'\n')
}
