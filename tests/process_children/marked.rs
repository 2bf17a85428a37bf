//! The processes of a test, found by a variable in their environment.

use std::fs;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const VARIABLE: &str = "VERGER_TEST_MARK";

/// The mark of one test. When the last clone is dropped, its processes are killed.
#[derive(Clone, Debug)]
pub(crate) struct Marked(Arc<Mark>);

#[derive(Debug)]
struct Mark(String);

impl Marked {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Mark(format!("{}-{number}", std::process::id()))))
    }

    /// Marks a command, and what it starts.
    pub(crate) fn mark(&self, command: &mut Command) {
        command.env(VARIABLE, &self.0.0);
    }

    /// Returns the processes that haven't ended, with what each of them is.
    pub(crate) fn alive(&self) -> Vec<(Pid, String)> {
        self.0.alive()
    }

    /// Fails if a process is left.
    #[track_caller]
    pub(crate) fn assert_gone(&self) {
        assert_eq!(self.alive(), [], "processes are left");
    }
}

impl Mark {
    fn alive(&self) -> Vec<(Pid, String)> {
        let mark = format!("{VARIABLE}={}", self.0);
        let has_mark = |pid: Pid| {
            let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_pid()));
            environment.is_ok_and(|it| it.split(|&byte| byte == 0).any(|it| it == mark.as_bytes()))
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
        let marked = pids.filter_map(Pid::from_raw).filter(|&pid| has_mark(pid));
        marked.map(|pid| (pid, name_of(pid))).collect()
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // Only if the test has failed, or has shown that something is left.
        for (pid, _) in self.alive() {
            if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
                let _ = pidfd_send_signal(process, Signal::KILL);
            }
        }
    }
}

fn name_of(pid: Pid) -> String {
    let line = fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_pid()));
    line.unwrap_or_default().replace('\0', " ").trim().to_owned()
}

/// Opens a process, to wait for its end.
pub(crate) fn open(pid: Pid) -> OwnedFd {
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

/// Waits until a process has ended.
pub(crate) async fn ended(process: OwnedFd) {
    #[expect(deprecated, reason = "its successor is unsafe")]
    let process = AsyncFd::with_interest(process, Interest::READABLE).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(300), process.readable()).await;
    ended.expect("the process doesn't end").unwrap().retain_ready();
}
