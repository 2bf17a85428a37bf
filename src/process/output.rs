//! Reads the output of a process: lines for the log, for the status, for the failure, and for the readiness.

use std::sync::Arc;

use rustix::fd::AsFd;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

use super::lines::{Lines, Tail, start_of};
use super::log::{LineLog, Stream};
use super::ready::LineWatch;
use crate::child::Context;
use crate::sync::Mutex;

/// The bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// The most bytes that are read from a pipe once the process has ended: the most that a pipe holds by default.
const REST: usize = 1 << 20;

/// The most bytes of a line in the status.
const IN_STATUS: usize = 120;

/// Where the lines of a process go.
#[derive(Debug)]
pub(super) struct Sinks {
    pub(super) ctx: Context,
    pub(super) pid: u32,
    pub(super) log: LineLog,
    pub(super) ready: Option<Arc<LineWatch>>,
    pub(super) stderr: Mutex<Tail>,
    /// Whether the last line is the status. It isn't if the process reports one itself.
    pub(super) is_status: bool,
}

/// Returns the status of a child whose process has last said this.
pub(super) fn status_of(pid: u32, text: &str) -> String {
    format!("pid {pid}: {text}")
}

/// Reads one stream until its end. Once the process has `ended`, reads what is left in the pipe and waits for no more: a
/// process that has left the group may hold the other end.
pub(super) async fn read<R>(
    pipe: Option<R>,
    stream: Stream,
    sinks: &Sinks,
    ended: &CancellationToken,
) where
    R: AsyncRead + AsFd + Unpin,
{
    let Some(mut pipe) = pipe else { return };
    let (mut lines, mut chunk) = (Lines::default(), vec![0; CHUNK]);
    loop {
        let read = tokio::select! {
            biased;
            () = ended.cancelled() => break,
            read = pipe.read(&mut chunk) => read,
        };
        // What can't be read has an end as well.
        let Ok(length @ 1..) = read else { break };
        let mut found = Vec::new();
        lines.push(&chunk[..length], |line| found.push(line));
        sinks.take(stream, found).await;
    }
    let mut found = Vec::new();
    for chunk in rest_of(&pipe) {
        lines.push(&chunk, |line| found.push(line));
    }
    lines.finish(|line| found.push(line));
    sinks.take(stream, found).await;
}

/// Reads what is in a pipe. The pipe doesn't block.
fn rest_of(pipe: impl AsFd) -> Vec<Vec<u8>> {
    let (mut chunks, mut rest) = (Vec::new(), REST);
    while rest > 0 {
        let mut chunk = vec![0; CHUNK];
        match rustix::io::read(&pipe, &mut chunk) {
            Ok(length @ 1..) => {
                rest = rest.saturating_sub(length);
                chunk.truncate(length);
                chunks.push(chunk);
            }
            Err(Errno::INTR) => {}
            _ => break,
        }
    }
    chunks
}

impl Sinks {
    async fn take(&self, stream: Stream, lines: Vec<String>) {
        // First what doesn't wait for the log.
        for line in &lines {
            if let Some(ready) = &self.ready {
                ready.line(line);
            }
            if stream == Stream::Stderr {
                self.stderr.lock().push(line);
            }
        }
        if let Some(last) = lines.iter().rev().find(|line| !line.trim().is_empty())
            && self.is_status
        {
            self.ctx.set_status(status_of(self.pid, &start_of(last, IN_STATUS)));
        }
        for line in lines {
            self.log.push(stream, line).await;
        }
    }
}
