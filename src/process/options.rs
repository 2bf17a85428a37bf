//! The options of a process.

use std::fmt;
use std::future::Future;
use std::io;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::process::ChildStdin;

use super::exit::Successes;
use super::ready::ReadyWhen;
use super::signal::StopSignal;
use crate::panic::Foreign;

/// Where the stdout or the stderr of a process goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Output {
    /// Each line is logged, at `INFO` with the target `verger::process`. The default.
    #[default]
    Capture,
    /// To the same place as that of this program.
    Inherit,
    /// Nowhere.
    Null,
    /// Where the command itself says, for example to a file.
    Command,
}

pub(super) type Feed =
    dyn Fn(ChildStdin) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> + Send + Sync;

/// Where the stdin of a process comes from.
#[derive(Clone, Default)]
pub(super) enum StdinFrom {
    /// It has an end at once.
    #[default]
    Nothing,
    /// A pipe that stays open while this program lives.
    Open,
    Bytes(Arc<[u8]>),
    Function(Foreign<Feed>),
    /// Where the command itself says.
    Command,
}

impl fmt::Debug for StdinFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Open => "Open",
            Self::Bytes(_) => "Bytes",
            Self::Function(_) => "Function",
            Self::Command => "Command",
        })
    }
}

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
