//! The options of a process.

#[cfg(target_os = "linux")]
use std::path::PathBuf;

use super::exit::Successes;
use super::ready::ReadyWhen;
use super::signal::StopSignal;
use super::streams::{Output, StdinFrom};

#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) stdin: StdinFrom,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    pub(super) kept_lines: usize,
    pub(super) successes: Successes,
    pub(super) ready: ReadyWhen,
    #[cfg(target_os = "linux")]
    pub(super) kills_marked: bool,
    #[cfg(target_os = "linux")]
    pub(super) cgroup: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let successes =
            Successes { codes: Vec::new(), signals: Vec::new(), stop_signal: StopSignal::Term };
        Self {
            stdin: StdinFrom::default(),
            stdout: Output::default(),
            stderr: Output::default(),
            kept_lines: 20,
            successes,
            ready: ReadyWhen::spawned(),
            #[cfg(target_os = "linux")]
            kills_marked: false,
            #[cfg(target_os = "linux")]
            cgroup: None,
        }
    }
}
