//! One process of the service: start, kill, stop.
//!
//! A process reads its file with `--follow`, so that only a signal ends it. It is killed when its
//! [`Process`] is dropped.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;

use crate::cli::Options;

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
    /// The last line of the output so far.
    last_line: String,
}

/// How a process ended by itself.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) last_line: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, after `{}`", self.status, self.last_line)
    }
}

impl Process {
    /// Starts this program again, as the service with these options and this database.
    pub(super) fn start(options: &Options, db: &Path) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--follow").arg("--file").arg(&options.file).arg("--db").arg(db);
        command.arg("--listen").arg(options.listen.to_string());
        command.arg("--http").arg(options.http.to_string());
        command.arg("--rate").arg(options.rate.to_string());
        command.arg("--connections").arg(options.connections.to_string());
        command.arg("--seed").arg(options.seed.to_string());
        if let Some(file) = &options.config {
            command.arg("--config").arg(file);
        }
        if options.chaos {
            command.arg("--chaos");
        }
        if std::env::var_os("RUST_LOG").is_none() {
            command.env("RUST_LOG", "error");
        }
        // Not in the terminal's process group, so that Ctrl-C reaches this process only.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
        let output = BufReader::new(output).lines();
        Ok(Self { child, output, last_line: String::new() })
    }

    /// Reads the output until the process ends, and publishes where it takes lines.
    ///
    /// Cancel safe: a later call goes on where this one was.
    pub(super) async fn serve(
        &mut self,
        address: &watch::Sender<Option<SocketAddr>>,
    ) -> io::Result<Ended> {
        while let Some(line) = self.output.next_line().await? {
            if let Some(listen) = line.strip_prefix("listen=") {
                address.send_replace(Some(listen.parse().map_err(io::Error::other)?));
            }
            self.last_line = line;
        }
        let status = self.child.wait().await?;
        Ok(Ended { status, last_line: self.last_line.clone() })
    }

    /// Kills the process with SIGKILL, and waits until it has gone.
    pub(super) async fn kill(mut self) -> io::Result<()> {
        self.child.kill().await
    }

    /// Asks the process to stop, with SIGTERM.
    pub(super) fn terminate(&self) -> io::Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        kill_process(id.ok_or(ErrorKind::NotFound)?, Signal::TERM)?;
        Ok(())
    }
}
