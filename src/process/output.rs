//! Reads the output of a process: lines for the log, for the status, for the failure, and for the readiness.
//!
//! # Invariants
//!
//! 1. A line has at most [`MAX_LINE`] bytes of the stream, and no more than that is stored.
//! 2. A longer line is passed on once, cut, as soon as it is too long. The rest of it is skipped.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::Arc;

use rustix::fd::AsFd;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

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

/// The most bytes of a line.
const MAX_LINE: usize = 16 * 1024;

/// The most bytes of a line in [`Tail`].
const MAX_KEPT: usize = 1024;

/// What a cut line ends with.
const CUT: &str = "… (cut)";

/// Splits a stream into lines.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    /// The rest of the line is skipped.
    skips: bool,
}

impl Lines {
    /// Takes the next bytes of the stream, and passes on the lines that they complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(String)) {
        while !bytes.is_empty() {
            let all = bytes;
            // Searched with std's own `memchr`, which is fast also in programs that aren't optimised.
            let length = bytes.skip_until(b'\n').expect("a slice can always be read");
            let (part, ends) = match all[..length].strip_suffix(b"\n") {
                Some(part) => (part, true),
                None => (all, false),
            };
            if !self.skips {
                let room = MAX_LINE - self.line.len();
                self.line.extend_from_slice(&part[..part.len().min(room)]);
                if part.len() > room {
                    each(self.take(true));
                    self.skips = true;
                }
            }
            if ends && !std::mem::take(&mut self.skips) {
                each(self.take(false));
            }
        }
    }

    /// Passes on the last line, if it has no end.
    pub(super) fn finish(&mut self, each: impl FnOnce(String)) {
        if !self.line.is_empty() {
            each(self.take(false));
        }
        self.skips = false;
    }

    fn take(&mut self, cut: bool) -> String {
        let mut line = &*self.line;
        if cut {
            line = without_partial_char(line);
        } else {
            line = line.strip_suffix(b"\r").unwrap_or(line);
        }
        let mut text = match String::from_utf8_lossy(line) {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(text) => text,
        };
        if cut {
            text.push_str(CUT);
        }
        self.line.clear();
        text
    }
}

/// Removes a character at the end that was cut in two.
fn without_partial_char(line: &[u8]) -> &[u8] {
    match line.utf8_chunks().last() {
        // One that is invalid by itself is kept, and replaced later.
        Some(last) if (1..4).contains(&last.invalid().len()) => {
            let invalid = last.invalid();
            let is_partial = std::str::from_utf8(invalid).is_err_and(|it| it.error_len().is_none());
            if is_partial { &line[..line.len() - invalid.len()] } else { line }
        }
        _ => line,
    }
}

/// The last lines of a stream.
pub(super) struct Tail {
    lines: VecDeque<String>,
    max: usize,
}

impl Tail {
    pub(super) fn new(max: usize) -> Self {
        Self { lines: VecDeque::new(), max }
    }

    pub(super) fn push(&mut self, line: &str) {
        if self.max == 0 {
            return;
        }
        if self.lines.len() == self.max {
            self.lines.pop_front();
        }
        self.lines.push_back(start_of(line, MAX_KEPT).into_owned());
    }

    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines).into()
    }
}

/// Returns the first bytes of a text, with a mark if there are more.
pub(super) fn start_of(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let end = (0..=bytes).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of a stream that arrives in parts of this size.
    fn lines(stream: &[u8], part: usize) -> Vec<String> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for part in stream.chunks(part) {
            lines.push(part, |line| found.push(line));
            assert!(lines.line.len() <= MAX_LINE);
        }
        lines.finish(|line| found.push(line));
        found
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_arrive() {
        let stream = b"one\n\ntwo\r\nthr\xc3\xa4\xc3ee\nlast";
        for part in 1..=stream.len() {
            assert_eq!(lines(stream, part), ["one", "", "two", "thrä\u{fffd}ee", "last"], "{part}");
        }
        assert!(lines(b"", 1).is_empty());
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_once_and_its_rest_skipped() {
        let mut stream = vec![b'x'; MAX_LINE];
        stream.push(b'\n');
        for part in [1, 100, 1 << 20] {
            assert_eq!(lines(&stream, part), ["x".repeat(MAX_LINE)], "just fits");
        }

        let mut stream = vec![b'x'; 10 << 20];
        stream.extend_from_slice(b"\nnext\n");
        for part in [1000, MAX_LINE, 1 << 20] {
            assert_eq!(
                lines(&stream, part),
                [format!("{}… (cut)", "x".repeat(MAX_LINE)), "next".into()]
            );
        }
    }

    #[test]
    fn a_cut_never_leaves_half_a_character() {
        let mut stream = vec![b'x'; MAX_LINE - 2];
        stream.extend_from_slice("€ and more\n".as_bytes());
        assert_eq!(lines(&stream, 500), [format!("{}… (cut)", "x".repeat(MAX_LINE - 2))]);

        let mut stream = vec![b'x'; MAX_LINE - 1];
        stream.extend_from_slice(b"\xff and more\n");
        assert_eq!(lines(&stream, 500), [format!("{}\u{fffd}… (cut)", "x".repeat(MAX_LINE - 1))]);
    }

    #[test]
    fn the_tail_has_the_last_lines_and_each_is_short() {
        let mut tail = Tail::new(2);
        for line in ["a", "b", &"é".repeat(1000)] {
            tail.push(line);
        }
        assert_eq!(tail.take(), ["b".to_owned(), format!("{}… (cut)", "é".repeat(512))]);
        assert!(tail.take().is_empty());

        let mut none = Tail::new(0);
        none.push("a");
        assert!(none.take().is_empty());
    }
}
