//! One child for each connection.
//!
//! It reads lines, sends them to the writer in batches, and answers `ok` for each line after the
//! commit. If it fails, the sender sends the lines without an answer again.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use verger::{ChildSpec, Context, Exit, RestartType, SupervisorHandle, worker_with};

use super::protocol::{self, MAX_LINE, Refusal};
use super::{MAX_BYTES, MAX_LINES, PATIENCE};
use crate::app::App;
use crate::chaos::Site;
use crate::storage::batch::{Batch, Line};

/// Returns the child of a connection. It is temporary, because its socket can't be opened again.
pub(crate) fn connection(app: Arc<App>, socket: TcpStream, tcp: SupervisorHandle) -> ChildSpec {
    let socket = Arc::new(Mutex::new(Some(socket)));
    let state = (app, socket, tcp);
    worker_with("peer", state, async |ctx, (app, socket, tcp)| -> Exit {
        let socket = socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        serve(ctx, app, socket.ok_or("the socket is gone")?, tcp).await
    })
    .restart(RestartType::Temporary)
}

async fn serve(ctx: Context, app: Arc<App>, mut socket: TcpStream, tcp: SupervisorHandle) -> Exit {
    socket.set_nodelay(true)?;
    ctx.set_status(socket.peer_addr()?.to_string());
    let mut buffer = Buffer::default();
    loop {
        let Taken { lines, answers, last } = buffer.take();
        if !lines.is_empty() {
            let batch = Arc::new(Batch::Connection(lines));
            let receipt = app.store(Arc::clone(&batch), PATIENCE).await?;
            app.chaos.strike(&ctx, Site::Connection).await?;
            app.chaos.strike_supervisor(&tcp, "connections", Site::Connections).await?;
            if let Batch::Connection(lines) = &*batch {
                app.ledger.external_acknowledged(lines, &receipt.new);
            }
        }
        if !answers.is_empty() {
            socket.write_all(&answers).await?;
        }
        if last {
            return Ok(());
        }
        if buffer.is_drained()
            && ctx.run_until_cancelled(buffer.fill(&mut socket)).await.transpose()?.is_none()
        {
            return Ok(());
        }
    }
}

/// Bytes that were received and not yet taken.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// How far the first line was searched for its newline.
    searched: usize,
    ended: bool,
}

/// Consecutive lines, and the answers for when they are stored.
#[derive(Debug, Default, PartialEq, Eq)]
struct Taken {
    lines: Vec<Line>,
    answers: Vec<u8>,
    /// Whether these are the last lines.
    last: bool,
}

impl Buffer {
    /// Waits for more bytes, or for the end of the input.
    async fn fill(&mut self, socket: &mut TcpStream) -> std::io::Result<()> {
        self.bytes.reserve(1 << 16);
        self.ended = socket.read_buf(&mut self.bytes).await? == 0;
        Ok(())
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
        !self.ended && self.newline(0).is_none()
    }

    /// Takes the complete lines, up to the size of a batch.
    fn take(&mut self) -> Taken {
        let mut taken = Taken::default();
        let mut begin = 0;
        while taken.lines.len() < MAX_LINES && begin < MAX_BYTES {
            let Some(end) = self.newline(begin) else { break };
            if end - begin > MAX_LINE {
                break;
            }
            match protocol::parse(&self.bytes[begin..end]) {
                Ok(line) => {
                    protocol::ok(&line, &mut taken.answers);
                    taken.lines.push(line);
                }
                Err(refusal) => protocol::error(refusal, &mut taken.answers),
            }
            begin = end + 1;
        }
        self.bytes.drain(..begin);
        self.searched = self.searched.saturating_sub(begin);
        if self.bytes.len() < MAX_BYTES {
            self.bytes.shrink_to(MAX_BYTES);
        }
        self.check_end(&mut taken);
        taken
    }

    /// Ends at the end of the input, or at a line that is too long.
    fn check_end(&mut self, taken: &mut Taken) {
        let line = self.newline(0);
        let length = line.unwrap_or(self.bytes.len());
        if length > MAX_LINE {
            protocol::error(Refusal::TooLong, &mut taken.answers);
            taken.last = true;
        } else if self.ended && line.is_none() {
            if length > 0 {
                protocol::error(Refusal::NoNewline, &mut taken.answers);
            }
            taken.last = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(bytes: &[u8]) -> Buffer {
        Buffer { bytes: bytes.to_vec(), ..Buffer::default() }
    }

    #[test]
    fn complete_lines_are_taken_and_the_rest_waits() {
        let mut buffer = received(b"a/1 x\nnonsense\na/2 y\na/3 z");

        let taken = buffer.take();

        assert_eq!(taken.lines.iter().map(|line| line.n).collect::<Vec<_>>(), [1, 2]);
        assert!(taken.answers.starts_with(b"ok a/1\nerror "));
        assert!(taken.answers.ends_with(b"\nok a/2\n"));
        assert!(buffer.is_drained() && !taken.last);

        buffer.bytes.extend_from_slice(b"z\n");
        assert!(!buffer.is_drained());
        assert_eq!(buffer.take().lines[0].text, b"zz");
    }

    #[test]
    fn a_batch_is_bounded_and_the_next_one_continues() {
        let mut buffer = received(&b"a/1 x\n".repeat(MAX_LINES + 1));

        assert_eq!(buffer.take().lines.len(), MAX_LINES);
        assert!(!buffer.is_drained());
        assert_eq!(buffer.take().lines.len(), 1);
        assert!(buffer.is_drained());
    }

    #[test]
    fn a_line_that_was_cut_off_is_not_taken() {
        let mut buffer = received(b"a/1 x\na/2 y");
        buffer.ended = true;

        let taken = buffer.take();

        assert_eq!((taken.lines.len(), taken.last), (1, true));
        assert!(
            taken.answers.ends_with(b"error the last line has no newline and was not stored\n")
        );
    }

    #[test]
    fn the_end_comes_after_the_last_batch() {
        let mut buffer = received(&b"a/1 x\n".repeat(MAX_LINES + 1));
        buffer.ended = true;

        assert!(!buffer.take().last);
        assert!(buffer.take().last);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut buffer = received(&vec![b'x'; MAX_LINE + 1]);

        let taken = buffer.take();

        assert!(taken.last && taken.answers.starts_with(b"error the line is longer than"));
    }
}
