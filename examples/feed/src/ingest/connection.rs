//! The service of one connection.
//!
//! It reads lines, sends them to the writer in batches, and answers `ok` for each line after the
//! commit. If it fails, the sender sends the lines without an answer again.
//!
//! What it keeps is bounded: two chunks of an unfinished line, one batch and its answers, and beyond
//! that a share of the memory for long lines.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use verger::{Context, Exit, SupervisorHandle};

use super::protocol::{self, Peer, Refusal};
use super::{MAX_LINES, PATIENCE};
use crate::app::App;
use crate::chaos::Site;
use crate::limits::{CHUNK, LINE_TIME, MAX_LINE};
use crate::room::Seat;
use crate::storage::batch::{Batch, Line};
use crate::storage::sink::Sink;

pub(crate) async fn serve(
    ctx: Context,
    app: Arc<App>,
    mut socket: TcpStream,
    seat: Seat,
    tcp: SupervisorHandle,
) -> Exit {
    socket.set_nodelay(true)?;
    let address = socket.peer_addr()?;
    app.stats.accepted();
    ctx.set_status(address.to_string());
    let sink: Sink = ctx.service().await?;
    let mut buffer = Buffer::default();
    loop {
        let peer = if app.builtin.contains(address) { Peer::BuiltIn } else { Peer::External };
        let Taken { lines, answers, last, memory } = buffer.take(peer);
        if !lines.is_empty() {
            seat.busy();
            let batch = Arc::new(Batch::Connection(lines));
            let receipt = sink.store(Arc::clone(&batch), memory, PATIENCE).await?;
            seat.active();
            app.chaos.strike(&ctx, Site::Connection).await?;
            app.chaos.strike_supervisor(&tcp, "connections", Site::Connections).await?;
            if peer == Peer::External {
                let app = Arc::clone(&app);
                spawn_blocking(move || app.acknowledged.add(&batch, &receipt.new)).await??;
            }
        } else {
            drop(memory);
        }
        if !answers.is_empty() {
            // At a stop, an answer is sent only if the peer reads.
            tokio::select! {
                biased;
                sent = socket.write_all(&answers) => sent?,
                () = ctx.cancelled() => return Ok(()),
            }
        }
        if last {
            return Ok(());
        }
        if buffer.is_drained() {
            let filled = buffer.fill(&mut socket, &app.long_lines);
            if ctx.run_until_cancelled(filled).await.transpose()?.is_none() {
                return Ok(());
            }
        }
    }
}

/// Bytes that were received and not yet taken.
///
/// Before each read, there is no complete line in it. After the first line, there is therefore never
/// more than one chunk.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// How far the first line was searched for its newline.
    searched: usize,
    ended: bool,
    /// When the unfinished line must be complete.
    due: Option<Instant>,
    /// The share of the memory for long lines.
    memory: Option<OwnedSemaphorePermit>,
    /// Why the unfinished line is given up.
    given_up: Option<Refusal>,
}

/// Consecutive lines, and the answers for when they are stored.
#[derive(Debug, Default)]
struct Taken {
    lines: Vec<Line>,
    answers: Vec<u8>,
    /// Whether these are the last lines.
    last: bool,
    /// The share of the memory for long lines, which is held until these are stored.
    memory: Option<OwnedSemaphorePermit>,
}

impl Buffer {
    /// Waits for more bytes, or for the end of the input. Gives the line up if it takes too long or
    /// too much memory.
    async fn fill(
        &mut self,
        socket: &mut (impl AsyncRead + Unpin),
        long_lines: &Arc<Semaphore>,
    ) -> io::Result<()> {
        if !self.reserve(long_lines) {
            self.given_up = Some(Refusal::NoMemory);
            return Ok(());
        }
        if !self.bytes.is_empty() && self.due.is_none() {
            self.due = Some(Instant::now() + LINE_TIME);
        }
        let mut chunk = socket.take(CHUNK as u64);
        let read = chunk.read_buf(&mut self.bytes);
        let read = match self.due {
            None => read.await?,
            Some(due) => match timeout_at(due, read).await {
                Ok(read) => read?,
                Err(_elapsed) => {
                    self.given_up = Some(Refusal::Slow);
                    return Ok(());
                }
            },
        };
        self.ended = read == 0;
        Ok(())
    }

    /// Makes room for a chunk, or returns `false` if the memory for long lines is spent.
    fn reserve(&mut self, long_lines: &Arc<Semaphore>) -> bool {
        let held = self.memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = self.bytes.len().saturating_sub(CHUNK).saturating_sub(held);
        if more > 0 {
            let Ok(more) = Arc::clone(long_lines).try_acquire_many_owned(more as u32) else {
                return false;
            };
            match &mut self.memory {
                Some(memory) => memory.merge(more),
                None => self.memory = Some(more),
            }
        }
        // Exact, because a growth by doubling would take more than was acquired.
        if self.bytes.capacity() - self.bytes.len() < CHUNK / 2 {
            self.bytes.reserve_exact(CHUNK);
        }
        true
    }

    /// Returns where the line that begins at `begin` ends, if it is complete.
    fn newline(&mut self, begin: usize) -> Option<usize> {
        let from = self.searched.max(begin);
        let found = self.bytes[from..].iter().position(|&byte| byte == b'\n');
        self.searched = found.map_or(self.bytes.len(), |length| from + length);
        found.map(|length| from + length)
    }

    /// Whether no complete line was received.
    fn is_drained(&mut self) -> bool {
        !self.ended && self.given_up.is_none() && self.newline(0).is_none()
    }

    /// Takes the complete lines, up to the number of a batch.
    fn take(&mut self, peer: Peer) -> Taken {
        let mut taken = Taken::default();
        let mut begin = 0;
        for _ in 0..MAX_LINES {
            let Some(end) = self.newline(begin) else { break };
            if end - begin > MAX_LINE {
                break;
            }
            match protocol::parse(&self.bytes[begin..end], peer) {
                Ok(line) => {
                    protocol::ok(&line, &mut taken.answers);
                    taken.lines.push(line);
                }
                Err(refusal) => protocol::error(refusal, &mut taken.answers),
            }
            begin = end + 1;
        }
        if begin > 0 {
            self.bytes.drain(..begin);
            self.bytes.shrink_to(2 * CHUNK);
            self.searched = self.searched.saturating_sub(begin);
            self.due = None;
            taken.memory = self.memory.take();
        }
        self.check_end(&mut taken);
        taken
    }

    /// Ends at the end of the input, or at a line that can't be received.
    fn check_end(&mut self, taken: &mut Taken) {
        let line = self.newline(0);
        let length = line.unwrap_or(self.bytes.len());
        let refusal = match self.given_up {
            _ if length > MAX_LINE => Some(Refusal::TooLong),
            None if self.ended && line.is_none() && length > 0 => Some(Refusal::NoNewline),
            given_up => given_up,
        };
        if let Some(refusal) = refusal {
            protocol::error(refusal, &mut taken.answers);
        }
        taken.last = refusal.is_some() || (self.ended && line.is_none());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    fn received(bytes: &[u8]) -> Buffer {
        Buffer { bytes: bytes.to_vec(), ..Buffer::default() }
    }

    #[test]
    fn complete_lines_are_taken_and_the_rest_waits() {
        let mut buffer = received(b"a/1 x\nnonsense\na/2 y\na/3 z");

        let taken = buffer.take(Peer::External);

        assert_eq!(taken.lines.iter().map(|line| line.n).collect::<Vec<_>>(), [1, 2]);
        assert!(taken.answers.starts_with(b"ok a/1\nerror "));
        assert!(taken.answers.ends_with(b"\nok a/2\n"));
        assert!(buffer.is_drained() && !taken.last);

        buffer.bytes.extend_from_slice(b"z\n");
        assert!(!buffer.is_drained());
        assert_eq!(buffer.take(Peer::External).lines[0].text, b"zz");
    }

    #[test]
    fn a_batch_is_bounded_and_the_next_one_continues() {
        let mut buffer = received(&b"a/1 x\n".repeat(MAX_LINES + 1));

        assert_eq!(buffer.take(Peer::External).lines.len(), MAX_LINES);
        assert!(!buffer.is_drained());
        assert_eq!(buffer.take(Peer::External).lines.len(), 1);
        assert!(buffer.is_drained());
    }

    #[test]
    fn a_line_that_was_cut_off_is_not_taken() {
        let mut buffer = received(b"a/1 x\na/2 y");
        buffer.ended = true;

        let taken = buffer.take(Peer::External);

        assert_eq!((taken.lines.len(), taken.last), (1, true));
        assert!(
            taken.answers.ends_with(b"error the last line has no newline and was not stored\n")
        );
    }

    #[test]
    fn the_end_comes_after_the_last_batch() {
        let mut buffer = received(&b"a/1 x\n".repeat(MAX_LINES + 1));
        buffer.ended = true;

        assert!(!buffer.take(Peer::External).last);
        assert!(buffer.take(Peer::External).last);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut buffer = received(&vec![b'x'; MAX_LINE + 1]);

        let taken = buffer.take(Peer::External);

        assert!(taken.last && taken.answers.starts_with(b"error the line is longer than"));
    }

    #[test]
    fn refused_lines_count_for_the_batch_so_that_answers_are_bounded() {
        let mut buffer = received(&b"\n".repeat(MAX_LINES + 1));

        let taken = buffer.take(Peer::External);

        assert_eq!(taken.answers.split(|&byte| byte == b'\n').count(), MAX_LINES + 1);
        assert!(!buffer.is_drained());
    }

    #[tokio::test]
    async fn unfinished_lines_share_the_memory_for_long_lines() {
        let long_lines = Arc::new(Semaphore::new(3 * CHUNK));
        let mut endless = tokio::io::repeat(b'x');
        let (mut one, mut two) = (Buffer::default(), Buffer::default());
        for buffer in [&mut one, &mut two] {
            for _ in 0..4 {
                buffer.fill(&mut endless, &long_lines).await.unwrap();
            }
        }
        assert_eq!((one.bytes.len(), one.given_up), (4 * CHUNK, None));
        assert_eq!((two.bytes.len(), two.given_up), (3 * CHUNK, Some(Refusal::NoMemory)));
        let taken = two.take(Peer::External);
        assert!(taken.last && taken.answers.starts_with(b"error long lines"));
        drop(two);

        // The first line ends. Its memory is held as long as its batch.
        one.fill(&mut &b"\n"[..], &long_lines).await.unwrap();
        let taken = one.take(Peer::External);
        assert_eq!((long_lines.available_permits(), one.memory.is_none()), (0, true));
        drop(taken);
        assert_eq!(long_lines.available_permits(), 3 * CHUNK);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_line_is_given_up_and_silence_is_not() {
        let long_lines = Arc::new(Semaphore::new(0));
        let (mut sender, mut receiver) = tokio::io::duplex(100);
        let mut buffer = Buffer::default();
        let waited =
            timeout_at(Instant::now() + 2 * LINE_TIME, buffer.fill(&mut receiver, &long_lines));
        assert!(waited.await.is_err(), "nothing was begun, so nothing is due");

        let mut began = None;
        for _ in 0..4 {
            let (filled, sent) = tokio::join!(buffer.fill(&mut receiver, &long_lines), async {
                sleep(LINE_TIME / 4).await;
                sender.write_all(b"x").await
            });
            assert!(filled.is_ok() && sent.is_ok());
            began.get_or_insert(Instant::now());
        }
        buffer.fill(&mut receiver, &long_lines).await.unwrap();

        assert_eq!((buffer.given_up, began.unwrap().elapsed()), (Some(Refusal::Slow), LINE_TIME));
        assert!(buffer.take(Peer::External).last);
    }
}
