//! Where the standard streams of a process come from and go to.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;

use tokio::process::{ChildStdin, Command};

use crate::panic::Foreign;

/// Where the stdout or the stderr of a process goes.
///
/// The example of [`StopSignal`](crate::process::StopSignal) sets one.
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

/// Connects the standard streams.
pub(super) fn connect(command: &mut Command, stdin: &StdinFrom, stdout: Output, stderr: Output) {
    match stdin {
        StdinFrom::Nothing => drop(command.stdin(Stdio::null())),
        StdinFrom::Open | StdinFrom::Bytes(_) | StdinFrom::Function(_) => {
            command.stdin(Stdio::piped());
        }
        StdinFrom::Command => {}
    }
    if let Some(stdout) = stdio(stdout) {
        command.stdout(stdout);
    }
    if let Some(stderr) = stdio(stderr) {
        command.stderr(stderr);
    }
}

fn stdio(output: Output) -> Option<Stdio> {
    match output {
        Output::Capture => Some(Stdio::piped()),
        Output::Inherit => Some(Stdio::inherit()),
        Output::Null => Some(Stdio::null()),
        Output::Command => None,
    }
}
